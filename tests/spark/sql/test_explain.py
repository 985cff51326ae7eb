"""EXPLAIN says which way a statement takes: the one that the statement itself then says it takes, in the debug log."""

from __future__ import annotations

import gc
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import ColumnError, NoSuchObjectError, SqlError
from hive_acid.spark import AcidSession
from hive_acid.spark.limits import Limits
from hive_acid.wire import ttypes
from tests.spark.by_spark import limited
from tests.spark.checker import location_of
from tests.spark.conftest import OVER_CONNECT
from tests.waiting import until

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


def parts_of(plan: str) -> Any:
    return sorted(re.split(r"\n(?=\S)", plan))


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
        until(lambda: not open_transactions(db), between=gc.collect)
        caplog.clear()
        acid.sql(text).collect()
        # Tables are read when they are planned: those of a statement that writes at once, others by and by.
        assert parts_of(said(caplog)) == parts_of(plan)
        return plan

    return told


@pytest.fixture
def logged(acid: AcidSession, caplog: pytest.LogCaptureFixture) -> Any:
    """A function: what a statement says when it runs."""
    caplog.set_level(logging.DEBUG, OF_PLANS)

    def logged(text: str) -> Any:
        caplog.clear()
        acid.sql(text).collect()
        return said(caplog)

    return logged


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
    assert "Count d.t\n  rows: footers: it is known which rows are deleted" in said(caplog)
    caplog.clear()
    with limited(numbers, delete_events=-1):
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


def test_a_merge_says_how_it_is_joined(source: Any, logged: Any) -> None:
    text = (
        "MERGE INTO d.t USING d.s ON t.id = s.id WHEN MATCHED THEN UPDATE SET text = s.text "
        "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.text)"
    )
    plan = logged(text)
    assert plan.startswith("Read d.s\n")
    assert "source: broadcast: 3 rows" in plan
    assert CLIENT in plan
    source.limits = Limits(driver_rows=2)
    assert "written by: a Spark job: the source has 3 rows, more than 1" in logged(text)
    source.limits = Limits(broadcast_bytes=1)
    plan = logged(text)
    assert "joined by Spark's choice" in plan
    assert f"{SHUFFLED}: the source is not broadcast" in plan
    source.limits = Limits()
    assert "\nUPDATE of d.t\n" in logged("UPDATE d.t SET text = s.text FROM d.s WHERE t.id = s.id")
    assert "source: broadcast" in logged("DELETE FROM d.t USING d.s WHERE t.id = s.id")
    assert "nothing says that few rows" in logged(f"{text} WHEN NOT MATCHED BY SOURCE AND t.id = 70 THEN DELETE")


OF_SOURCES = {
    "MERGE INTO d.t USING ({rows}) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET text = s.text "
    "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.text)": "\nMERGE of d.t\n",
    "MERGE INTO d.t USING ({rows}) s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN DELETE": "\nMERGE of d.t\n",
    "UPDATE d.t SET text = s.text FROM ({rows}) s WHERE t.id = s.id": "\nUPDATE of d.t\n",
    "DELETE FROM d.t USING ({rows}) s WHERE t.id = s.id": "\nDELETE from d.t\n",
    "FROM ({rows}) s INSERT INTO d.t SELECT id, text INSERT INTO d.p PARTITION (p = 7) SELECT id": "INSERT into d.p",
}


@pytest.mark.parametrize("text", OF_SOURCES)
def test_a_source_is_not_computed(source: Any, text: str) -> None:
    """A source that fails when it is computed does not fail EXPLAIN."""
    rows = "SELECT CASE WHEN id = 30 THEN int(raise_error('computed')) ELSE id END AS id, text FROM d.s"
    shown = source.sql(f"EXPLAIN {text.replace('{rows}', rows)}").collect()[0].plan
    assert OF_SOURCES[text] in shown
    if "FROM (" not in text[:7]:
        assert "  source: broadcast or joined by Spark's choice: the statement computes it first" in shown
    with pytest.raises(Exception, match="computed"):
        source.sql(text.replace("{rows}", rows))


