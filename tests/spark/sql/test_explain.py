"""EXPLAIN says which way a statement takes: the one that the statement itself then says it takes, in the debug log."""

from __future__ import annotations

import gc
import logging
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import ColumnError
from hive_acid.spark import AcidSession
from hive_acid.spark.limits import Limits
from tests.spark.checker import location_of
from tests.spark.conftest import OVER_CONNECT
from tests.spark.test_session import until

OF_PLANS = "hive_acid.spark.plans"


def state_of(acid: AcidSession, db: Any) -> Any:
    """All that lies in the database ``d``, the write ids given, and the transactions that are open."""
    files = sorted(map(str, location_of(acid, "d.t").parent.rglob("*")))
    with db.engine.connect() as connection:
        ids = connection.exec_driver_sql("SELECT * FROM write_id_counter ORDER BY db, tbl").fetchall()
    return files, ids


def open_transactions(db: Any) -> Any:
    with db.engine.connect() as connection:
        return connection.exec_driver_sql("SELECT count(*) FROM txn WHERE state = 'o'").scalar_one()


def said(caplog: Any) -> Any:
    return "\n\n".join(record.getMessage() for record in caplog.records if record.name == OF_PLANS)


@pytest.fixture
def told(acid: AcidSession, db: Any, caplog: pytest.LogCaptureFixture) -> Any:
    """A function: what EXPLAIN says of a statement, which is then run and says the same."""
    caplog.set_level(logging.DEBUG, OF_PLANS)

    def told(text: Any) -> Any:
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
def numbers(acid: AcidSession, spark: SparkSession) -> Any:
    """``d.t`` of two files, of which one has deleted rows; ``d.p`` of three partitions."""
    acid.create_table("d.t", {"id": "bigint", "text": "string"})
    acid.insert("d.t", spark.range(0, 1000).selectExpr("id", "concat('n', id) AS text").coalesce(1))
    acid.insert("d.t", spark.range(1000, 2000).selectExpr("id", "concat('n', id) AS text").coalesce(1))
    acid.delete("d.t", "id < 10")
    acid.create_table("d.p", {"id": "bigint"}, partitioned_by={"p": "int"})
    acid.insert("d.p", spark.range(30).selectExpr("id", "int(id % 3) AS p"))
    return acid


def _kept(elsewhere: str) -> str:
    """What is said of the analysed plan: over Connect there is none to be kept."""
    return "made anew: over Connect" if OVER_CONNECT else elsewhere


# --- queries -------------------------------------------------------------------------------------


def test_a_query_says_how_deleted_rows_are_left_out(numbers: Any, told: Any) -> None:
    plan = told("SELECT * FROM d.t")
    assert "Read d.t" in plan
    assert "partitions: 1 of 1" in plan
    assert "files: 2 of 2" in plan
    assert "1 file that deletes may reach, 1 others" in plan
    assert "reach: by the ids in footers" in plan
    assert "deletes: look-up: 10 delete events in 1 file" in plan
    assert "scans: one: " in plan
    assert f"analysed plan: {_kept('kept')}" in plan
    numbers.limits = Limits(delete_events=9)
    plan = told("SELECT * FROM d.t")
    assert "deletes: broadcast join: 10 delete events, more than 9" in plan
    assert "scans: one for each kind of files" in plan
    numbers.limits = Limits(delete_events=9, broadcast_bytes=1)
    assert "deletes: shuffled join: 10 delete events, more than 9" in told("SELECT * FROM d.t")
    numbers.limits = Limits(deletes_reach_files=-1, cached_plan_files=-1)
    plan = told("SELECT * FROM d.t")
    assert "reach: by write ids" in plan
    assert f"analysed plan: {_kept('made anew: 2 files, more than -1')}" in plan


def test_a_query_says_what_it_leaves_out(numbers: Any, told: Any) -> None:
    plan = told("SELECT * FROM d.p WHERE p = 1 AND id < 100")
    assert "partitions: 1 of 3" in plan
    assert "row groups: those in which" in plan
    plan = told("SELECT * FROM d.t WHERE id = 1500")
    assert "files: 1 of 2" in plan
    assert "deletes: none" in plan
    assert "row groups: all" in told("SELECT * FROM d.p WHERE p = 1")
    plan = told("SELECT * FROM d.t WHERE id IN (SELECT id FROM d.p) UNION ALL SELECT p, 'x' FROM d.p")
    assert plan.count("Read ") == 2, "what is read twice in one way is read once"


