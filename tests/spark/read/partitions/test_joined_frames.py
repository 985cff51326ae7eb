"""Joins of frames: partitions of a table that a small frame does not reach are not read, and no row differs."""

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hive_acid.spark import AcidSession
from hive_acid.spark.limits import Limits
from hive_acid.spark.plans.telling import heard_plans
from hive_acid.spark.read.filter_pushdown import JoinedFrame
from tests.spark.conftest import OVER_CONNECT
from tests.spark.snapshots.test_leases import named
from tests.spark.sql.test_joined_partitions import DAYS, all_partitions, partitions_read
from tests.waiting import until

pytestmark = pytest.mark.skipif(OVER_CONNECT, reason="over Connect all partitions are read")

Sides = tuple[DataFrame, DataFrame]


@pytest.fixture
def tables(acid: AcidSession, spark: SparkSession, tmp_path: Path) -> AcidSession:
    """A table of rows by days and shops, and one about days, of ours and of Spark."""
    acid.create_table("d.sales", {"id": "bigint", "n": "int"}, partitioned_by={"day": "date", "shop": "string"})
    made = "id, int(id % 7) n, date_add('2026-01-01', int(id % 5)) day, nullif(concat('s', id % 3), 's2') shop"
    acid.insert("d.sales", spark.sql(f"SELECT {made} FROM range(60)").coalesce(1))
    acid.create_table("d.days", {"day": "date", "week": "int", "n": "int", "region": "string"})
    acid.insert("d.days", spark.sql(f"SELECT {DAYS} FROM range(9)"))
    place = str(tmp_path / "days")
    spark.sql(f"SELECT {DAYS} FROM range(9)").write.parquet(place)
    spark.read.parquet(place).createOrReplaceTempView("days")
    return acid


def bound(sales: DataFrame, days: DataFrame) -> DataFrame:
    return sales.join(F.broadcast(days), sales.day == days.day).select(sales.id, days.region, sales.day)


def bound_later(sales: DataFrame, days: DataFrame) -> DataFrame:
    return sales.join(days, "day").select(sales.id, days.region, "day", sales["shop"])


def called(sales: DataFrame, days: DataFrame) -> DataFrame:
    days = days.alias("d")
    return sales.join(days, sales.day == F.col("d.day")).where("d.n < 3").select(sales.n, "d.n")


def twice(sales: DataFrame, days: DataFrame) -> DataFrame:
    shops = days.sparkSession.createDataFrame([("s0", 1), ("s1", 2)], "shop string, x int")
    return sales.join(days, sales.day == days.day).join(shops, "shop").groupBy("x", sales.day).count()


NARROWED: dict[str, Callable[[DataFrame, DataFrame], DataFrame]] = {
    "by name": lambda sales, days: sales.join(days, "day"),
    "by names": lambda sales, days: sales.join(days, ["day", "n"]),
    "semi": lambda sales, days: sales.join(days, ["day"], "left_semi"),
    "right": lambda sales, days: sales.join(days, "day", "right"),
    "filtered": lambda sales, days: sales.where("n > 2").join(days, "day").where(F.col("id") > 9),
    "counted": lambda sales, days: sales.join(days, "day").groupBy("region").count(),
    "bound": bound,
    "bound later": bound_later,
    "called": called,
    "twice": twice,
}
WHOLE: dict[str, Callable[[DataFrame, DataFrame], DataFrame]] = {
    "left": lambda sales, days: sales.join(days, "day", "left"),
    "full": lambda sales, days: sales.join(days, "day", "full"),
    "anti": lambda sales, days: sales.join(days, "day", "left_anti"),
    "cross": lambda sales, days: sales.crossJoin(days.drop("day", "n")),
    "other column": lambda sales, days: sales.join(days, "n"),
    "null-safe": lambda sales, days: sales.join(days, sales.day.eqNullSafe(days.day)),
}


