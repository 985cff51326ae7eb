"""CREATE TEMPORARY TABLE: a table of one session, which hides a stored one of its name, and goes with the session."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid
import hive_acid.spark
from hive_acid.errors import AlreadyExistsError, ColumnError, HiveAcidError, NoSuchObjectError, SqlError
from hive_acid.format.properties import SESSION_DATABASE
from hive_acid.spark import AcidSession
from tests.waiting import until

DEAD = """
import os, sys
import hive_acid
from hive_acid.catalog.table import Column, Table
from hive_acid.catalog.temporary_tables import TemporaryTables
connection = hive_acid.connect(sys.argv[1])
temporary = TemporaryTables(connection)
place = temporary.prepared("d.t")
connection.create_table(Table(*place.split("."), (Column("id", "int"),), parameters={"transactional": "true"}))
temporary.add("d.t", place)
print(place, flush=True)
sys.stdin.read()
"""


def rows(frame: Any) -> list[Any]:
    return sorted((tuple(row) for row in frame.collect()), key=str)


def hidden(acid: AcidSession) -> list[str]:
    """What lies in the warehouse of sessions' databases."""
    place = acid.connection.call("get_database", "d").locationUri.removeprefix("file:")
    return sorted(one.name for one in Path(place).parent.iterdir() if one.name.startswith(SESSION_DATABASE))


@pytest.fixture
def other(spark: SparkSession, acid: AcidSession) -> Iterator[AcidSession]:
    """Another session, which has a stored table ``d.t``."""
    with hive_acid.spark.session(spark.newSession(), acid.connection.uri) as session:
        session.sql("CREATE TABLE d.t (id int, v string, p int) PARTITIONED BY (p)")
        session.sql("INSERT INTO d.t VALUES (-1, 'stored', 0)")
        yield session


STATEMENTS: tuple[Callable[[random.Random], str], ...] = (
    lambda of: (
        f"INSERT INTO {{t}} SELECT CAST(id AS int), string(id % 5), CAST(id % 2 AS int) FROM range({of.randint(1, 9)})"
    ),
    lambda of: f"INSERT OVERWRITE {{t}} VALUES ({of.randint(0, 5)}, 'o', {of.randint(0, 2)})",
    lambda of: f"UPDATE {{t}} SET v = concat(v, 'u') WHERE {{t}}.id % {of.randint(1, 4)} = 0",
    lambda of: (
        f"UPDATE {{t}} AS a SET v = (SELECT max(b.v) FROM {{t}} b WHERE b.id >= a.id) WHERE a.p = {of.randint(0, 1)}"
    ),
    lambda of: f"DELETE FROM {{t}} WHERE id = {of.randint(0, 9)}",
    lambda of: (
        f"MERGE INTO {{t}} AS a USING (SELECT CAST(id AS int) AS id FROM range({of.randint(1, 9)})) s ON a.id = s.id "
        "WHEN MATCHED AND a.p = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'm' "
        "WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'n', 1)"
    ),
    lambda of: "TRUNCATE TABLE {t}",
    lambda of: "ANALYZE TABLE {t} COMPUTE STATISTICS",
    lambda of: f"ALTER TABLE {{t}} ADD IF NOT EXISTS PARTITION (p = {of.randint(5, 7)})",
    lambda of: f"ALTER TABLE {{t}} DROP IF EXISTS PARTITION (p = {of.randint(0, 7)})",
    lambda of: "ALTER TABLE {t} SET TBLPROPERTIES ('x' = 'y')",
    lambda of: "CREATE OR REPLACE {kind} TABLE {t} PARTITIONED BY (p) AS SELECT id, v, p FROM {t} WHERE p < 9",
)
LOOKS = (
    "SELECT * FROM {t}",
    "SELECT {t}.id, a.v FROM {t} LEFT JOIN {t} AS a ON a.id = {t}.id + 1",
    "SELECT count(*) FROM {t} WHERE EXISTS (SELECT 1 FROM {t} AS b WHERE b.id = {t}.id + 1)",
    "SHOW PARTITIONS {t}",
    "SHOW COLUMNS IN {t}",
    "DESCRIBE {t}",
)


