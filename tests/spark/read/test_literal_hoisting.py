"""Conditions whose numbers are kept out of generated code: which they are, and that they mean the same."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.catalog.table import Column, Table
from hive_acid.spark import AcidSession
from hive_acid.spark.read.literal_hoisting import early_condition, with_hoisted_literals

TABLE = Table(
    "d",
    "t",
    (Column("id", "int"), Column("big", "BIGINT"), Column("s", "string"), Column("d", "decimal(10,2)")),
    partition_keys=(Column("p", "int"),),
)


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
    ],
)
def test_numbers_of_plain_conditions_are_hoisted(condition: Any, changed: Any) -> None:
    assert with_hoisted_literals(condition, TABLE, "t") == changed


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
        "id DIV 2 = 1",
        "true(1)",
        "id = .5",
        "id = 5.",
        "",
    ],
)
def test_others_stay(condition: Any) -> None:
    assert with_hoisted_literals(condition, TABLE, "t") == condition


def test_a_condition_is_asked_early_if_it_cannot_fail() -> None:
    def field(name: Any) -> Any:
        return f"if(operation = -1, null, row.`{name}`)"

    def number(text: Any) -> Any:
        return f"array({text})[coalesce(bucket & 0, 0)]"

    said = {
        "id = 17": f"{field('id')} = {number(17)}",
        "T.ID%100=-20": f"{field('id')} % {number(100)} = - {number(20)}",
        "t .`Big` IS NULL or not (big > +3)": f"{field('big')} IS NULL or not ( {field('big')} > + {number(3)} )",
        "id between -1 and big": f"{field('id')} between - {number(1)} and {field('big')}",
    }
    assert {text: early_condition(text, TABLE, "t") for text in said} == said


@pytest.mark.parametrize(
    "condition",
    ["id + 1 = 2", "id - 1 = 2", "(id) - 1 = 2", "7 - 1 = id", "-id = 1", "id * 2 = 4", "id % 0 = 1", "1 % id = 0",
     "id % (1) = 0", "p = 1", "id = p", "s = '1'", "d = 1", "u.id = 1", ""],
)  # fmt: skip
def test_it_is_not_if_it_may_fail_or_names_a_partition(condition: Any) -> None:
    assert early_condition(condition, TABLE, "t") is None


def test_they_mean_the_same(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "big": "bigint"}, partitioned_by={"p": "tinyint"})
    acid.insert("d.t", spark.range(100).selectExpr("int(id) id", "if(id % 7 = 0, null, id) big", "tinyint(id % 3) p"))
    for condition in (
        "id % 10 = 3",
        "big - id <> 0 OR big IS NULL",
        "NOT (big > 5)",
        "t.p = 1 AND id BETWEEN 20 AND 40",
        "id * 2 - -4 < 20 and p != 2",
    ):
        assert with_hoisted_literals(condition, acid.connection.table("d", "t"), "t") != condition
        with pytest.raises(RuntimeError, match="undone"), acid.transaction():
            expected = acid.table("d.t").alias("t").where(condition).count()
            assert 0 < acid.delete("d.t", condition) == expected
            raise RuntimeError("undone")
    assert acid.table("d.t").count() == 100