def test_an_insert_says_where_its_rows_are_written(source: Any, told: Any, logged: Any) -> None:
    plan = told("INSERT INTO d.t VALUES (1, 'x')")
    assert "INSERT into d.t\n  written by: the client: the rows stand in the statement" in plan
    assert "rows of a Spark job: where they are" in plan
    assert "rows of a Spark job: after a shuffle" in told(
        "INSERT INTO d.t SELECT t.id, s.text FROM d.s JOIN d.t USING (id)"
    )
    assert "INSERT OVERWRITE of d.s" in told("INSERT OVERWRITE d.s SELECT * FROM d.t WHERE id < 100")
    plan = told("INSERT INTO d.s REPLACE WHERE id = 50 VALUES (50, 'x')")
    assert "DELETE from d.s" in plan
    assert "INSERT into d.s" in plan
    plan = logged("FROM d.s INSERT INTO d.t SELECT id, text INSERT INTO d.p PARTITION (p = 7) SELECT id")
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


# --- other statements, and locks -----------------------------------------------------------------

OTHERS = {
    "CREATE TABLE d.n (a int, b string) PARTITIONED BY (c int)": "CREATE TABLE d.n\n  a int, b string, c int",
    "CREATE TABLE d.n AS SELECT id FROM d.p": "CREATE TABLE AS d.n",
    "CREATE TABLE d.n LIKE d.t": "CREATE TABLE d.n",
    "CREATE VIEW d.v AS SELECT id FROM d.p": "CREATE VIEW d.v",
    "CREATE TEMPORARY VIEW never_made AS SELECT id FROM d.p": "Read d.p",
    "CREATE DATABASE nothere": "CREATE DATABASE nothere",
    "DROP DATABASE d CASCADE": "DROP DATABASE d\n  cascade: True",
    "ALTER DATABASE d SET DBPROPERTIES ('a' = 'b')": "ALTER DATABASE d",
    "DROP TABLE d.t": "DROP TABLE d.t",
    "TRUNCATE TABLE d.p PARTITION (p = 1)": "TRUNCATE d.p\n  p=1",
    "ANALYZE TABLE d.t COMPUTE STATISTICS": "ANALYZE d.t",
    "ALTER TABLE d.t ADD COLUMNS (more int)": "ADD COLUMNS d.t\n  more int",
    "ALTER TABLE d.t CHANGE COLUMN text words string": "RENAME COLUMN d.t\n  text\n  words",
    "ALTER TABLE d.t RENAME TO d.other": "RENAME TABLE d.t\n  d.other",
    "ALTER TABLE d.t SET TBLPROPERTIES ('a' = 'b')": "SET PROPERTIES d.t\n  a=b",
    "ALTER TABLE d.p DROP PARTITION (p = 1)": "DROP PARTITIONS d.p\n  p=1",
    "ALTER TABLE d.p ADD PARTITION (p = 77)": "ADD PARTITIONS d.p",
    "ALTER TABLE d.t COMPACT 'major'": "The metastore is asked",
    "COMMENT ON TABLE d.t IS 'words'": "SET PROPERTIES d.t",
    "LOAD DATA INPATH '/nowhere' INTO TABLE d.t": "LOAD DATA d.t\n  /nowhere",
    "EXPORT TABLE d.t TO '/nowhere'": "EXPORT TABLE d.t",
    "IMPORT TABLE d.n FROM '/nowhere'": "IMPORT TABLE d.n",
    "SHOW TABLES IN d": "SHOW asks the metastore, and changes nothing",
    "DESCRIBE d.t": "DESCRIBE asks the metastore, and changes nothing",
    "ABORT TRANSACTIONS 1": "The metastore is asked",
    "USE d": "of this session alone",
}


