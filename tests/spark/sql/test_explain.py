"""EXPLAIN says which way a statement takes: the one that the statement itself then says it takes, in the debug log."""

from __future__ import annotations

import gc
import logging

import pytest

from hive_acid.spark.limits import Limits
from tests.spark.checker import location_of
from tests.spark.test_session import until

OF_PLANS = "hive_acid.spark.plans"


def state_of(acid, db):
    """All that lies in the database ``d``, the write ids given, and the transactions that are open."""
    files = sorted(map(str, location_of(acid, "d.t").parent.rglob("*")))
    with db.engine.connect() as connection:
        ids = connection.exec_driver_sql("SELECT * FROM write_id_counter ORDER BY db, tbl").fetchall()
    return files, ids


def open_transactions(db):
    with db.engine.connect() as connection:
        return connection.exec_driver_sql("SELECT count(*) FROM txn WHERE state = 'o'").scalar_one()


def said(caplog):
    return "\n\n".join(record.getMessage() for record in caplog.records if record.name == OF_PLANS)


@pytest.fixture
def told(acid, db, caplog):
    """A function: what EXPLAIN says of a statement, which is then run and says the same."""
    caplog.set_level(logging.DEBUG, OF_PLANS)

    def told(text):
        acid.sql(f"EXPLAIN {text}")  # what is learnt by it is known from now on
        before = state_of(acid, db)
        caplog.clear()
        (shown,) = (row.plan for row in acid.sql(f"EXPLAIN {text}").collect())
        plan = shown.partition("== ACID Plan ==\n")[2].strip()
        assert plan == said(caplog)
        assert state_of(acid, db) == before, "EXPLAIN changes nothing"
        until(lambda: gc.collect() >= 0 and not open_transactions(db))
        caplog.clear()
        acid.sql(text).collect()
        assert said(caplog) == plan
        return plan

    return told


@pytest.fixture
def numbers(acid, spark):
    """``d.t`` of two files, of which one has deleted rows; ``d.p`` of three partitions."""
    acid.create_table("d.t", {"id": "bigint", "text": "string"})
    acid.insert("d.t", spark.range(0, 1000).selectExpr("id", "concat('n', id) AS text").coalesce(1))
    acid.insert("d.t", spark.range(1000, 2000).selectExpr("id", "concat('n', id) AS text").coalesce(1))
    acid.delete("d.t", "id < 10")
    acid.create_table("d.p", {"id": "bigint"}, partitioned_by={"p": "int"})
    acid.insert("d.p", spark.range(30).selectExpr("id", "int(id % 3) AS p"))
    return acid


# --- queries -------------------------------------------------------------------------------------


def test_a_query_says_how_deleted_rows_are_left_out(numbers, told):
    plan = told("SELECT * FROM d.t")
    assert "Read d.t" in plan
    assert "partitions: 1 of 1" in plan
    assert "files: 2 of 2" in plan
    assert "1 file that deletes may reach, 1 others" in plan
    assert "reach: by the ids in footers" in plan
    assert "deletes: look-up: 10 delete events in 1 file" in plan
    assert "scans: one: " in plan
    assert "analysed plan: kept" in plan
    numbers.limits = Limits(delete_events=9)
    plan = told("SELECT * FROM d.t")
    assert "deletes: broadcast join: 10 delete events, more than 9" in plan
    assert "scans: one for each kind of files" in plan
    numbers.limits = Limits(delete_events=9, broadcast_bytes=1)
    assert "deletes: shuffled join: 10 delete events, more than 9" in told("SELECT * FROM d.t")
    numbers.limits = Limits(deletes_reach_files=-1, known_frame_files=-1)
    plan = told("SELECT * FROM d.t")
    assert "reach: by write ids" in plan
    assert "analysed plan: made anew: 2 files, more than -1" in plan


def test_a_query_says_what_it_leaves_out(numbers, told):
    plan = told("SELECT * FROM d.p WHERE p = 1 AND id < 100")
    assert "partitions: 1 of 3" in plan
    assert "row groups: those in which" in plan
    plan = told("SELECT * FROM d.t WHERE id = 1500")
    assert "files: 1 of 2" in plan
    assert "deletes: none" in plan
    assert "row groups: all" in told("SELECT * FROM d.p WHERE p = 1")
    plan = told("SELECT * FROM d.t WHERE id IN (SELECT id FROM d.p) UNION ALL SELECT p, 'x' FROM d.p")
    assert plan.count("Read ") == 3


def test_a_query_of_other_tables_is_sparks_to_explain(acid, spark):
    (row,) = acid.sql("EXPLAIN EXTENDED SELECT id FROM range(3)").collect()
    assert "== Physical Plan ==" in row.plan
    assert "ACID" not in row.plan
    acid.create_table("d.i", {"id": "bigint"}, properties={"transactional_properties": "insert_only"})
    acid.insert("d.i", spark.range(3))
    assert "insert-only" in acid.sql("EXPLAIN SELECT * FROM d.i").collect()[0].plan


def test_a_count_says_where_the_number_comes_from(numbers, caplog):
    caplog.set_level(logging.DEBUG, OF_PLANS)
    assert numbers.table("d.p").count() == 30
    assert "Count d.p\n  rows: footers" in said(caplog)
    caplog.clear()
    assert numbers.table("d.t").count() == 1990
    assert "Count d.t\n  rows: rows" in said(caplog)
