"""What users have cached of a table is not taken for another one's rows, or for later ones, under the same paths."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.filesystem import files
from hive_acid.operators import show
from hive_acid.spark import AcidSession
from tests.waiting import until

PROPERTIES = {
    "full": {},
    "insert-only": {"transactional_properties": "insert_only"},
    "parquet": {"transactional_properties": "insert_only"},
    "originals": {"transactional": "false"},
}


@pytest.fixture(autouse=True)
def _nothing_cached(spark: SparkSession) -> Iterator[None]:
    yield
    spark.catalog.clearCache()


def read(acid: AcidSession) -> Any:
    return sorted(row.id for row in acid.table("d.t").collect())


def until_nobody_reads(acid: AcidSession) -> None:
    """What is cached outlives its frame; without a snapshot a table made anew has the place of the one before."""
    until(lambda: not any("open" in row for row in show.transactions(acid.connection).rows), between=gc.collect)


def create(acid: AcidSession, kind: Any) -> None:
    stored: dict[str, Any] = {"stored_as": "PARQUET"} if kind == "parquet" else {}
    acid.create_table("d.t", {"id": "int"}, properties=PROPERTIES[kind], **stored)


def fill(acid: AcidSession, kind: Any, number: Any) -> None:
    frame = acid.spark.sql(f"SELECT {number} AS id")
    if kind != "originals":
        acid.insert("d.t", frame)
        return
    place = acid.connection.table("d", "t").location
    name = "000000_0"
    frame.coalesce(1).write.mode("overwrite").orc(f"{place}_made")
    (made,) = files.list_tree(f"{place}_made")[-1:]
    files.rename(f"{place}_made/{made.path}", f"{place}/{name}")
    files.remove(f"{place}_made")
    acid.convert_table("d.t", compact=False)


@pytest.mark.parametrize("kind", PROPERTIES)
def test_a_table_that_is_made_anew_is_not_the_cached_one(acid: AcidSession, kind: Any) -> None:
    create(acid, kind)
    fill(acid, kind, 1)
    assert acid.table("d.t").cache().count() == 1
    until_nobody_reads(acid)
    acid.drop_table("d.t")
    create(acid, kind)  # in the same place, unless the server takes the dropped one's files for somebody's still
    fill(acid, kind, 2)
    assert read(acid) == [2]
    acid.sql("SELECT * FROM d.t").createOrReplaceTempView("seen")
    assert [row.id for row in acid.sql("SELECT id FROM seen").collect()] == [2]


@pytest.mark.parametrize("kind", ["full", "parquet"])
def test_what_a_transaction_overwrites_twice_is_not_the_cached_first(
    acid: AcidSession, spark: SparkSession, kind: Any
) -> None:
    create(acid, kind)
    fill(acid, kind, 1)
    with acid.transaction():
        acid.overwrite("d.t", spark.sql("SELECT 2 AS id"))
        assert acid.table("d.t").cache().count() == 1
        acid.overwrite("d.t", spark.sql("SELECT 3 AS id"))
        assert read(acid) == [3]
    assert read(acid) == [3]