@pytest.mark.parametrize("text", OTHERS)
def test_a_statement_of_another_kind_is_told_and_not_done(numbers: AcidSession, db: Any, text: str) -> None:
    def there() -> Any:
        names = numbers.connection.call("get_all_databases"), numbers.connection.call("get_all_tables", "d")
        wire = [numbers.connection.wire_table("d", name) for name in names[1]]
        partitions = numbers.connection.partition_names(numbers.connection.table("d", "p"))
        compactions = numbers.sql("SHOW COMPACTIONS").collect()
        return names, wire, partitions, compactions, numbers.spark.catalog.listTables(), state_of(numbers, db)

    before, using = there(), numbers.sql("SHOW CURRENT DATABASE").collect()
    assert OTHERS[text] in numbers.sql(f"EXPLAIN {text}").collect()[0].plan
    assert there() == before
    assert numbers.sql("SHOW CURRENT DATABASE").collect() == using


def test_what_is_wrong_is_said_by_explain_in_its_place(numbers: AcidSession) -> None:
    with pytest.raises(NoSuchObjectError, match=r"d\.nothere"):
        numbers.sql("EXPLAIN CREATE TABLE d.n LIKE d.nothere")
    with pytest.raises(SqlError, match="line 2, column 22: NONSENSE"):
        numbers.sql("EXPLAIN\nDROP TABLE d.t PURGE NONSENSE")
    for word in ("AST", "CBO COST", "DEPENDENCY", "VECTORIZATION DETAIL", "ANALYZE", "REOPTIMIZATION", "DDL"):
        with pytest.raises(SqlError, match=f"EXPLAIN {word.split()[0]} tells of Hive's planner.*column 9"):
            numbers.sql(f"EXPLAIN {word} SELECT * FROM d.t")


LOCKS = {
    "SELECT * FROM d.t JOIN d.p USING (id)": {"d.t -> SHARED_READ", "d.p -> SHARED_READ"},
    "SELECT 1": {"none is asked for"},
    "INSERT INTO d.p PARTITION (p = 1) SELECT id FROM d.t": {"d.p -> SHARED_READ", "d.t -> SHARED_READ"},
    "UPDATE d.t SET text = 'x' WHERE id IN (SELECT id FROM d.p)": {"d.t -> SHARED_WRITE", "d.p -> SHARED_READ"},
    "DELETE FROM d.t": {"d.t -> SHARED_WRITE"},
    "MERGE INTO d.t USING d.p ON t.id = p.id WHEN MATCHED THEN DELETE": {"d.t -> SHARED_WRITE", "d.p -> SHARED_READ"},
    "ALTER TABLE d.t RENAME TO d.other": {"d.t -> EXCLUSIVE"},
    "ALTER TABLE d.t SET TBLPROPERTIES ('a' = 'b')": {"d.t -> EXCL_WRITE"},
    "DROP TABLE d.n": {"none is asked for"},
}


@pytest.mark.parametrize("text", LOCKS)
def test_the_locks_are_those_that_the_statement_takes(numbers: AcidSession, text: str) -> None:
    """As far as it is a change, the metastore is asked for them."""
    numbers.create_table("d.n", {"id": "bigint"})
    shown = numbers.sql(f"EXPLAIN LOCKS {text}").collect()[0].plan.splitlines()
    assert shown[0] == "LOCK INFORMATION:"
    assert set(shown[1:]) == LOCKS[text]
    asked = set()
    ask = numbers.connection.ask

    def heard(*questions: Any) -> Any:
        kinds = ttypes.LockType._VALUES_TO_NAMES
        locking = [one for one in questions if one.method in ("lock", "hive_acid_begin")]
        for of in (of for one in locking for of in one.args[0].component):
            name = ".".join(filter(None, (of.dbname, of.tablename, of.partitionname)))
            asked.add(f"{name} -> {kinds[of.type]}")
        return ask(*questions)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbers.connection, "ask", heard)
        numbers.sql(text).collect()
    assert asked == LOCKS[text] - {"none is asked for"}