@pytest.mark.parametrize("seed", range(6))
def test_statements_act_as_on_a_stored_table_and_nobody_sees_them(
    acid: AcidSession, other: AcidSession, seed: int
) -> None:
    """The oracle: the same statements on a stored table of another name, all rows of which have to be the same."""
    of = random.Random(seed)
    kind = of.choice(["", "TBLPROPERTIES ('transactional_properties' = 'insert_only')"])
    named = {"d.t": "TEMPORARY", "d.u": ""}
    before = (
        rows(other.sql("SELECT * FROM d.t")),
        rows(other.sql("SHOW TABLES IN d")),
        rows(other.sql("SHOW DATABASES")),
    )
    for name, temporary in named.items():
        acid.sql(
            f"CREATE {temporary} TABLE {name} (id int NOT NULL, v string DEFAULT 'd', p int) PARTITIONED BY (p) {kind}"
        )

    def done(text: str) -> list[Any]:
        found = []
        for name, temporary in named.items():
            try:
                found.append(rows(acid.sql(text.format(t=name, kind=temporary))))
            except HiveAcidError as error:
                found.append([type(error)])
        return found

    for statement in of.choices(STATEMENTS, k=10):
        text = statement(of)
        there, meant = done(text)
        assert there == meant, text
        for look in of.sample(LOOKS, 3):
            there, meant = done(look)
            assert there == meant, look
    assert rows(acid.table("d.t")) == rows(acid.table("d.u"))
    acid.sql("DROP TABLE d.u")
    assert before == (
        rows(other.sql("SELECT * FROM d.t")), rows(other.sql("SHOW TABLES IN d")), rows(other.sql("SHOW DATABASES"))
    )  # fmt: skip
    acid.sql("DROP TABLE d.t")
    assert rows(acid.sql("SELECT id FROM d.t")) == [(-1,)]


def test_it_hides_a_stored_table_until_it_is_dropped(acid: AcidSession, other: AcidSession) -> None:
    acid.sql("CREATE VIEW d.shows AS SELECT id FROM d.t")
    acid.sql("CREATE TEMPORARY TABLE d.t AS SELECT 1 AS one")
    acid.sql("CREATE TEMPORARY TABLE IF NOT EXISTS d.t AS SELECT 2 AS two")
    acid.sql("CREATE TEMP TABLE d.like_t LIKE d.t")
    assert rows(acid.sql("SELECT d.t.one FROM d.t")) == rows(acid.table("d.t")) == [(1,)]
    assert acid.sql("SELECT * FROM d.like_t").columns == ["one"]
    assert rows(acid.sql("SHOW TABLES IN d")) == [("like_t",), ("shows",), ("t",)]
    assert rows(acid.sql("SHOW TABLES IN d LIKE 'like*'")) == [("like_t",)]
    assert rows(acid.sql("SELECT * FROM d.shows")) == [(-1,)]
    with pytest.raises(SqlError, match=r"d\.t is a temporary table"):
        acid.sql("CREATE VIEW d.v AS SELECT * FROM d.t")
    for stored in (
        "CREATE TABLE d.t (id int)",
        "CREATE OR REPLACE TABLE d.t (id int)",
        "CREATE VIEW d.t AS SELECT 1 AS a",
    ):
        with pytest.raises(AlreadyExistsError, match=r"temporary table d\.t.*hide"):
            acid.sql(stored)
    with pytest.raises(AlreadyExistsError):
        acid.sql("CREATE TEMPORARY TABLE d.t (id int)")
    with acid.snapshot(["d.t"]):
        assert acid.table("d.t").count() == 1
    assert "CREATE TEMPORARY TABLE `d`.`t` (`one` int)" in acid.sql("SHOW CREATE TABLE d.t").collect()[0][0]
    assert "LOCATION" not in acid.sql("SHOW CREATE TABLE d.t").collect()[0][0]
    said = {row.col_name: row.data_type for row in acid.sql("DESCRIBE FORMATTED d.t").collect()}
    assert (said["Database"], said["Table"], said["Type"]) == ("d", "t", "TEMPORARY MANAGED_TABLE")
    acid.sql("DROP TABLE d.t")
    assert rows(acid.sql("SELECT id FROM d.t")) == [(-1,)]
    assert rows(acid.sql("SHOW TABLES IN d")) == [("like_t",), ("shows",), ("t",)]


def test_it_is_renamed(acid: AcidSession, other: AcidSession) -> None:
    acid.sql("CREATE DATABASE e")
    acid.sql("CREATE TEMPORARY TABLE d.t AS SELECT 1 AS one")
    acid.sql("ALTER TABLE d.t RENAME TO u")
    assert rows(acid.sql("SELECT one FROM d.u")) == [(1,)]
    assert rows(acid.sql("SELECT id FROM d.t")) == [(-1,)]
    acid.sql("ALTER TABLE d.u RENAME TO e.w")
    assert rows(acid.sql("SELECT one FROM e.w")) == [(1,)]
    assert rows(acid.sql("SHOW TABLES IN d")) == [("t",)]
    with pytest.raises(NoSuchObjectError):
        other.table("e.w")
    acid.sql("CREATE TEMPORARY TABLE e.t (id int)")
    with pytest.raises(AlreadyExistsError):
        acid.sql("ALTER TABLE e.t RENAME TO e.w")
    acid.sql("CREATE TABLE d.stored (id int)")
    with pytest.raises(AlreadyExistsError, match="would hide"):
        acid.sql("ALTER TABLE d.stored RENAME TO e.w")


