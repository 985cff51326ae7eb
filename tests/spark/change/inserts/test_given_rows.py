"""Rows that stand in an INSERT are written by the client: they are what a job of Spark's would have written."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import HiveAcidError
from hive_acid.spark import AcidSession
from tests.spark.by_spark import WRITTEN, limited
from tests.spark.change.test_driver_write import new_by_spark
from tests.spark.checker import check_table, location_of

COLUMNS = {
    "n": "int", "b": "boolean", "small": "tinyint", "big": "bigint", "f": "float", "x": "double", "p": "decimal(12,3)",
    "s": "string", "v": "varchar(5)", "c": "char(4)", "y": "binary", "d": "date", "ts": "timestamp",
}  # fmt: skip
VALUES: dict[str, tuple[str, ...]] = {
    "n": ("0", "-2147483648", "2147483647"),
    "b": ("true", "false"),
    "small": ("-128", "7"),
    "big": ("-9223372036854775807", "0"),
    "f": ("float('NaN')", "-0.0F", "float('Infinity')", "1.5F"),
    "x": ("double('NaN')", "-0.0D", "4.9e-324D", "0.1D"),
    "p": ("-999999999.999", "0.001", "2"),
    "s": ("''", "'a b'", "'😀'", "'x\ny'", "repeat('long ', 300)", "' '"),
    "v": ("''", "'abcde'", "'ab   '"),
    "c": ("''", "'ab'", "'ab  '", "'äöü'"),
    "y": ("X''", "X'00FF'"),
    "d": ("date'0002-01-01'", "date'9999-12-31'", "date'1582-10-15'", "date'1582-10-04'", "date'1970-01-01'"),
    "ts": ("timestamp'2024-02-29 23:59:59.123456'", "timestamp'1969-12-31 23:59:58.5'"),
}
KEYS = {"k": "string", "j": "int", "l": "date"}
KEY_VALUES: dict[str, tuple[str, ...]] = {
    "k": ("'a/b'", "''", "'x=%'", "'ü '", "'a'"),
    "j": ("1", "-5"),
    "l": ("date'2024-01-01'", "date'0001-01-01'"),
}


def rows(choice: random.Random, number: int) -> str:
    every = VALUES | KEY_VALUES
    of = lambda: ", ".join(choice.choice((*values, "NULL")) for values in every.values())  # noqa: E731
    return f"SELECT * FROM VALUES {', '.join(f'({of()})' for _ in range(number))} AS t({', '.join(every)})"


@pytest.mark.parametrize("seed", range(3))
def test_they_are_what_spark_writes(seed: int, acid: AcidSession, spark: SparkSession) -> None:
    for name in ("d.t", "d.u"):
        acid.create_table(name, COLUMNS, partitioned_by=KEYS)
    choice = random.Random(seed)
    for number in (1, 3, 40):
        frame = spark.sql(rows(choice, number))
        assert acid.insert("d.t", frame) == number
        with limited(acid, **WRITTEN):
            assert acid.insert("d.u", frame) == number
    shown = [f"hex(encode(to_json(struct({name})), 'utf-8'))" for name in (*COLUMNS, *KEYS)]
    found, expected = (sorted(acid.table(of).selectExpr(*shown).collect()) for of in ("d.t", "d.u"))
    assert found == expected
    names = [sorted(acid.connection.partition_names(acid.connection.table("d", of))) for of in ("t", "u")]
    assert names[0] == names[1]
    check_table(location_of(acid, "d.t"))


def test_who_writes_is_told_by_the_rows(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "s": "string"})
    acid.sql("INSERT INTO d.t VALUES (2, 'b'), (1, 'a')")
    acid.insert("d.t", spark.range(1).selectExpr("int(id) id", "'x' s").repartition(1))
    acid.sql(f"INSERT INTO d.t VALUES (3, '{'long' * 300}')")
    assert [set(new_by_spark(acid, write).values()) for write in (1, 2, 3)] == [{False}, {True}, {True}]
    ordered = acid.table("d.t", row_id=True).where("ROW__ID.writeId = 1").orderBy("ROW__ID.rowId")
    assert [row["id"] for row in ordered.collect()] == [2, 1], "as they came"
    assert acid.insert("d.t", spark.sql("SELECT 1 AS id, 's' AS s WHERE false")) == 0


def test_rows_of_a_primary_key_are_in_its_order(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (id int, s string, PRIMARY KEY (id) ENFORCED)")
    acid.sql("INSERT INTO d.t VALUES (3, 'c'), (1, 'a'), (2, 'b')")
    assert set(new_by_spark(acid, 1).values()) == {False}
    ordered = acid.table("d.t", row_id=True).orderBy("ROW__ID.rowId")
    assert [row["id"] for row in ordered.collect()] == [1, 2, 3]
    with pytest.raises(HiveAcidError, match="2"):
        acid.sql("INSERT INTO d.t VALUES (2, 'again')")
    assert acid.table("d.t").count() == 3


@pytest.mark.parametrize(
    "values",
    ["(1, 'toolong', 'a')", "(99999999999, 'a', 'a')", "(null, 'a', 'a')", "(-1, 'a', 'a')", "('x', 'a', 'a')",
     "(1 / 0, 'a', 'a')"],
)  # fmt: skip
def test_refusals_are_those_of_a_job(values: str, acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (n int NOT NULL, v varchar(3), k string, CHECK (n > 0)) PARTITIONED BY (p string)")
    told: list[Any] = []
    for limits in ({}, WRITTEN):
        with limited(acid, **limits), pytest.raises(Exception) as refused:  # noqa: PT011
            acid.sql(f"INSERT INTO d.t PARTITION (p = 'x') VALUES {values}")
        told.append((type(refused.value), str(refused.value).splitlines()[0]))
    assert told[0] == told[1]
    assert acid.table("d.t").collect() == []


def test_those_of_a_transaction_are_seen_in_it_and_go_with_it(acid: AcidSession) -> None:
    acid.create_table("d.t", {"id": "int"})
    with pytest.raises(ZeroDivisionError), acid.transaction():
        acid.sql("INSERT INTO d.t VALUES (1), (2)")
        acid.sql("DELETE FROM d.t WHERE id = 1")
        acid.sql("INSERT INTO d.t VALUES (3)")
        assert sorted(row.id for row in acid.table("d.t").collect()) == [2, 3]
        1 / 0  # noqa: B018
    assert acid.table("d.t").collect() == []


def test_rows_of_a_statement_are_had_without_a_job(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", COLUMNS, partitioned_by=KEYS)
    row = ", ".join(values[0] for values in (VALUES | KEY_VALUES).values())
    acid.sql(f"INSERT INTO d.t VALUES ({row})").collect()
    spark.sparkContext.setJobGroup("given", "rows that stand in a statement")
    try:
        told = acid.sql(f"INSERT INTO d.t VALUES ({row}), ({row})").collect()
        jobs = spark.sparkContext.statusTracker().getJobIdsForGroup("given")
    finally:
        spark.sparkContext._jsc.clearJobGroup()
    assert [tuple(one) for one in told] == [(2, 2)]
    assert list(jobs) == []


def test_texts_that_are_no_letters_stay_what_they_are(acid: AcidSession) -> None:
    acid.create_table("d.t", {"s": "string"})
    acid.sql("INSERT INTO d.t VALUES (CAST(X'FF00' AS STRING)), (NULL), ('')")
    found = acid.table("d.t").selectExpr("hex(s) h").collect()
    assert sorted((row.h for row in found), key=str) == ["", "FF00", None]
