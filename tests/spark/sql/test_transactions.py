"""BEGIN, START TRANSACTION, COMMIT, ROLLBACK and SET AUTOCOMMIT."""

import gc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import ScriptError, SqlError, TransactionClosedError, WriteConflictError
from hive_acid.spark import AcidSession
from tests.waiting import until

pytestmark = pytest.mark.spark

BEGINS = (
    "BEGIN",
    "begin;",
    "Begin /* one */ Transaction -- two\n;",
    "BEGIN WORK READ WRITE",
    "START TRANSACTION",
    "start transaction isolation level snapshot, read write;",
    "BEGIN READ WRITE ISOLATION LEVEL SNAPSHOT",
)
WRONG = {
    "BEGIN\n ISOLATION LEVEL READ UNCOMMITTED": "ISOLATION LEVEL READ UNCOMMITTED is none .* line 2, column 18",
    "BEGIN READ ONLY ISOLATION LEVEL READ COMMITTED": "a READ ONLY transaction is one SNAPSHOT",
    "BEGIN ISOLATION LEVEL serializable": "SERIALIZABLE is none .* line 1, column 23",
    "BEGIN ISOLATION LEVEL nonsense": "SNAPSHOT or READ COMMITTED was expected, at line 1, column 23",
    "START": "TRANSACTION was expected, at the end of the statement",
    "START TRANSACTION READ": "ONLY or WRITE was expected, at the end",
    "START TRANSACTION READ ONLY READ WRITE": "or the end was expected, at line 1, column 29",
    "START TRANSACTION READ ONLY,": "was expected, at the end",
    "COMMIT\nAND CHAIN": "COMMIT AND CHAIN is not done: .* line 2, column 1",
    "ROLLBACK TO SAVEPOINT a": "savepoints have no names here: .* line 1, column 10",
    "SAVEPOINT a": "savepoints have no names here",
    "COMMIT nonsense": "not understood from here on, at line 1, column 8",
    "BEGIN SELECT 1; END": "is a compound statement of Spark's",
    "BEGIN; SELECT 1": "another one follows, at line 1, column 8",
    "SET AUTOCOMMIT = maybe": "TRUE or FALSE was expected, at line 1, column 18",
}


@pytest.fixture
def table(acid: AcidSession) -> AcidSession:
    acid.sql("CREATE TABLE d.t (id int, v int)")
    acid.sql("INSERT INTO d.t VALUES (1, 1)")
    return acid


def rows(acid: Any) -> Any:
    return sorted(tuple(row) for row in acid.sql("SELECT * FROM d.t").collect())


def test_words(table: AcidSession) -> None:
    for number, text in enumerate(BEGINS):
        assert table.sql(text).columns == []
        table.sql("INSERT INTO d.t VALUES (?, 0)", [number + 2])
        table.sql("commit;" if number % 2 else "ROLLBACK WORK")
    assert rows(table) == [(1, 1), (3, 0), (5, 0), (7, 0)]
    for text, said in WRONG.items():
        with pytest.raises(SqlError, match=f"(?s){said}"):
            table.sql(text)
        assert not table._blocks.is_within
    for text in ("BEGIN", "START TRANSACTION READ ONLY", "COMMIT", "ROLLBACK", "SET AUTOCOMMIT = FALSE"):
        (shown,) = table.sql(f"EXPLAIN {text}").collect()
        assert "of the transaction of this thread" in shown["plan"]
        assert not table._blocks.is_within
        assert table.autocommit


def test_what_is_out_of_order_is_an_error_by_its_name(table: AcidSession) -> None:
    for word, said in {"COMMIT": "to commit", "ROLLBACK": "to roll back"}.items():
        with pytest.raises(TransactionClosedError, match=f"there is no transaction {said} on this thread"):
            table.sql(word)
    table.sql("BEGIN")
    table.sql("UPDATE d.t SET v = 2")
    for again in ("BEGIN", "START TRANSACTION READ ONLY"):
        with pytest.raises(TransactionClosedError, match=r"already \(\d+, begun by SQL\): blocks do not nest"):
            table.sql(again)
    with pytest.raises(TransactionClosedError, match="do not nest"), table.transaction():
        pass
    with pytest.raises(TransactionClosedError, match="not dropped within a block"):
        table.sql("DROP TABLE d.t")
    table.sql("COMMIT")
    assert rows(table) == [(1, 2)]
    with table.transaction():
        for text in ("COMMIT", "ROLLBACK"):
            with pytest.raises(TransactionClosedError, match="was begun by a `with` block"):
                table.sql(text)
        with pytest.raises(TransactionClosedError, match="begun by a `with` block"):
            table.sql("BEGIN")
        table.sql("UPDATE d.t SET v = 3")
    assert rows(table) == [(1, 3)]


