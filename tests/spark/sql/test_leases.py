"""What a query keeps from being cleaned: the tables that it reads, and no others."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.spark import AcidSession
from tests.spark.snapshots.test_leases import named
from tests.waiting import until


@pytest.fixture
def acid(spark: SparkSession, metastore: Any) -> Iterator[Any]:
    with hive_acid.spark.session(spark, metastore()) as session:
        session.create_database("d")
        for name in ("a", "b", "c"):
            session.create_table(f"d.{name}", {"id": "bigint"})
        yield session


def test_a_query_keeps_the_tables_that_it_reads(acid: AcidSession, db: Any) -> None:
    frame = acid.sql("SELECT a.id FROM d.a JOIN d.b USING (id) WHERE id NOT IN (SELECT id FROM d.a)")
    assert named(db) == {"a", "b"}
    with acid.snapshot():
        inside = acid.sql("SELECT * FROM d.c")
        assert named(db) == {"a", "b"}, "what else the block will read is not known"
    del frame, inside
    until(lambda: named(db) == set(), between=gc.collect)
