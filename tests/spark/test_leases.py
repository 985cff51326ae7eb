"""What a reader keeps from being cleaned: the tables that it names, and no others."""

import gc
import time

import pytest
from sqlalchemy import text

import hive_acid.spark
from hive_acid.errors import UnknownMethodError
from hive_acid.transaction import Transaction
from metastore.store.database import Database


@pytest.fixture
def acid(spark, metastore):
    with hive_acid.spark.session(spark, metastore()) as session:
        session.create_database("d")
        for name in ("a", "b"):
            session.create_table(f"d.{name}", {"id": "bigint"})
            session.insert(f"d.{name}", spark.range(3))
        yield session


def named(db: Database):
    """The tables that open transactions have named."""
    query = text("SELECT m.tbl, m.write_id FROM min_history_write_id m JOIN txn t USING (txn_id) WHERE t.state = 'o'")
    with db.engine.connect() as connection:
        return {(row.tbl, row.write_id) for row in connection.execute(query)}


def test_a_frame_keeps_its_own_table_only(acid, spark, db):
    frame = acid.table("d.a")
    assert named(db) == {("a", 2)}
    derived = frame.where("id > 0").groupBy().count()
    del frame
    gc.collect()
    assert named(db) == {("a", 2)}, "a frame derived from it keeps the table too"
    assert derived.collect()[0][0] == 2
    del derived
    until = time.monotonic() + 30
    while named(db) and time.monotonic() < until:
        gc.collect()
        time.sleep(0.05)
    assert named(db) == set()


def test_a_snapshot_keeps_everything_until_its_end(acid, db):
    """Which tables it will read is not known: whoever has named none is waited for everywhere."""
    with acid.snapshot():
        assert acid.table("d.a").count() == 3
        assert named(db) == set()
    with acid.snapshot():
        kept = acid.table("d.b")
        assert kept.count() == 3
    assert {table for table, _ in named(db)} >= {"b"}, "its frames need what it has read, as long as they live"
    del kept
    until = time.monotonic() + 30
    while named(db) and time.monotonic() < until:
        gc.collect()
        time.sleep(0.05)
    with acid.transaction():
        acid.delete("d.a", "id = 1")
        assert named(db) == set()


def test_a_verb_alone_keeps_its_own_table_only(acid, spark, db, monkeypatch):
    seen = []
    lock = Transaction.lock

    def looking(self, *components):
        seen.append({table for table, _ in named(db)})
        lock(self, *components)

    monkeypatch.setattr(Transaction, "lock", looking)
    acid.insert("d.a", spark.range(3))
    acid.delete("d.b", "id = 1")
    assert seen == [{"a"}, {"b"}]


def test_a_metastore_that_takes_no_promises_keeps_everything(acid, monkeypatch):
    call = acid.connection.call

    def of_hive_3(method, *args):
        if method == "add_write_ids_to_min_history":
            raise UnknownMethodError(f"the metastore does not serve {method}")
        return call(method, *args)

    monkeypatch.setattr(acid.connection, "call", of_hive_3)
    assert acid.table("d.a").count() == 3


def test_what_is_named_is_the_first_write_that_may_be_open(acid, spark, db):
    other = acid.connection.begin()
    assert other.write_id("d", "a") == 2
    acid.insert("d.a", spark.range(3))
    frame = acid.table("d.a")
    assert frame.count() == 6
    assert named(db) == {("a", 2)}
    other.abort()
