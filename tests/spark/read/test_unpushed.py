"""Filters on plain files find what Spark itself finds in the rows: ORC's own look at statistics leaves nothing out."""

from functools import reduce
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import hive_acid.spark
from hive_acid.spark import AcidSession
from hive_acid.spark.read.unpushed import MOST_GUARDED
from tests.spark.plans import scans
from tests.values.rows.tables import DUMMY

pytestmark = pytest.mark.spark

GROUP_ROWS = 10_000
"""So many rows ORC has in a row group by itself."""

VALUES = {
    "x": "double(-0.0D)", "f": "CAST(-0.0D AS float)", "st": "named_struct('a', CAST(-0.0D AS double), 'b', 1)",
    "d": "date'1500-01-01'", "m": "CAST('0.000' AS decimal(10,3))", "s": "'\U00010000'", "i": "1", "b": "1L",
}  # fmt: skip
KINDS = {
    "x": "double", "f": "float", "st": "struct<a:double,b:int>", "d": "date", "m": "decimal(10,3)", "s": "string",
    "i": "int", "b": "bigint",
}  # fmt: skip
CONDITIONS = (
    "x = 0", "x >= 0", "x IN (0, 1)", "x <=> 0D", "f = 0", "f >= CAST(0 AS float)", "st.a = 0",
    "st.a >= 0D AND st.b = 1", "x BETWEEN 0 AND 1", "d = date'1500-01-01'", "d <= '1500-01-01'", "m = 0",
    "s > '\uffff'", "NOT x < 0", "NOT x <> 0", "i IN (1, NULL)",
    "b IN (1, 2, NULL)", "m IN (0, 1, NULL)", "x IN (0D, 1D, NULL)", "f IN (CAST(0 AS float), NULL)", "i = 1 AND b = 1",
    "d IN (date'1500-01-01', NULL)", f"i IN ({', '.join(map(str, range(20)))}, NULL)",
    "NOT coalesce(i IN (2, NULL), false)",
)  # fmt: skip


MORE = {f"more{number}": "bigint" for number in range(MOST_GUARDED)}
"""So many columns that none has a guard."""


@pytest.mark.parametrize("more", [{}, MORE], ids=["few columns", "many"])
@pytest.mark.parametrize("form", ["ORC", "PARQUET"])
@pytest.mark.parametrize("kind", ["plain", "insert_only"])
def test_a_value_that_is_alone_in_its_file_is_found(
    spark: SparkSession, acid: AcidSession, kind: Any, form: Any, more: Any
) -> None:
    plainly = hive_acid.spark.session(spark, acid.connection, settings=DUMMY)
    session = plainly if kind == "plain" else acid
    properties = {"transactional": "false"} if kind == "plain" else {"transactional_properties": "insert_only"}
    session.create_table("d.t", KINDS | more, properties=properties, stored_as=form)
    values = VALUES | dict.fromkeys(more, "7L")
    session.insert("d.t", spark.sql(f"SELECT {', '.join(f'{value} AS {name}' for name, value in values.items())}"))
    frame = session.table("d.t")
    (row,) = frame.collect()
    assert str(row.x) == str(row.f) == str(row.st.a) == "-0.0"
    asked = [frame.where(condition).selectExpr(f"{at} AS at") for at, condition in enumerate(CONDITIONS)]
    found = {row["at"] for row in reduce(DataFrame.unionAll, asked).collect()}
    assert [of for at, of in enumerate(CONDITIONS) if at not in found] == []
    assert not frame.where("x < 0 OR f > 0 OR st.a <> 0").collect()


@pytest.mark.parametrize("more", [{}, MORE], ids=["few columns", "many"])
@pytest.mark.parametrize("kind", ["plain", "insert_only"])
def test_row_groups_are_left_out(spark: SparkSession, acid: AcidSession, kind: Any, more: Any) -> None:
    plainly = hive_acid.spark.session(spark, acid.connection, settings=DUMMY)
    session = plainly if kind == "plain" else acid
    properties = {"transactional": "false"} if kind == "plain" else {"transactional_properties": "insert_only"}
    session.create_table("d.t", {"k": "bigint", "day": "date", "of": "string"} | more, properties=properties)
    values = {"k": "id", "day": "date_add(date'2020-01-01', cast(id AS int))", "of": "'x'"} | dict.fromkeys(more, "id")
    rows = spark.range(0, 3 * GROUP_ROWS, 1, 1)
    session.insert("d.t", rows.selectExpr(*(f"{value} AS {name}" for name, value in values.items())))
    everything = session.table("d.t")
    for frame in (
        everything.where("k IN (5500, NULL)"),
        session.table("d.t", where="k = 5500"),
        everything.filter("day BETWEEN date'2020-02-01' AND date'2020-02-03' AND of = 'x'"),
    ):
        (scan,) = scans(frame)
        assert scan.rows == GROUP_ROWS
    assert everything.where("k IN (5500, NULL)").count() == 1
    unskipped = hive_acid.spark.session(
        spark, acid.connection, settings=DUMMY if kind == "plain" else None, skipping=False
    )
    (scan,) = scans(unskipped.table("d.t").where("k = 5500"))
    assert scan.rows == 3 * GROUP_ROWS


def test_partitions_of_plain_tables_are_left_out(spark: SparkSession, acid: AcidSession) -> None:
    """However many columns there are: Spark does it, and would not behind a sample."""
    session = hive_acid.spark.session(spark, acid.connection, settings=DUMMY)
    session.create_table("d.t", KINDS | MORE, partitioned_by={"p": "int"}, properties={"transactional": "false"})
    values = VALUES | dict.fromkeys(MORE, "7L")
    shown = ", ".join(f"{value} AS {name}" for name, value in values.items())
    session.insert(
        "d.t",
        spark.range(3).selectExpr("id").crossJoin(spark.sql(f"SELECT {shown}")).selectExpr(*values, "int(id) AS p"),
    )
    found = session.table("d.t").where("p = 1 AND x = 0")
    assert found.count() == 1
    (scan,) = scans(found)
    assert "isnotnull(p" in scan.text.partition("PartitionFilters")[2].partition("]")[0]
