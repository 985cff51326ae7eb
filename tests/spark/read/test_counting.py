"""`count()` of a table: from the tails of its files where they tell it, else by Spark."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.spark import AcidSession
from tests.spark.compaction import compact_table


@pytest.fixture
def reads(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Any:
    """How often Spark has counted."""
    asked = []
    kind = type(spark.range(0))
    count = kind.count
    monkeypatch.setattr(kind, "count", lambda self: asked.append(1) or count(self))
    return asked


def test_rows_of_clean_tables_are_not_read(acid: AcidSession, spark: SparkSession, reads: Any) -> None:
    acid.create_table("d.t", {"id": "bigint"}, partitioned_by={"k": "int"})
    assert acid.table("d.t").count() == 0
    for _ in range(2):
        acid.insert("d.t", spark.range(100).selectExpr("id", "cast(id % 3 AS int) AS k"))
    reads.clear()
    table = acid.table("d.t")
    acid.insert("d.t", spark.range(1).selectExpr("id", "9 AS k"))
    reads.clear()
    assert table.count() == 200, "of its own snapshot"
    assert acid.table("d.t").count() == 201
    assert reads == []


def test_whatever_else_is_asked_is_read(acid: AcidSession, spark: SparkSession, reads: Any) -> None:
    acid.create_table("d.t", {"id": "bigint"})
    acid.insert("d.t", spark.range(100))
    reads.clear()
    assert acid.table("d.t").where("id > 89").count() == 10
    assert acid.table("d.t", where="id > 89").count() == 10
    assert acid.table("d.t").select("id").distinct().count() == 100
    assert acid.table("d.t").limit(7).count() == 7
    cached = acid.table("d.t").cache()
    assert cached.count() == 100, "this fills the cache"
    cached.unpersist()
    assert len(reads) == 5


def test_rows_that_are_deleted_or_not_visible_are_not_counted(
    acid: AcidSession, spark: SparkSession, reads: Any
) -> None:
    acid.create_table("d.t", {"id": "bigint"})
    acid.insert("d.t", spark.range(100))
    with pytest.raises(ZeroDivisionError), acid.transaction():
        acid.insert("d.t", spark.range(1000))
        1 / 0  # noqa: B018
    assert acid.table("d.t").count() == 100
    acid.delete("d.t", "id < 30")
    reads.clear()
    assert acid.table("d.t").count() == 70
    assert reads == [1]


def test_a_compaction_brings_the_tails_back(acid: AcidSession, spark: SparkSession, reads: Any) -> None:
    acid.create_table("d.t", {"id": "bigint"})
    acid.insert("d.t", spark.range(100))
    acid.delete("d.t", "id < 30")
    compact_table(spark, acid, "d.t", "major")
    reads.clear()
    assert acid.table("d.t").count() == 70
    assert reads == []
