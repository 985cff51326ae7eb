"""What a query keeps from being cleaned: the tables that it reads, and no others."""

import gc

import pytest

import hive_acid.spark
from tests.spark.snapshots.test_leases import named
from tests.spark.test_session import until


@pytest.fixture
def acid(spark, metastore):
    with hive_acid.spark.session(spark, metastore()) as session:
        session.create_database("d")
        for name in ("a", "b", "c"):
            session.create_table(f"d.{name}", {"id": "bigint"})
        yield session


def test_a_query_keeps_the_tables_that_it_reads(acid, db):
    frame = acid.sql("SELECT a.id FROM d.a JOIN d.b USING (id) WHERE id NOT IN (SELECT id FROM d.a)")
    assert named(db) == {"a", "b"}
    with acid.snapshot():
        inside = acid.sql("SELECT * FROM d.c")
        assert named(db) == {"a", "b"}, "what else the block will read is not known"
    del frame, inside
    until(lambda: gc.collect() >= 0 and named(db) == set())
