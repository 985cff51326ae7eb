"""A primary key that is enforced, on each way by which rows come into a table: refused or taken, by the keys alone."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.catalog.constraints import Constraint
from hive_acid.errors import (
    ColumnError,
    DuplicateKeyError,
    HiveAcidError,
    LockTimeoutError,
    SqlError,
    StreamingConnectionError,
    TransactionClosedError,
    UnsupportedTableError,
    WriteConflictError,
)
from hive_acid.spark import AcidSession
from hive_acid.streaming import JsonWriter, StreamingConnection
from hive_acid.wire import ConstraintKind
from tests.spark.compaction import compact_table
from tests.spark.tables.test_load import write_orc

pytestmark = pytest.mark.spark

FIRST = [(1, "a", "x"), (2, "b", "x"), (3, "c", "y")]


def made(acid: AcidSession, *, partitioned: bool = False, key: str = "id") -> None:
    parts = "PARTITIONED BY (p string)" if partitioned else ""
    column = "" if partitioned else ", p string"
    acid.sql(f"CREATE TABLE d.t (id int, v string{column}, PRIMARY KEY ({key}) ENFORCED) {parts}")
    insert(acid, *FIRST)


def frame(acid: AcidSession, *rows: tuple[Any, ...]) -> Any:
    return acid.spark.createDataFrame(list(rows), "id int, v string, p string")


def insert(acid: AcidSession, *rows: tuple[Any, ...]) -> None:
    acid.insert("d.t", frame(acid, *rows))


def rows(acid: AcidSession) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, acid.table("d.t").select("id", "v", "p").collect()), key=repr)


BATCHES = itertools.count()
WAYS: dict[str, Callable[[AcidSession, Any], object]] = {
    "with evolution": lambda acid, new: acid.insert("d.t", new, schema_evolution=True),
    "insert": lambda acid, new: acid.insert("d.t", new),
    "SQL": lambda acid, new: acid.sql("INSERT INTO d.t BY NAME SELECT * FROM {new}", new=new),
    "merge": lambda acid, new: acid.merge("d.t", new, "false").whenNotMatchedInsertAll().execute(),
    "multi-insert": lambda acid, new: acid.multi_insert(new).into("d.t").execute(),
    "REPLACE USING": lambda acid, new: acid.sql(
        "INSERT INTO d.t BY NAME REPLACE USING (p) SELECT * FROM {new}", new=new
    ),
    "REPLACE ON": lambda acid, new: acid.sql(
        "INSERT INTO d.t t BY NAME REPLACE ON t.p = s.p (SELECT * FROM {new}) s", new=new
    ),
    "REPLACE WHERE": lambda acid, new: acid.overwrite("d.t", new, where="p = 'z' OR p IS NULL"),
    "sink": lambda acid, new: acid.sink("d.t", query="q")(new, next(BATCHES)),
}


@pytest.mark.parametrize("partitioned", [False, True], ids=["whole", "partitioned"])
def test_each_way_of_adding_rows_compares_keys(acid: AcidSession, partitioned: bool) -> None:
    made(acid, partitioned=partitioned)
    there = rows(acid)
    more = F.lit(1).alias("more")
    taken = frame(acid, (7, "n", "z"), (2, "n", "z")).select("*", more)
    twice = frame(acid, (8, "n", "z"), (8, "m", "z")).select("*", more)
    null = frame(acid, (9, "n", "z"), (None, "n", "z")).select("*", more)
    for name, way in WAYS.items():
        with pytest.raises(DuplicateKeyError, match=r"d\.t.*id = 2") as caught:
            way(acid, taken)
        assert rows(acid) == there, (name, caught)
        with pytest.raises(DuplicateKeyError, match=r"more than once.*id = 8"):
            way(acid, twice)
        with pytest.raises(DuplicateKeyError, match=r"no value.*id = NULL"):
            way(acid, null)
        assert rows(acid) == there, name
    for number, (name, way) in enumerate(WAYS.items(), 200):
        way(acid, frame(acid, (number, name, "z")).select("*", more))
    assert {"REPLACE WHERE", "sink"} <= {row[1] for row in rows(acid)}


def test_an_update_of_the_key_is_compared_and_of_others_not(acid: AcidSession) -> None:
    made(acid)
    with pytest.raises(DuplicateKeyError, match="id = 2"):
        acid.sql("UPDATE d.t SET id = 2 WHERE id = 1")
    with pytest.raises(DuplicateKeyError, match="no value"):
        acid.sql("UPDATE d.t SET id = NULL WHERE id = 1")
    acid.sql("UPDATE d.t SET id = id + 1")
    acid.sql("UPDATE d.t SET v = 'same'")
    assert rows(acid) == [(2, "same", "x"), (3, "same", "x"), (4, "same", "y")]
    swapped = acid.spark.createDataFrame([(2, 3), (3, 2)], "was int, is_now int")
    acid.update("d.t", {"id": "s.is_now"}, source=swapped, on="t.id = s.was")
    assert [row[0] for row in rows(acid)] == [2, 3, 4]


def test_an_overwrite_is_compared_with_what_stays(acid: AcidSession) -> None:
    made(acid, partitioned=True)
    acid.overwrite("d.t", frame(acid, (1, "new", "x"), (4, "new", "x")))
    with pytest.raises(DuplicateKeyError, match="id = 3"):
        acid.overwrite("d.t", frame(acid, (3, "new", "x")))
    with pytest.raises(DuplicateKeyError, match="id = 3"):
        acid.sql("INSERT OVERWRITE d.t PARTITION (p = 'x') VALUES (3, 'new')")
    with pytest.raises(DuplicateKeyError, match="id = 3"):
        acid.sql("INSERT INTO d.t PARTITION (p = 'x') VALUES (3, 'new')")
    acid.sql("INSERT OVERWRITE d.t PARTITION (p = 'y') VALUES (5, 'new')")
    assert rows(acid) == [(1, "new", "x"), (4, "new", "x"), (5, "new", "y")]
    acid.truncate("d.t")
    insert(acid, *FIRST)
    assert rows(acid) == FIRST


def test_partition_columns_may_be_of_the_key(acid: AcidSession) -> None:
    made(acid, partitioned=True, key="id, p")
    insert(acid, (1, "other", "y"))
    with pytest.raises(DuplicateKeyError, match="id = 1, p = x"):
        insert(acid, (1, "other", "x"))
    with pytest.raises(DuplicateKeyError, match="p = NULL"):
        insert(acid, (1, "other", None))
    with pytest.raises(DuplicateKeyError, match="id = 1, p = y"):
        acid.sql("UPDATE d.t SET p = 'y' WHERE id = 1")
    with pytest.raises(ColumnError, match="UPDATE the columns"):
        acid.rename_partition("d.t", "p=y", "p=z")
    assert len(rows(acid)) == 4


def test_a_table_with_rows_is_made_by_its_key(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (PRIMARY KEY (id)) AS SELECT 1 AS id, 'a' AS v, 'x' AS p")
    with pytest.raises(DuplicateKeyError):
        insert(acid, (1, "b", "x"))
    with pytest.raises(DuplicateKeyError, match="more than once"):
        acid.sql("CREATE TABLE d.u (PRIMARY KEY (id)) AS SELECT id % 2 AS id FROM range(3)")
    assert "u" not in acid.connection.call("get_all_tables", "d")
    with pytest.raises(DuplicateKeyError, match="more than once"):
        acid.sql("CREATE OR REPLACE TABLE d.t AS SELECT 1 AS id, 1 AS other FROM range(2)")
    assert rows(acid) == [(1, "a", "x")]
    acid.sql("CREATE OR REPLACE TABLE d.t AS SELECT int(id) AS id, 'v' AS v, 'p' AS p, 1 AS more FROM range(2)")
    with pytest.raises(DuplicateKeyError):
        acid.sql("INSERT INTO d.t VALUES (1, 'b', 'x', 2)")
    with pytest.raises(DuplicateKeyError, match="more than once"):
        acid.sql("CREATE OR REPLACE TABLE d.t PARTITIONED BY (p) AS SELECT 1 AS id, 'p' AS p FROM range(2)")
    assert len(rows(acid)) == 2
    acid.sql("CREATE OR REPLACE TABLE d.t PARTITIONED BY (p) AS SELECT int(id) AS id, 'v' AS v, 'p' AS p FROM range(2)")
    with pytest.raises(DuplicateKeyError):
        insert(acid, (1, "b", "other"))


def test_files_are_loaded_by_their_keys(acid: AcidSession, tmp_path: Path) -> None:
    acid.sql("CREATE TABLE d.t (id int, name string, PRIMARY KEY (id))")
    acid.sql("INSERT INTO d.t VALUES (1, 'a'), (2, 'b')")
    file = write_orc(tmp_path / "new.orc", [4, 2])
    with pytest.raises(DuplicateKeyError, match="id = 2"):
        acid.load_data("d.t", str(file))
    assert file.exists()
    assert acid.table("d.t").count() == 2
    with pytest.raises(DuplicateKeyError, match=r"more than once.*id = 5"):
        acid.load_data("d.t", str(write_orc(tmp_path / "twice.orc", [5, 5])), overwrite=True)
    acid.load_data("d.t", str(write_orc(tmp_path / "good.orc", [4, 5])))
    with pytest.raises(DuplicateKeyError, match="id = 5"):
        acid.sql("INSERT INTO d.t VALUES (5, 'a')")
    assert acid.table("d.t").count() == 4


def test_files_of_a_new_partition_and_of_an_export_are_compared(acid: AcidSession, tmp_path: Path) -> None:
    acid.sql("CREATE TABLE d.t (id int, name string, PRIMARY KEY (id)) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO d.t VALUES (2, 'b', 0)")
    (tmp_path / "files").mkdir()
    write_orc(tmp_path / "files" / "new.orc", [4, 2])
    with pytest.raises(DuplicateKeyError, match="id = 2"):
        acid.add_partitions("d.t", {"p=1": str(tmp_path / "files")})
    assert acid.table("d.t").count() == 1
    acid.add_partitions("d.t", {"p=1": None}, if_not_exists=True)  # as after any write that fails it is there, empty
    acid.sql("CREATE TABLE d.s (id int)")
    acid.sql("INSERT INTO d.s VALUES (1), (1)")
    acid.export_table("d.s", str(tmp_path / "export"))
    acid.sql("CREATE TABLE d.k (id int, PRIMARY KEY (id))")
    with pytest.raises(DuplicateKeyError, match=r"more than once.*id = 1"):
        acid.import_table(str(tmp_path / "export"), "d.k")
    assert acid.table("d.k").count() == 0


def test_streams_without_spark_are_refused(acid: AcidSession) -> None:
    made(acid)
    with pytest.raises(StreamingConnectionError, match=r"d\.t has the primary key \(id\)"):
        StreamingConnection(acid.connection, "d.t", JsonWriter())


def test_a_stream_that_is_open_learns_of_a_new_key(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (id int, v string, p string)")
    with StreamingConnection(acid.connection, "d.t", JsonWriter()) as stream:
        with stream.transaction():
            stream.write(b'{"id": 1}')
        acid.sql("ALTER TABLE d.t ADD CONSTRAINT pk PRIMARY KEY (id) ENFORCED")
        with pytest.raises(HiveAcidError, match="primary key"), stream.transaction():
            stream.write(b'{"id": 1}')
    assert rows(acid) == [(1, None, None)]


def test_statements_of_one_transaction_are_compared(acid: AcidSession) -> None:
    made(acid)
    with acid.transaction():
        acid.delete("d.t", "id = 1")
        insert(acid, (1, "again", "x"))
        with pytest.raises(DuplicateKeyError):
            insert(acid, (1, "twice", "x"))
        insert(acid, (5, "n", "x"))
        with pytest.raises(DuplicateKeyError):
            insert(acid, (5, "n", "x"))
        acid.delete("d.t", "id = 5")
        insert(acid, (5, "m", "x"))
    assert rows(acid) == [(1, "again", "x"), (2, "b", "x"), (3, "c", "y"), (5, "m", "x")]


def test_a_key_is_added_to_rows_that_have_it(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (id int, v string, p string)")
    insert(acid, *FIRST, (1, "again", "x"))
    with pytest.raises(DuplicateKeyError, match=r"id = 1 \(2 rows\)"):
        acid.sql("ALTER TABLE d.t ADD CONSTRAINT pk PRIMARY KEY (id) ENFORCED")
    assert not acid.connection.table("d", "t").key
    assert [tuple(row) for row in acid.check_key("d.t", ["id"]).collect()] == [(1, 2)]
    acid.delete("d.t", "v = 'again'")
    with acid.transaction(), pytest.raises(TransactionClosedError, match="before the block"):
        acid.sql("ALTER TABLE d.t ADD CONSTRAINT pk PRIMARY KEY (id) ENFORCED")
    acid.sql("ALTER TABLE d.t ADD CONSTRAINT pk PRIMARY KEY (id) ENABLE VALIDATE RELY")
    with pytest.raises(DuplicateKeyError):
        insert(acid, (1, "again", "x"))
    assert "PRIMARY KEY (`id`) ENABLE VALIDATE RELY" in acid.sql("SHOW CREATE TABLE d.t").collect()[0][0]
    assert acid.check_key("d.t").count() == 0
    acid.sql("ALTER TABLE d.t DROP CONSTRAINT pk")
    insert(acid, (1, "again", "x"))
    with pytest.raises(ColumnError, match="no primary key"):
        acid.check_key("d.t")


def test_nobody_adds_rows_while_a_key_is_added(acid: AcidSession) -> None:
    """Who has begun before is waited for, and who comes later finds the key."""
    acid.sql("CREATE TABLE d.t (id int, v string, p string)")
    insert(acid, *FIRST)
    with hive_acid.spark.session(acid.spark, acid.connection.uri) as other:
        failed: list[BaseException] = []

        def add() -> None:
            try:
                other.sql("ALTER TABLE d.t ADD CONSTRAINT pk PRIMARY KEY (id) ENFORCED")
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=add)
        with acid.transaction():
            insert(acid, (1, "again", "x"))
            thread.start()
        thread.join(60)
    assert [type(error) for error in failed] == [DuplicateKeyError]
    assert not acid.connection.table("d", "t").key


@pytest.mark.parametrize("kind", ["array<int>", "map<int,int>", "struct<a:int>"])
def test_keys_that_are_not_compared_are_refused(acid: AcidSession, kind: str) -> None:
    with pytest.raises(ColumnError, match="not compared"):
        acid.sql(f"CREATE TABLE d.t (id {kind}, v string, PRIMARY KEY (id))")


def test_tables_that_cannot_keep_a_key_are_refused(acid: AcidSession, tmp_path: Path) -> None:
    for properties in ("'transactional'='false'", "'transactional_properties'='insert_only'"):
        with pytest.raises(ColumnError, match=r"no .*ACID table"):
            acid.sql(f"CREATE TABLE d.t (id int, PRIMARY KEY (id)) TBLPROPERTIES ({properties})")
    made(acid)
    with pytest.raises(ColumnError, match="in the primary key"):
        acid.change_column_type("d.t", "id", "bigint")
    with pytest.raises(SqlError, match="comes by itself"):
        acid.sql("ALTER TABLE d.t ADD COLUMNS (k int PRIMARY KEY)")
    acid.rename_column("d.t", "id", "number")
    with pytest.raises(DuplicateKeyError, match="number = 1"):
        acid.sql("INSERT INTO d.t VALUES (1, 'a', 'x')")
    write_orc(tmp_path / "there" / "000000_0", [1, 1])
    with pytest.raises(UnsupportedTableError, match="has files"):
        acid.create_table(
            "d.u",
            {"id": "int"},
            location=str(tmp_path / "there"),
            constraints=[Constraint(ConstraintKind.PRIMARY_KEY, ("id",))],
        )


VALUES = {
    "double": ["0.0D", "-0.0D", "double('NaN')", "double('NaN')", "1.5D"],
    "float": ["float(0.0)", "float(-0.0)", "float('NaN')"],
    "char(4)": ["'a'", "'a  '", "'b'", "''", "' '"],
    "varchar(4)": ["'a'", "'a  '", "'A'", "''"],
    "string": ["'a'", "'a '", "'á'", "'a\u0301'", "''"],
    "decimal(10,2)": ["1.5", "1.50", "2"],
    "binary": ["X'00'", "X''", "X'0000'", "X'00'"],
    "date": ["DATE'1500-03-01'", "DATE'2020-01-01'", "DATE'1500-03-01'"],
    "timestamp": ["TIMESTAMP'2020-01-01 00:00:00.5'", "TIMESTAMP'2020-01-01'", "TIMESTAMP'2020-01-01 00:00:00.500'"],
    "boolean": ["true", "false", "true"],
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_are_alike_as_spark_groups_them(acid: AcidSession, kind: str) -> None:
    """One by one, so that each is compared with what is there; what is left is what GROUP BY leaves."""
    acid.sql(f"CREATE TABLE d.k (k {kind}, n int, PRIMARY KEY (k))")
    taken = 0
    for number, value in enumerate(VALUES[kind]):
        try:
            acid.sql(f"INSERT INTO d.k VALUES ({value}, {number})")
            taken += 1
        except DuplicateKeyError:
            pass
    trimmed = "rtrim(k)" if kind.startswith("char") else "k"
    cast = "string" if trimmed != "k" else kind
    given = " UNION ALL ".join(f"SELECT CAST({value} AS {cast}) AS k" for value in VALUES[kind])
    expected = acid.spark.sql(f"SELECT count(*) FROM (SELECT {trimmed} FROM ({given}) GROUP BY 1)").collect()[0][0]
    assert taken == expected == acid.table("d.k").count()


def test_two_transactions_conflict_by_the_keys_that_both_bring(acid: AcidSession) -> None:
    for partitioned in (False, True):
        acid.sql("DROP TABLE IF EXISTS d.t")
        made(acid, partitioned=partitioned)
        with hive_acid.spark.session(acid.spark, acid.connection.uri) as other:
            with pytest.raises(WriteConflictError, match="id = 5"), acid.transaction():
                insert(acid, (4, "one", "x"), (5, "one", "x"))
                insert(other, (5, "two", "y"), (6, "two", "y"))
            with acid.transaction():
                insert(acid, (4, "one", "x"))
                insert(other, (7, "two", "x"))
                other.sql("UPDATE d.t SET v = 'changed' WHERE id = 1")
            with pytest.raises(WriteConflictError, match="id = 8"), acid.transaction():
                acid.table("d.t").count()
                insert(other, (8, "two", "x"))
                insert(acid, (8, "one", "x"))
            with pytest.raises(WriteConflictError), acid.transaction():
                acid.sql("UPDATE d.t SET id = 9 WHERE id = 1")
                insert(other, (9, "two", "x"))
        assert [row[0] for row in rows(acid)] == [1, 2, 3, 4, 5, 6, 7, 8, 9]


@pytest.mark.parametrize("partitioned", [False, True], ids=["whole", "partitioned"])
def test_keys_are_waited_for_at_read_committed(acid: AcidSession, partitioned: bool) -> None:
    """Whoever brings keys is alone with the table until its end, so that nobody fails at a commit."""
    made(acid, partitioned=partitioned)
    uri = acid.connection.uri
    with hive_acid.spark.session(acid.spark, uri, isolation="read committed", lock_timeout_ms=300) as other:
        with acid.transaction(isolation="read committed"):
            insert(acid, (5, "one", "x"))
            with pytest.raises(LockTimeoutError):
                insert(other, (6, "two", "y"))
            with pytest.raises(LockTimeoutError):
                other.sql("INSERT INTO d.t (id, v, p) VALUES (5, 'two', 'y')")
        with pytest.raises(DuplicateKeyError, match="id = 5"):
            insert(other, (5, "two", "y"))
        with other.transaction():
            other.table("d.t").count()
            insert(acid, (7, "one", "x"))
            with pytest.raises((DuplicateKeyError, WriteConflictError), match="id = 7"):
                insert(other, (7, "two", "y"))
            insert(other, (8, "two", "y"))
    assert [row[0] for row in rows(acid)] == [1, 2, 3, 5, 7, 8]


@pytest.mark.parametrize("kind", ["minor", "major"])
def test_keys_are_found_behind_a_compaction(acid: AcidSession, kind: str) -> None:
    made(acid, partitioned=True)
    with hive_acid.spark.session(acid.spark, acid.connection.uri) as other:
        with pytest.raises(WriteConflictError, match="id = 5"), acid.transaction():
            acid.table("d.t").count()
            insert(other, (4, "two", "x"))
            insert(other, (5, "two", "x"))
            compact_table(acid.spark, other, "d.t", kind)
            insert(acid, (5, "one", "y"))
        with pytest.raises(WriteConflictError, match="id = 6"), acid.transaction():
            insert(acid, (6, "one", "y"))
            insert(other, (6, "two", "x"))
            compact_table(acid.spark, other, "d.t", kind)
        compact_table(acid.spark, acid, "d.t", kind)
        with pytest.raises(DuplicateKeyError, match="id = 6"):
            insert(acid, (6, "one", "y"))
    assert [row[0] for row in rows(acid)] == [1, 2, 3, 4, 5, 6]