def test_a_query_of_other_tables_is_sparks_to_explain(acid: AcidSession, spark: SparkSession) -> None:
    (row,) = acid.sql("EXPLAIN EXTENDED SELECT id FROM range(3)").collect()
    assert "== Physical Plan ==" in row.plan
    assert "ACID" not in row.plan
    acid.create_table("d.i", {"id": "bigint"}, properties={"transactional_properties": "insert_only"})
    acid.insert("d.i", spark.range(3))
    assert "insert-only" in acid.sql("EXPLAIN SELECT * FROM d.i").collect()[0].plan


def test_a_count_says_where_the_number_comes_from(numbers: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, OF_PLANS)
    assert numbers.table("d.p").count() == 30
    assert "Count d.p\n  rows: footers" in said(caplog)
    caplog.clear()
    assert numbers.table("d.t").count() == 1990
    assert "Count d.t\n  rows: rows" in said(caplog)


# --- changes -------------------------------------------------------------------------------------


@pytest.fixture
def source(numbers: Any, spark: SparkSession) -> Any:
    numbers.create_table("d.s", {"id": "bigint", "text": "string"})
    numbers.insert("d.s", spark.createDataFrame([(20, "x"), (30, "y"), (4000, "z")], "id long, text string"))
    return numbers


CLIENT, IN_PLACE, SHUFFLED = "written by: the client", "Spark job: where they are", "Spark job: after a shuffle"


def test_an_update_says_who_writes(numbers: Any, told: Any) -> None:
    plan = told("UPDATE d.t SET text = 'new' WHERE id = 20")
    assert plan.startswith("Read d.t\n")
    assert "\n\nUPDATE of d.t\n" in plan
    assert CLIENT in plan
    assert IN_PLACE in plan
    plan = told("UPDATE d.t SET text = 'new'")
    assert "written by: a Spark job: nothing says that few rows are changed" in plan
    assert IN_PLACE in plan
    numbers.create_table("d.c", {"id": "bigint"}, clustered_by=["id"], buckets=2)
    plan = told("UPDATE d.c SET id = 1 WHERE id = 20")
    assert "written by: a Spark job: the table is CLUSTERED" in plan
    assert SHUFFLED in plan


def test_a_delete_says_who_knows_what_is_gone(numbers: Any, told: Any) -> None:
    plan = told("DELETE FROM d.t WHERE id = 20")
    assert "deletes: left to the statement" in plan
    assert "left out by: the client" in plan
    assert CLIENT in plan
    plan = told("DELETE FROM d.t WHERE 10 / id = 5")
    assert "deletes: look-up" in plan
    assert "left out by: the scan" in plan
    numbers.limits = Limits(delete_events=0)
    assert "left out by: the scan: " in told("DELETE FROM d.t WHERE id = 21")


def test_what_a_client_gives_up_is_said_by_the_run(numbers: Any, caplog: pytest.LogCaptureFixture) -> None:
    numbers.limits = Limits(driver_deletes=2, driver_rows=2)
    for text in ("DELETE FROM d.t WHERE id BETWEEN 20 AND 29", "UPDATE d.t SET text = 'x' WHERE id BETWEEN 50 AND 59"):
        shown = numbers.sql(f"EXPLAIN {text}").collect()[0].plan.partition("== ACID Plan ==\n")[2].strip()
        caplog.set_level(logging.DEBUG, OF_PLANS)
        caplog.clear()
        numbers.sql(text)
        assert said(caplog).startswith(shown)
        assert "up to 2 rows" in shown
        assert "a Spark job after all: there are more than 2 rows" in said(caplog)


def test_a_merge_says_how_it_is_joined(source: Any, told: Any) -> None:
    text = (
        "MERGE INTO d.t USING d.s ON t.id = s.id WHEN MATCHED THEN UPDATE SET text = s.text "
        "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.text)"
    )
    plan = told(text)
    assert plan.startswith("Read d.s\n")
    assert "source: broadcast: 3 rows" in plan
    assert CLIENT in plan
    source.limits = Limits(driver_rows=2)
    assert "written by: a Spark job: the source has 3 rows, more than 2" in told(text)
    source.limits = Limits(broadcast_bytes=1)
    plan = told(text)
    assert "joined by Spark's choice" in plan
    assert f"{SHUFFLED}: the source is not broadcast" in plan
    source.limits = Limits()
    assert "\nUPDATE of d.t\n" in told("UPDATE d.t SET text = s.text FROM d.s WHERE t.id = s.id")
    assert "source: broadcast" in told("DELETE FROM d.t USING d.s WHERE t.id = s.id")
    assert "nothing says that few rows" in told(f"{text} WHEN NOT MATCHED BY SOURCE AND t.id = 70 THEN DELETE")


