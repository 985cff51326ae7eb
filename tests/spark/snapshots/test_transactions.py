"""Transactions of several statements, by ``with acid.transaction():`` and by the words of SQL: the same."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.connection import connect
from hive_acid.errors import (
    ColumnError,
    SnapshotEndedError,
    TransactionClosedError,
    TransactionExpiredError,
    UnsupportedTableError,
    WriteConflictError,
)
from hive_acid.format.names import STAGING_PREFIX
from hive_acid.spark import AcidSession
from hive_acid.transactions.transaction import Transaction
from tests.spark.checker import check_table, location_of
from tests.waiting import until

pytestmark = pytest.mark.spark

Form = Callable[[AcidSession], AbstractContextManager[Any]]


@contextmanager
def by_words(acid: AcidSession) -> Iterator[None]:
    acid.sql("BEGIN")
    try:
        yield
    except BaseException:
        acid.sql("ROLLBACK")
        raise
    acid.sql("COMMIT")


def by_with(acid: AcidSession) -> AbstractContextManager[Any]:
    return acid.transaction()


@pytest.fixture(params=[by_words, by_with])
def form(request: Any) -> Any:
    return request.param


@pytest.fixture
def tables(acid: AcidSession, spark: SparkSession) -> AcidSession:
    """``d.t`` with (1, 1) to (3, 3), ``d.p`` with keys 0 and 1, ``d.m`` insert-only."""
    acid.create_table("d.t", {"id": "int", "v": "int"})
    acid.create_table("d.p", {"id": "int", "v": "int"}, partitioned_by={"k": "int"})
    acid.create_table("d.m", {"id": "int", "v": "int"}, properties={"transactional_properties": "insert_only"})
    acid.insert("d.t", spark.range(1, 4).selectExpr("int(id) id", "int(id) v"))
    acid.insert("d.p", spark.range(1, 4).selectExpr("int(id) id", "int(id) v", "int(id % 2) k"))
    acid.insert("d.m", spark.range(1, 4).selectExpr("int(id) id", "int(id) v"))
    return acid


def rows(acid: AcidSession, table: str = "d.t") -> Any:
    return sorted(tuple(row) for row in acid.table(table).collect())


FAILS = {
    "insert": "INSERT INTO d.{} SELECT 9, int('x' || id) FROM d.t",
    "update": "UPDATE d.t SET v = int(concat('x', v)) WHERE id > 0",
    "update of keys": "UPDATE d.p SET v = int(concat('x', v)) WHERE id > 0",
    "merge": "MERGE INTO d.t t USING (SELECT 1 id UNION ALL SELECT 1) s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "overwrite": "INSERT OVERWRITE d.t SELECT id, raise_error('no') FROM d.t",
}


def test_a_failed_statement_leaves_nothing_and_the_transaction_goes_on(tables: AcidSession, form: Form) -> None:
    with form(tables):
        tables.sql("INSERT INTO d.t VALUES (4, 4)")
        tables.sql("UPDATE d.t SET v = 40 WHERE id = 4")
        before = rows(tables)
        for text in FAILS.values():
            for table in ("t", "p", "m") if "{}" in text else ("t",):
                with pytest.raises(Exception, match=r"."):
                    tables.sql(text.format(table))
                assert rows(tables) == before == [(1, 1), (2, 2), (3, 3), (4, 40)]
        tables.sql("DELETE FROM d.t WHERE id = 1")
        tables.sql(
            "MERGE INTO d.t t USING (SELECT 4 id UNION ALL SELECT 5) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = t.v + 1 WHEN NOT MATCHED THEN INSERT VALUES (s.id, 5)"
        )
        seen = rows(tables)
    assert rows(tables) == seen == [(2, 2), (3, 3), (4, 41), (5, 5)]
    assert rows(tables, "d.m") == [(1, 1), (2, 2), (3, 3)]
    for table in ("d.t", "d.p"):
        check_table(location_of(tables, table))
        assert not [path for path in Path(location_of(tables, table)).iterdir() if path.name.startswith(("_", "."))]


def test_a_failed_overwrite_brings_back_what_an_earlier_one_has_written(
    tables: AcidSession, form: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hive_acid.write.table_write import TableWrite

    def refuse(*_: Any) -> None:
        raise ColumnError("as if the table had been altered")

    for table, written in (("d.t", "VALUES (7, 7)"), ("d.p", "VALUES (7, 7, 1)"), ("d.m", "VALUES (7, 7)")):
        with form(tables):
            tables.sql(f"INSERT OVERWRITE {table} {written}")
            before = rows(tables, table)
            for text in (f"INSERT OVERWRITE {table} {written.replace('7', '8', 1)}", f"TRUNCATE TABLE {table}"):
                with monkeypatch.context() as patch, pytest.raises(ColumnError, match="as if"):
                    patch.setattr(TableWrite, "_verify", refuse)
                    if text.startswith("TRUNCATE"):
                        patch.setattr(tables.connection, "call", _failing(tables.connection.call))
                    tables.sql(text)
                assert rows(tables, table) == before
            tables.sql(f"INSERT OVERWRITE {table} {written.replace('7', '9', 1)}")
        assert {7, 8, 9}.intersection(row[0] for row in rows(tables, table)) == {9}
        found = [
            path.name for path in Path(location_of(tables, table)).rglob("*") if path.name.startswith(STAGING_PREFIX)
        ]
        assert not found, "what was put aside is gone with the commit"


def _failing(call: Any) -> Any:
    def failing(method: str, *arguments: Any) -> Any:
        done = call(method, *arguments)
        if method == "truncate_table_req":
            raise ColumnError("as if the answer were lost")
        return done

    return failing


def test_an_overwrite_is_not_added_to_and_says_so(tables: AcidSession, form: Form) -> None:
    with form(tables):
        tables.sql("INSERT INTO d.t VALUES (4, 4)")
        tables.sql("INSERT OVERWRITE d.t SELECT id, v + 1 FROM d.t WHERE id > 2")
        for text in ("INSERT INTO d.t VALUES (5, 5)", "UPDATE d.t SET v = 0", "DELETE FROM d.t WHERE id = 3"):
            with pytest.raises(UnsupportedTableError, match=r"has overwritten the table of d\.t already"):
                tables.sql(text)
        assert rows(tables) == [(3, 4), (4, 5)]
    assert rows(tables) == [(3, 4), (4, 5)]


def test_a_conflict_aborts_at_once(tables: AcidSession, form: Form, spark: SparkSession) -> None:
    said = r"transaction {} cannot commit, since transaction \d+ of ann@\S+ \(.*\) has changed {}, too, and committed"
    with connect(tables.connection.uri, user="ann") as ann, hive_acid.spark.session(spark, ann) as other:
        for table, target in {"d.t": r"d\.t", "d.p": "d.p/k=1"}.items():
            with pytest.raises(TransactionClosedError, match=r"was aborted \(write conflict"), form(tables):
                number = _open(tables)
                assert rows(tables, table)[0][:2] == (1, 1)
                tables.sql("INSERT INTO d.m VALUES (4, 4)")
                other.sql(f"UPDATE {table} SET v = 0 WHERE id = 1")
                with pytest.raises(WriteConflictError, match=said.format(number, target)):
                    tables.sql(f"UPDATE {table} SET v = 5 WHERE id = 1")
                assert _state(tables, number) == "ABORTED"
                with pytest.raises(TransactionClosedError, match="was aborted"):
                    tables.sql("SELECT * FROM d.t")
            assert rows(tables, table)[0][:2] == (1, 0)
        assert rows(tables, "d.m") == [(1, 1), (2, 2), (3, 3)]


def test_other_partitions_are_no_conflict_also_after_a_statement_that_failed(
    tables: AcidSession, form: Form, spark: SparkSession
) -> None:
    with hive_acid.spark.session(spark, tables.connection.uri) as other:
        with form(tables):
            with pytest.raises(Exception, match="CAST_INVALID"):
                tables.sql("UPDATE d.p SET v = int(concat('x', v))")
            other.sql("UPDATE d.p SET v = 0 WHERE k = 1")
            tables.sql("UPDATE d.p SET v = 5 WHERE k = 0")
        assert rows(tables, "d.p") == [(1, 0, 1), (2, 5, 0), (3, 0, 1)]


def test_a_truncate_is_in_conflict_also_if_a_later_statement_names_other_partitions(
    tables: AcidSession, form: Form, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hive_acid.spark.session(spark, tables.connection.uri) as other:
        with monkeypatch.context() as patch, pytest.raises(WriteConflictError), form(tables):
            patch.setattr(Transaction, "refuse_conflict", lambda _: None)
            other.sql("UPDATE d.p SET v = 0 WHERE k = 1")
            tables.sql("TRUNCATE TABLE d.p")
            tables.sql("DELETE FROM d.p WHERE id = 77")
        assert rows(tables, "d.p") == [(1, 0, 1), (2, 2, 0), (3, 0, 1)]


def test_frames_after_the_end(tables: AcidSession, form: Form) -> None:
    with form(tables):
        tables.sql("INSERT INTO d.t VALUES (4, 4)")
        kept = tables.table("d.t")
        tables.sql("DELETE FROM d.t")
    tables.sql("INSERT INTO d.t VALUES (5, 5)")
    assert sorted(map(tuple, kept.collect())) == [(1, 1), (2, 2), (3, 3), (4, 4)], "a read of its moment"
    with pytest.raises(ZeroDivisionError), form(tables):
        tables.sql("INSERT INTO d.t VALUES (6, 6)")
        lost, shown = tables.table("d.t"), tables.table("d.t").filter("id > 3")
        shown.createOrReplaceTempView("shown")
        raise ZeroDivisionError
    for read in (lost.collect, shown.count, lost.count):
        with pytest.raises(SnapshotEndedError, match=r"was aborted|is gone"):
            read()
    with pytest.raises(SnapshotEndedError, match=r"was aborted|is gone"):
        tables.sql("SELECT * FROM shown").collect()
    tables.spark.catalog.dropTempView("shown")


def test_a_frame_of_a_base_that_the_transaction_replaces_is_an_error(tables: AcidSession, form: Form) -> None:
    with form(tables):
        tables.sql("INSERT OVERWRITE d.t VALUES (1, 7)")
        kept = tables.table("d.t")
        assert kept.collect() == [(1, 7)]
        tables.sql("INSERT OVERWRITE d.t VALUES (1, 8)")
        with pytest.raises(SnapshotEndedError, match="a later statement"):
            kept.collect()
        assert rows(tables) == [(1, 8)]


def test_an_idle_transaction_is_aborted(tables: AcidSession, form: Form, spark: SparkSession) -> None:
    uri = tables.connection.uri
    with hive_acid.spark.session(spark, uri, idle_in_transaction_timeout_ms=300) as hasty:
        with pytest.raises(TransactionClosedError, match=r"was idle for 0.3 s"), form(hasty):
            number = _open(hasty)
            hasty.insert("d.t", spark.sql("SELECT 4 id, 4 v"))
            until(lambda: _state(tables, number) == "ABORTED")
            with pytest.raises(TransactionClosedError, match="was idle for"):
                hasty.table("d.t")
        assert rows(hasty) == [(1, 1), (2, 2), (3, 3)]


def test_an_interrupt_aborts(tables: AcidSession, form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    from hive_acid.write.table_write import TableWrite

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(TransactionClosedError, match="was aborted"), form(tables):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(TableWrite, "_verify", interrupt)
            tables.sql("INSERT INTO d.t VALUES (4, 4)")
        with pytest.raises(TransactionClosedError):
            tables.sql("INSERT INTO d.t VALUES (4, 4)")
    assert rows(tables) == [(1, 1), (2, 2), (3, 3)]


def test_the_metastores_end_of_a_transaction_is_its_end(tables: AcidSession, form: Form) -> None:
    with pytest.raises(TransactionClosedError), form(tables):
        tables.sql("INSERT INTO d.t VALUES (4, 4)")
        tables.connection.abort_transactions([_open(tables)])
        with pytest.raises(TransactionExpiredError):
            tables.sql("INSERT INTO d.t VALUES (5, 5)")
    assert rows(tables) == [(1, 1), (2, 2), (3, 3)]


def _open(acid: AcidSession) -> int:
    block = acid._blocks.current()
    assert block is not None
    return block.transaction.id


def _state(acid: AcidSession, number: int) -> str:
    shown = acid.sql("SHOW TRANSACTIONS").collect()
    return next((row["state"] for row in shown if row["txnid"] == str(number)), "ENDED")