def test_plain_and_external_ones(acid: AcidSession, other: AcidSession, tmp_path: Path) -> None:
    acid.sql("CREATE TEMPORARY TABLE d.t STORED AS PARQUET TBLPROPERTIES ('transactional' = 'false') AS SELECT 1 AS a")
    assert rows(acid.sql("SELECT a FROM d.t")) == [(1,)]
    place = tmp_path / "kept"
    acid.sql(f"CREATE TEMPORARY EXTERNAL TABLE d.x STORED AS ORC LOCATION '{place}' AS SELECT 1 AS a")
    acid.sql("DROP TABLE d.x")
    assert any(place.iterdir())
    assert rows(acid.sql("SHOW TABLES IN d")) == [("t",)]


def test_what_fails_leaves_no_name(acid: AcidSession, other: AcidSession) -> None:
    for text in (
        "CREATE TEMPORARY TABLE d.t (id int, id int)",
        "CREATE TEMPORARY TABLE d.t AS SELECT 1 AS a, 2 AS a",
        "CREATE TEMPORARY TABLE d.t AS SELECT CAST(raise_error('x') AS int) AS a FROM d.t",
        "CREATE TEMPORARY TABLE d.t TBLPROPERTIES ('transactional' = 'false') "
        "AS SELECT CAST(raise_error('x') AS int) AS a FROM d.t",
    ):
        with pytest.raises(Exception, match=r"x|twice"):
            acid.sql(text)
        assert rows(acid.sql("SELECT id FROM d.t")) == [(-1,)], text
    with pytest.raises(ColumnError), acid.transaction():
        acid.sql("CREATE TEMPORARY TABLE d.t AS SELECT 1 AS a")
        assert acid.table("d.t").columns == ["a"]
        raise ColumnError("undone")
    assert rows(acid.sql("SELECT id FROM d.t")) == [(-1,)]
    acid.sql("EXPLAIN CREATE TEMPORARY TABLE d.t AS SELECT 1 AS a").collect()
    assert rows(acid.sql("SELECT id FROM d.t")) == [(-1,)]


def test_it_goes_with_its_session(spark: SparkSession, acid: AcidSession, other: AcidSession) -> None:
    other.sql("CREATE TEMPORARY TABLE d.t AS SELECT 1 AS a")
    database = hidden(acid)[0].removesuffix(".db")
    assert acid.connection.call("get_database", database)
    with pytest.raises(HiveAcidError, match="those of sessions"):
        acid.create_database(f"{SESSION_DATABASE}mine")
    other.close()
    assert hidden(acid) == []
    with pytest.raises(NoSuchObjectError):
        acid.connection.call("get_database", database)
    assert acid.sql("SHOW TRANSACTIONS").filter("state = 'OPEN'").isEmpty()


def test_the_metastore_drops_those_of_a_session_that_was_killed(acid: AcidSession) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", DEAD, acid.connection.uri], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as died:
        assert died.stdout is not None
        database = died.stdout.readline().partition(".")[0]
        assert hidden(acid) == [f"{database}.db"]
        os.kill(died.pid, signal.SIGKILL)
    lease = int(acid.connection.call("get_database", database).parameters["hive_acid.session.transaction"])
    assert hidden(acid) == [f"{database}.db"]
    acid.connection.abort_transactions([lease])  # as the time-out would
    until(lambda: hidden(acid) == [])
    with pytest.raises(NoSuchObjectError):
        acid.connection.call("get_database", database)


def test_those_of_a_program_that_ends_go_at_once(acid: AcidSession) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", DEAD, acid.connection.uri], input="", capture_output=True, text=True, check=True
    )
    assert ended.stdout.startswith(SESSION_DATABASE)
    assert hidden(acid) == []


def test_a_lost_one_is_an_error_and_no_stored_table(acid: AcidSession, other: AcidSession) -> None:
    """A name that has meant it must not mean another table by itself."""
    acid.sql("CREATE TEMPORARY TABLE d.t AS SELECT 1 AS a")
    other.connection.drop_database(hidden(acid)[0].removesuffix(".db"), cascade=True)
    for _ in range(2):
        for read in ("SELECT * FROM d.t", "SELECT * FROM d.t, d.u", "INSERT INTO d.t VALUES (1)", "DESCRIBE d.t"):
            with pytest.raises(NoSuchObjectError, match=r"temporary table d\.t is gone"):
                acid.sql(read)
        with pytest.raises(NoSuchObjectError, match=r"temporary table d\.t is gone"):
            acid.table("d.t")
    acid.sql("DROP TABLE d.t")
    assert rows(acid.sql("SELECT id FROM d.t")) == [(-1,)]


def test_a_session_that_was_taken_for_dead_makes_new_ones(acid: AcidSession) -> None:
    acid.sql("CREATE TEMPORARY TABLE d.a AS SELECT 1 AS a")
    (database,) = hidden(acid)
    told = acid.connection.call("get_database", database.removesuffix(".db")).parameters
    acid.connection.abort_transactions([int(told["hive_acid.session.transaction"])])
    acid.sql("CREATE TEMPORARY TABLE d.b AS SELECT 1 AS b")
    until(lambda: database not in hidden(acid))
    assert rows(acid.sql("SELECT b FROM d.b")) == [(1,)]
    with pytest.raises(NoSuchObjectError, match="gone"):
        acid.table("d.a")