def test_an_insert_says_where_its_rows_are_written(source: Any, spark: SparkSession, told: Any) -> None:
    assert "INSERT into d.t\n  written by: a Spark job\n  rows: where they are" in told(
        "INSERT INTO d.t VALUES (1, 'x')"
    )
    assert "rows: after a shuffle" in told("INSERT INTO d.t SELECT t.id, s.text FROM d.s JOIN d.t USING (id)")
    assert "INSERT OVERWRITE of d.s" in told("INSERT OVERWRITE d.s SELECT * FROM d.t WHERE id < 100")
    plan = told("INSERT INTO d.s REPLACE WHERE id = 50 VALUES (50, 'x')")
    assert "DELETE from d.s" in plan
    assert "INSERT into d.s" in plan
    plan = told("FROM d.s INSERT INTO d.t SELECT id, text INSERT INTO d.p PARTITION (p = 7) SELECT id")
    assert plan.count("INSERT into") == 2
    source.create_table("d.i", {"id": "bigint"}, properties={"transactional_properties": "insert_only"})
    assert "insert-only" in told("INSERT INTO d.i SELECT id FROM d.s")
    told("WITH q AS (SELECT 9 AS id) INSERT INTO d.i SELECT * FROM q")
    there = source.sql("EXPLAIN INSERT OVERWRITE d.p PARTITION (p = 0) IF NOT EXISTS SELECT 1").collect()[0].plan
    assert "Nothing is done" in there


def test_explain_adds_no_column_and_no_partition(source: Any, db: Any) -> None:
    before = state_of(source, db)
    table = source.connection.table("d", "t")
    for text in (
        "INSERT WITH SCHEMA EVOLUTION INTO d.t SELECT 1 AS id, 'x' AS text, 5 AS more",
        "MERGE WITH SCHEMA EVOLUTION INTO d.t USING (SELECT 1 AS id, 'x' AS text, 5 AS more) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        "INSERT INTO d.p PARTITION (p = 99) SELECT 1",
    ):
        assert "== ACID Plan ==" in source.sql(f"EXPLAIN {text}").collect()[0].plan
    assert source.connection.table("d", "t") == table
    assert state_of(source, db) == before
    assert source.connection.partition_names(source.connection.table("d", "p")) == ["p=0", "p=1", "p=2"]


def test_what_a_statement_may_not_do_explain_says(source: Any) -> None:
    with pytest.raises(ColumnError, match="nothere"):
        source.sql("EXPLAIN UPDATE d.t SET nothere = 1")
    shown = source.sql("EXPLAIN INSERT INTO d.nothere VALUES (1)").collect()[0].plan
    assert "ACID" not in shown, "it is Spark's to say that it does not find it"
    with source.transaction():
        source.sql("DELETE FROM d.t WHERE id = 700")
        with pytest.raises(ColumnError):
            source.sql("EXPLAIN DELETE FROM d.t WHERE nothere = 1")
        assert CLIENT in source.sql("EXPLAIN DELETE FROM d.t WHERE id = :id", {"id": 701}).collect()[0].plan
    assert source.table("d.t").where("id IN (700, 701)").count() == 1, "the block goes on, and explains only"


def test_a_change_of_other_tables_is_sparks_to_explain(source: Any, spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE plain_explained (id bigint) USING parquet LOCATION '{tmp_path}/plain'")
    try:
        shown = source.sql("EXPLAIN INSERT INTO default.plain_explained SELECT id FROM d.s").collect()[0].plan
        assert "== Physical Plan ==" in shown
        assert "Read d.s" in shown
        assert spark.table("plain_explained").count() == 0
        out = tmp_path / "out"
        source.sql(f"EXPLAIN INSERT OVERWRITE DIRECTORY '{out}' USING parquet SELECT id FROM d.s")
        assert not out.exists()
    finally:
        spark.sql("DROP TABLE plain_explained")
