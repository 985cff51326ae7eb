"""Filters on plain files find what Spark itself finds in the rows: ORC's own look at statistics leaves nothing out."""

from functools import reduce

import pytest
from pyspark.sql import DataFrame

import hive_acid.spark
from tests.values.tables import DUMMY

pytestmark = pytest.mark.spark

VALUES = {
    "x": "double(-0.0D)", "f": "CAST(-0.0D AS float)", "st": "named_struct('a', CAST(-0.0D AS double), 'b', 1)",
    "d": "date'1500-01-01'", "m": "CAST('0.000' AS decimal(10,3))", "s": "'\U00010000'",
}  # fmt: skip
KINDS = {
    "x": "double", "f": "float", "st": "struct<a:double,b:int>", "d": "date", "m": "decimal(10,3)", "s": "string",
}  # fmt: skip
CONDITIONS = (
    "x = 0", "x >= 0", "x IN (0, 1)", "x <=> 0D", "f = 0", "f >= CAST(0 AS float)", "st.a = 0",
    "st.a >= 0D AND st.b = 1", "x BETWEEN 0 AND 1", "d = date'1500-01-01'", "d <= '1500-01-01'", "m = 0",
    "s > '\uffff'", "NOT x < 0", "NOT x <> 0",
)  # fmt: skip


@pytest.mark.parametrize("form", ["ORC", "PARQUET"])
@pytest.mark.parametrize("kind", ["plain", "insert_only"])
def test_a_value_that_is_alone_in_its_file_is_found(spark, acid, kind, form):
    plainly = hive_acid.spark.session(spark, acid.connection, settings=DUMMY)
    session = plainly if kind == "plain" else acid
    properties = {"transactional": "false"} if kind == "plain" else {"transactional_properties": "insert_only"}
    session.create_table("d.t", KINDS, properties=properties, stored_as=form)
    session.insert("d.t", spark.sql(f"SELECT {', '.join(f'{value} AS {name}' for name, value in VALUES.items())}"))
    frame = session.table("d.t")
    (row,) = frame.collect()
    assert str(row.x) == str(row.f) == str(row.st.a) == "-0.0"
    asked = [frame.where(condition).selectExpr(f"{at} AS at") for at, condition in enumerate(CONDITIONS)]
    found = {row["at"] for row in reduce(DataFrame.unionAll, asked).collect()}
    assert [of for at, of in enumerate(CONDITIONS) if at not in found] == []
    assert not frame.where("x < 0 OR f > 0 OR st.a <> 0").collect()