def test_read_only(table: AcidSession, spark: SparkSession) -> None:
    with hive_acid.spark.session(spark, table.connection.uri) as other:
        table.sql("BEGIN READ ONLY")
        first = table.sql("SELECT * FROM d.t")
        other.sql("UPDATE d.t SET v = 5")
        for text in ("INSERT INTO d.t VALUES (2, 2)", "DELETE FROM d.t", "TRUNCATE TABLE d.t"):
            with pytest.raises(TransactionClosedError, match="a READ ONLY transaction only reads: BEGIN READ WRITE"):
                table.sql(text)
        assert rows(table) == [(1, 1)]
        table.sql("COMMIT")
        assert first.collect() == [(1, 1)], "as frames of acid.snapshot() it keeps its files"
        assert rows(table) == [(1, 5)]


def test_autocommit(table: AcidSession, spark: SparkSession) -> None:
    assert table.sql("SET autocommit").collect() == [("autocommit", "true")]
    table.sql("SET AUTOCOMMIT = FALSE")
    table.sql("COMMIT")
    table.sql("ROLLBACK")
    assert not table._blocks.is_within, "nothing has begun one"
    with hive_acid.spark.session(spark, table.connection.uri) as other:
        assert rows(table) == [(1, 1)]
        other.sql("INSERT INTO d.t VALUES (2, 2)")
        assert rows(table) == [(1, 1)], "the query has begun a transaction"
        table.sql("INSERT INTO d.t VALUES (3, 3)")
        with pytest.raises(TransactionClosedError, match="do not nest"):
            table.sql("BEGIN")
        table.sql("ROLLBACK")
        assert rows(table) == [(1, 1), (2, 2)]
        table.sql("INSERT INTO d.t VALUES (4, 4)")
        assert rows(other) == [(1, 1), (2, 2)]
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(lambda: table.autocommit).result(), "it is of a thread"
        table.sql("set autocommit true")
        assert rows(other) == [(1, 1), (2, 2), (4, 4)], "what was open is committed"
        table.sql("INSERT INTO d.t VALUES (5, 5)")
        assert len(rows(other)) == 4


def test_scripts(table: AcidSession) -> None:
    done = table.sql_script("BEGIN; INSERT INTO d.t VALUES (2, 2); SELECT count(*) FROM d.t; COMMIT")
    assert done[2].collect() == [(2,)]
    said = r"statement 3, in line 3: .*\. Transaction \d+, which the script had begun, was rolled back"
    with pytest.raises(ScriptError, match=f"(?s){said}"):
        table.sql_script("BEGIN;\nINSERT INTO d.t VALUES (3, 3);\nINSERT INTO d.t VALUES ('x', 3);\nCOMMIT")
    assert not table._blocks.is_within
    assert rows(table) == [(1, 1), (2, 2)]
    table.sql("BEGIN")
    table.sql("INSERT INTO d.t VALUES (3, 3)")
    with pytest.raises(ScriptError) as raised:
        table.sql_script("INSERT INTO d.t VALUES (4, 4); INSERT INTO d.t VALUES ('x', 3)")
    assert "rolled back" not in str(raised.value)
    table.sql_script("INSERT INTO d.t VALUES (5, 5); COMMIT")
    assert rows(table) == [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]


def test_a_commit_that_fails_ends_the_transaction(table: AcidSession, spark: SparkSession) -> None:
    with hive_acid.spark.session(spark, table.connection.uri) as other:
        table.sql("BEGIN")
        table.sql("UPDATE d.t SET v = 2 WHERE id = 1")
        other.sql("UPDATE d.t SET v = 3 WHERE id = 1")
        with pytest.raises(WriteConflictError):
            table.sql("COMMIT")
        assert not table._blocks.is_within
        assert rows(table) == rows(other) == [(1, 3)]


def test_a_session_that_is_closed_and_a_thread_that_is_over_abort(table: AcidSession, spark: SparkSession) -> None:
    with hive_acid.spark.session(spark, table.connection.uri) as other:
        number = _begun(other)
    assert _state(table, number) == "ABORTED"
    with ThreadPoolExecutor(1) as pool:
        number = pool.submit(_begun, table).result()
        with pytest.raises(TransactionClosedError, match="no transaction to commit on this thread"):
            table.sql("COMMIT")
        assert _state(table, number) == "OPEN"
    until(lambda: _state(table, number) == "ABORTED", between=gc.collect)
    assert rows(table) == [(1, 1)]


def _begun(acid: AcidSession) -> int:
    acid.sql("BEGIN")
    acid.sql("INSERT INTO d.t VALUES (2, 2)")
    block = acid._blocks.by_words
    assert block is not None
    return block.transaction.id


def _state(acid: AcidSession, number: int) -> str:
    shown = acid.sql("SHOW TRANSACTIONS").collect()
    return next((row["state"] for row in shown if row["txnid"] == str(number)), "ENDED")
