"""Conditions whose numbers are kept out of generated code: which they are, and that they mean the same."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.catalog.table import Column, Table
from hive_acid.spark import AcidSession
from hive_acid.spark.conditions.failures import DAYS_AS_TEXTS
from hive_acid.spark.read.literal_hoisting import with_hoisted_literals

TABLE = Table(
    "d",
    "t",
    (
        Column("id", "int"),
        Column("big", "BIGINT"),
        Column("s", "string"),
        Column("d", "decimal(10,2)"),
        Column("day", "date"),
    ),
    partition_keys=(Column("p", "int"),),
)


A_TEXT, B_TEXT = "'2020-01-01'", "'2020-01-31'"
FIRST, LAST = "date '2020-01-01'", "date'2020-01-31'"


def hoisted(number: Any) -> Any:
    return f"array({number})[coalesce(__acid_bucket & 0, 0)]"


@pytest.mark.parametrize(
    ("condition", "changed"),
    [
        ("id = 17", f"id = {hoisted(17)}"),
        ("ID%100=20", f"ID%{hoisted(100)}={hoisted(20)}"),
        (
            "t.id >= 5 AND NOT (`big` + -1 <=> 7)",
            f"t.id >= {hoisted(5)} AND NOT (`big` + -{hoisted(1)} <=> {hoisted(7)})",
        ),
        ("p IS NOT NULL or id between 1 and 2", f"p IS NOT NULL or id between {hoisted(1)} and {hoisted(2)}"),
        ("pmod(xxhash64(s, 7), 100)=13", f"pmod(xxhash64(s, 7), 100)={hoisted(13)}"),
        ("day >= DATE'2020-01-01' AND s = '= 5'", "day >= " + hoisted("DATE'2020-01-01'") + " AND s = '= 5'"),
        (
            "day BETWEEN date '2020-01-01' AND date'2020-01-31' or big = 3",
            f"day BETWEEN {hoisted(FIRST)} AND {hoisted(LAST)} or big = {hoisted(3)}",
        ),
        (
            "day >= '2020-01-01' AND day<'2020-01-31' AND s LIKE '2020-01-01'",
            f"day >= {hoisted('DATE ' + A_TEXT)} AND day<{hoisted('DATE ' + B_TEXT)} AND s LIKE '2020-01-01'",
        ),
        ("id DIV 2 = 1", f"id DIV 2 = {hoisted(1)}"),
        ("s LIKE 'a%' AND (year(day) = 2020)", f"s LIKE 'a%' AND (year(day) = {hoisted(2020)})"),
    ],
)
def test_numbers_of_plain_conditions_are_hoisted(condition: Any, changed: Any, spark: SparkSession) -> None:
    assert with_hoisted_literals(spark, condition, TABLE, "t") == changed


def test_days_stay_texts_where_spark_compares_them_as_texts(spark: SparkSession) -> None:
    spark.conf.set(DAYS_AS_TEXTS, "true")
    try:
        assert with_hoisted_literals(spark, "day = '2020-01-01'", TABLE, "t") == "day = '2020-01-01'"
    finally:
        spark.conf.unset(DAYS_AS_TEXTS)


@pytest.mark.parametrize(
    "condition",
    [
        "d = 1",
        "s = 1",
        "id = 1.5",
        "id = 1e3",
        "id = 1L",
        "id = 1234567890",
        "id = '1'",
        "id IN (1, 2)",
        "abs(id) = 1",
        "rand(5) < 1",
        "x.id = 1",
        "id = 1 -- 2",
        "id = 1 /* 2 */",
        "id = (SELECT 1)",
        "id / 2 = 1",
        "true(1)",
        "id = .5",
        "d = 1 AND id = 2",
        "day = 5",
        "day = '2020-01-32'",
        "s = '2020-01-01'",
        "day = '2020-01-01' AND s <> '2020-01-01'",
        "day IN ('2020-01-01', '2020-01-02')",
        "day = '2020-1-1'",
        "s = 5",
        "id = date'2020-01-01'",
        "id IN (1, 2) AND d > 5",
        "hash(id) = 1234567890",
        "hash(id) = 1 + 2",
        "hash(id) = 1 -- 2",
        "day > date'2020-01-01' + 1",
        "s IN (SELECT s FROM o WHERE id = 3)",
        "exists(array(1), id -> id = 3) AND s = 'x'",
        "id = 5.",
        "",
    ],
)
def test_others_stay(condition: Any, spark: SparkSession) -> None:
    assert with_hoisted_literals(spark, condition, TABLE, "t") == condition


def test_they_mean_the_same(acid: AcidSession, spark: SparkSession) -> None:
    columns = {"id": "int", "big": "bigint", "day": "date", "s": "string"}
    acid.create_table("d.t", columns, partitioned_by={"p": "tinyint"})
    values = ("if(id % 7 = 0, null, id) big", "date'2020-01-01' + int(id) day", "string(id) s", "tinyint(id % 3) p")
    acid.insert("d.t", spark.range(100).selectExpr("int(id) id", *values))
    for condition in (
        "id % 10 = 3",
        "big - id <> 0 OR big IS NULL",
        "NOT (big > 5)",
        "t.p = 1 AND id BETWEEN 20 AND 40",
        "id * 2 - -4 < 20 and p != 2",
        "pmod(xxhash64(s, id), 10) = 3",
        "day BETWEEN date'2020-01-05' AND DATE '2020-02-01' AND s LIKE '%1%'",
        "day BETWEEN '2020-01-05' AND '2020-02-01' AND s LIKE '%1%'",
        "day >= '2020-02-01' OR day < '2020-01-03'",
        "date'2020-02-28' < day OR hash(day) % 5 = 1",
    ):
        assert with_hoisted_literals(spark, condition, acid.connection.table("d", "t"), "t") != condition
        with pytest.raises(RuntimeError, match="undone"), acid.transaction():
            expected = acid.table("d.t").alias("t").where(condition).count()
            assert 0 < acid.delete("d.t", condition) == expected
            raise RuntimeError("undone")
    assert acid.table("d.t").count() == 100
