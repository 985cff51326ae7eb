"""Changes by conditions with sums: as plain Spark finds the rows, whatever rows that are gone would have come to."""

import logging
import random
from collections.abc import Sequence

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from hive_acid.spark import AcidSession
from tests.spark.compaction import compact_table

OF_PLANS = "hive_acid.spark.plans"
TYPES = {"id": "int", "a": "bigint", "b": "int", "c": "tinyint", "d": "decimal(12,2)", "x": "double"}
TAME = {"a": ("0L", "-7L", "123456789L"), "b": ("0", "7", "-46340"), "c": ("0Y", "63Y", "NULL")}
HOSTILE = {
    "a": ("9223372036854775807L", "-9223372036854775807L - 1L"),
    "b": ("2147483647", "-2147483647 - 1"),
    "c": ("127Y", "-127Y - 1Y"),
}
OTHERS = {"d": ("9999999999.99", "-0.01", "NULL"), "x": ("1e308D", "-0.0D", "double('NaN')")}


@pytest.mark.parametrize("seed", range(2))
def test_sums_find_the_rows_that_plain_spark_finds(acid: AcidSession, spark: SparkSession, seed: int) -> None:
    choice = random.Random(seed)
    acid.create_table("d.t", TYPES)
    number, outcomes = 0, set()
    for step in range(14):
        if step % 7 == 0:
            hostile = step > 0 or seed > 0
            acid.insert("d.t", _rows(spark, choice, range(number, number + 30), hostile=hostile))
            number += 30
            if hostile and choice.random() < 0.7:
                gone = ", ".join(f"{of}" for name in "abc" for of in HOSTILE[name])
                acid.delete("d.t", f"a IN ({gone}) OR b IN ({gone}) OR c IN ({gone})")
            if seed:
                compact_table(spark, acid, "d.t", choice.choice(("minor", "major")))
        condition = " AND ".join(_condition(choice) for _ in range(choice.randrange(1, 3)))
        rows = acid.table("d.t").collect()
        before = spark.createDataFrame(rows, acid.table("d.t").schema).coalesce(1).alias("t")
        try:
            found = sorted(row[0] for row in before.where(condition).select("id").collect())
        except PySparkException:
            outcomes.add("refused")
            with pytest.raises(PySparkException):
                acid.delete("d.t", condition)
            assert sorted(map(str, acid.table("d.t").collect())) == sorted(map(str, rows)), condition
            continue
        outcomes.add("found" if found else "nothing")
        if choice.random() < 0.5:
            assert acid.delete("d.t", condition) == len(found), condition
            expected = [row for row in rows if row[0] not in found]
        else:
            assert acid.update("d.t", {"d": "1.25"}, condition) == len(found), condition
            expected = rows
        left = acid.table("d.t").collect()
        assert sorted(row[0] for row in left) == sorted(row[0] for row in expected), condition
    assert "found" in outcomes


def test_sums_that_have_room_are_asked_of_rows_that_are_gone(
    acid: AcidSession, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    """Tails tell that there is room. In the second half a file has a number for which there is none."""
    caplog.set_level(logging.DEBUG, OF_PLANS)
    acid.create_table("d.t", {"b": "int"})
    acid.insert("d.t", spark.range(100).selectExpr("int(id) b").coalesce(1))
    assert acid.delete("d.t", "b * 2 + 1 = 9") == 1
    assert acid.delete("d.t", "b * 2 + 1 BETWEEN 9 AND 11") == 1
    assert "it knows them" in caplog.text
    caplog.clear()
    acid.insert("d.t", spark.sql("SELECT 2147483647 b"))
    with pytest.raises(PySparkException):
        acid.delete("d.t", "b * 2 + 1 = 17")
    acid.delete("d.t", "b = 2147483647")
    caplog.clear()
    assert acid.delete("d.t", "b * 2 + 1 = 17") == 1
    assert "it knows them" not in caplog.text


def _rows(spark: SparkSession, choice: random.Random, ids: Sequence[int], *, hostile: bool) -> DataFrame:
    def value(name: str) -> str:
        if name in OTHERS:
            return choice.choice(OTHERS[name])
        return choice.choice(HOSTILE[name] if hostile and choice.random() < 0.05 else TAME[name])

    lines = (
        ", ".join([f"{number} id", *(f"CAST({value(name)} AS {TYPES[name]}) {name}" for name in "abcdx")])
        for number in ids
    )
    return spark.sql(" UNION ALL ".join(f"SELECT {line}" for line in lines)).coalesce(1)


def _condition(choice: random.Random) -> str:
    return f"{_sum(choice, 2)} {choice.choice(('<', '>=', '<>', '<='))} {_sum(choice, 1)}"


def _sum(choice: random.Random, depth: int) -> str:
    if not depth or choice.random() < 0.2:
        return choice.choice(("a", "b", "t.b", "c", "d", "x", "id", "7", "1000000", "2.5"))
    one, other = _sum(choice, depth - 1), _sum(choice, depth - 1)
    return choice.choice(
        (f"({one} + {other})", f"({one} - {other})", f"({one} * {other})", f"{one} / 4", f"abs({one})", f"(-{one})",
         f"{one} % 7", f"pmod({one}, 10)", f"({one} DIV 3)")
    )  # fmt: skip