@pytest.mark.parametrize(
    ("join", "of"),
    [*((join, "ours") for join in NARROWED), *((join, "of Spark") for join in (*NARROWED, *WHOLE)),
     ("bound", "kept"), ("by name", "kept"), ("by name", "as now")],
)  # fmt: skip
def test_rows_are_those_of_a_join_of_all_partitions(
    tables: AcidSession, spark: SparkSession, join: str, of: str
) -> None:
    def sides() -> Sides:
        days = tables.table("d.days") if of == "ours" else spark.table("days")
        found = days.where("week = 0")
        if of == "as now":
            found = found.limit(3).where("day < '3000-01-01'")
        return tables.table("d.sales"), found.cache() if of == "kept" else found

    made = (NARROWED | WHOLE)[join]
    with heard_plans() as heard:
        found = sorted(map(str, made(*sides()).collect()))
    assert partitions_read(heard)[-1] == f"  partitions: {6 if join in NARROWED else 15} of 15"
    with all_partitions(tables):
        assert found == sorted(map(str, made(*sides()).collect()))
    spark.catalog.clearCache()


def test_a_join_that_is_not_used_runs_no_job(tables: AcidSession, spark: SparkSession) -> None:
    days = spark.table("days").where("week = 0").where(F.udf(lambda day: 1 // 0, "int")("day") == 0)
    with heard_plans() as heard:
        joined = tables.table("d.sales").join(F.broadcast(days), "day")
    assert isinstance(joined, JoinedFrame)
    assert heard == []


def test_a_join_keeps_the_rows_of_when_it_was_first_used(tables: AcidSession, spark: SparkSession) -> None:
    days = spark.sql("SELECT day, week, rand() r FROM days WHERE week = 0")
    joined = tables.table("d.sales").join(days, "day")
    first = sorted(joined.collect())
    assert sorted(joined.collect()) == first
    assert sorted(joined.where("id >= 0").collect()) == first
    tables.delete("d.sales", "id < 30")
    assert sorted(joined.collect()) == first


def test_a_join_with_itself_means_what_spark_says(tables: AcidSession) -> None:
    sales = tables.table("d.sales")
    some = sales.filter(sales.n > 4)
    with pytest.raises(AnalysisException):
        sales.join(some, (sales.day == some.day) & (sales.n > some.n)).count()
    assert sales.join(some.select("day").distinct(), "day").count() == 60


def test_what_is_wrong_with_a_join_is_said_at_once(tables: AcidSession, spark: SparkSession) -> None:
    sales, days = tables.table("d.sales"), spark.table("days").where("week = 0")
    for on in ("nothing", F.col("nothing") == 1, F.col("n") == 1):
        with pytest.raises(AnalysisException):
            sales.join(days, on)
    with pytest.raises(AnalysisException):
        sales.join(days, "day", "sideways")


def test_frames_of_a_join_keep_the_snapshot(tables: AcidSession, spark: SparkSession, db: Any) -> None:
    days = spark.table("days").where("week = 0")
    for by_name in (True, False):
        sales = tables.table("d.sales")
        joined = sales.join(days, "day" if by_name else sales.day == days.day)
        found: Any = joined.select("id")
        del sales, joined
        gc.collect()
        assert named(db) == {"sales"}
        assert found.count() == 24
        del found
        gc.collect()
        until(lambda: named(db) == set())


def test_a_small_table_of_many_keys_leaves_out_nothing(tables: AcidSession, spark: SparkSession) -> None:
    days = spark.table("days").where("week = 0")
    for limits in (Limits(joined_values=1), Limits(joined_bytes=1), Limits(joined_rows=1)):
        tables.limits = limits
        with heard_plans() as heard:
            assert tables.table("d.sales").join(days, "day").count() == 24
        assert partitions_read(heard)[-1] == "  partitions: 15 of 15"


def test_in_a_transaction_that_writes_all_is_read_at_once(tables: AcidSession, spark: SparkSession) -> None:
    days = spark.table("days").where("week = 0")
    with tables.transaction():
        tables.insert("d.sales", spark.sql("SELECT 99L id, 1 n, DATE '2026-01-01' day, 's0' shop"))
        assert tables.table("d.sales").join(days, "day").count() == 25
