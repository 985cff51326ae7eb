"""Verbs that replace or move whole tables while others write or read them: what they wait for, and how long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.connection import connect
from hive_acid.errors import LockTimeoutError, SnapshotInTheWayError, TransactionInTheWayError
from hive_acid.spark import AcidSession
from hive_acid.streaming import DelimitedWriter, StreamingConnection
from hive_acid.transactions.locks import Operation, write_component
from tests.caller import Caller

AT_ONCE_S = 20
"""Far below the 300 s of a lock's time-out, on a busy machine."""

VERBS: dict[str, Callable[[AcidSession, Any], object]] = {
    "truncate": lambda acid, frame: acid.truncate("d.t"),
    "TRUNCATE": lambda acid, frame: acid.sql("TRUNCATE TABLE d.t"),
    "overwrite": lambda acid, frame: acid.overwrite("d.t", frame),
    "truncate in a block": lambda acid, frame: _in_block(acid, lambda: acid.truncate("d.t")),
    "insert-only overwrite": lambda acid, frame: acid.overwrite("d.i", frame),
    "insert-only truncate": lambda acid, frame: acid.truncate("d.i"),
}


def _in_block(acid: AcidSession, run: Callable[[], object]) -> None:
    with acid.transaction():
        run()


@pytest.fixture
def tables(spark: SparkSession, metastore: Callable[..., str]) -> Iterator[AcidSession]:
    """A full-ACID and an insert-only table, with a row each, and clients that die after 3 s."""
    uri = metastore(**{"hive.txn.timeout": "3s", "metastore.lock.poll.wait": "200ms"})
    with hive_acid.spark.session(spark, uri) as acid:
        acid.create_database("d")
        acid.create_table("d.t", {"id": "int", "name": "string"})
        acid.create_table(
            "d.i", {"id": "int", "name": "string"}, properties={"transactional_properties": "insert_only"}
        )
        for name in ("d.t", "d.i"):
            acid.insert(name, rows(spark, (1, "old")))
        yield acid


def rows(spark: SparkSession, *values: tuple[int, str]) -> Any:
    return spark.createDataFrame(list(values), "id int, name string")


def read(acid: AcidSession, name: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in acid.table(name).collect())


def test_a_table_that_the_session_reads_is_not_renamed_under_it(tables: AcidSession) -> None:
    frame = tables.table("d.t")
    began = time.monotonic()
    with pytest.raises(SnapshotInTheWayError, match=r"d\.t"):
        tables.rename_table("d.t", "d.z")
    with pytest.raises(SnapshotInTheWayError, match=r"d\.t"):
        tables.sql("ALTER TABLE d.t RENAME TO d.z")
    assert time.monotonic() - began < AT_ONCE_S
    assert frame.count() == 1
    del frame
    read(tables, "d.t")
    tables.rename_table("d.t", "d.z")
    assert read(tables, "d.z") == [(1, "old")]


def test_no_other_verb_waits_for_the_sessions_own_frames(tables: AcidSession) -> None:
    tables.create_table("d.p", {"id": "int"}, partitioned_by={"k": "int"})
    tables.insert("d.p", tables.spark.createDataFrame([(1, 1), (2, 2)], "id int, k int"))
    held = [tables.table(name) for name in ("d.t", "d.i", "d.p")]
    began = time.monotonic()
    tables.add_columns("d.t", {"more": "int"})
    tables.rename_column("d.t", "more", "most")
    tables.set_properties("d.t", {"note": "x"})
    tables.truncate("d.t")
    tables.truncate("d.i")
    tables.drop_partitions("d.p", ["k=1"])
    tables.overwrite("d.p", tables.spark.createDataFrame([(9, 2)], "id int, k int"))
    assert [frame.count() for frame in held] == [1, 1, 2]
    tables.drop_table("d.t")
    tables.drop_database("d", cascade=True)
    assert time.monotonic() - began < AT_ONCE_S * 2


def test_no_verb_waits_for_a_block_of_another_session_on_its_own_thread(tables: AcidSession) -> None:
    spark, key = tables.spark, {"k": "1"}
    tables.create_table("d.p", {"id": "int", "name": "string"}, partitioned_by={"k": "int"})
    keyed = rows(spark, (1, "old")).selectExpr("*", "1 AS k")
    tables.insert("d.p", keyed)
    behind_inserts: dict[str, Callable[[AcidSession], object]] = {
        "overwrite": lambda acid: acid.overwrite("d.p", keyed),
        "overwrite of a partition": lambda acid: acid.overwrite("d.p", rows(spark, (1, "new")), partition=key),
        "truncate": lambda acid: acid.truncate("d.p"),
        "truncate of a partition": lambda acid: acid.truncate("d.p", key),
        "drop of a partition": lambda acid: acid.drop_partitions("d.p", ["k=1"]),
        "rename": lambda acid: acid.rename_table("d.p", "d.q"),
    }
    behind_changes: dict[str, Callable[[AcidSession], object]] = {
        "add columns": lambda acid: acid.add_columns("d.p", {"more": "int"}),
        "evolution": lambda acid: acid.insert("d.p", keyed.selectExpr("*", "1 AS more"), schema_evolution=True),
        "rename a column": lambda acid: acid.rename_column("d.p", "name", "called"),
        "change a type": lambda acid: acid.change_column_type("d.p", "id", "bigint"),
        "set properties": lambda acid: acid.set_properties("d.p", {"note": "x"}),
    }
    began = time.monotonic()
    with hive_acid.spark.session(spark, tables.connection.uri) as other:
        with tables.transaction():
            tables.insert("d.p", keyed)
            _refuses_all(other, behind_inserts)
        with tables.transaction():
            tables.update("d.p", {"name": "'new'"})
            _refuses_all(other, behind_inserts | behind_changes)
    assert time.monotonic() - began < AT_ONCE_S * 3
    assert read(tables, "d.p") == [(1, "new", 1)] * 2


def _refuses_all(acid: AcidSession, verbs: dict[str, Callable[[AcidSession], object]]) -> None:
    for name, verb in verbs.items():
        with pytest.raises(TransactionInTheWayError, match=r"d\.p .*this very thread"):
            raise AssertionError(f"{name} gave {verb(acid)}")


# A stream goes into full-ACID tables.
@pytest.mark.parametrize(
    ("verb", "writer"),
    [*((verb, "insert") for verb in VERBS), *((verb, "numbered batch") for verb in VERBS if "insert-only" not in verb)],
)
def test_rows_of_who_writes_meanwhile_are_not_lost_below_the_base(tables: AcidSession, verb: str, writer: str) -> None:
    """They are replaced with the others, or they come after; never are they committed and nowhere to be seen."""
    name = "d.i" if "insert-only" in verb else "d.t"
    ended: list[float] = []
    with connect(tables.connection.uri) as other:
        if writer == "insert":
            under_way = other.begin()
            under_way.lock(write_component("d", name[2:], Operation.INSERT))
            under_way.write_id("d", name[2:])

            def end() -> None:
                ended.append(time.monotonic())
                under_way.commit()
        else:
            stream = StreamingConnection(other, name, DelimitedWriter(","), transaction_batch_size=2)
            stream.begin_transaction()

            def end() -> None:
                stream.write("2,first")
                stream.commit_transaction()
                stream.begin_transaction()
                stream.write("3,second")
                ended.append(time.monotonic())
                stream.commit_transaction()
                stream.close()

        timer = threading.Timer(1, end)
        timer.start()
        VERBS[verb](tables, rows(tables.spark, (7, "new")))
        done = time.monotonic()
        timer.join()
    assert done > ended[0]
    assert read(tables, name) == ([(7, "new")] if "overwrite" in verb else [])


@pytest.mark.parametrize("verb", ["truncate", "overwrite"])
def test_a_killed_writer_is_waited_for_under_one_transaction(tables: AcidSession, verb: str) -> None:
    """Its lock lasts until its time-out; four refusals and one that waits took 390 write ids before."""
    uri = tables.connection.uri
    with hive_acid.spark.session(tables.spark, uri, lock_timeout_ms=400) as hasty, Caller(uri, "bob") as dead:
        txn_id = dead.begin()
        assert dead.asks("w d/t u", txn=txn_id) == "A"
        before, began = dead.max_write_id("d.t"), time.monotonic()
        with pytest.raises(LockTimeoutError, match=rf"d\.t.* 400 ms: transaction {txn_id} of bob at host1"):
            VERBS[verb](hasty, rows(tables.spark, (7, "new")))
        VERBS[verb](tables, rows(tables.spark, (7, "new")))
        assert time.monotonic() - began > 1
        assert dead.max_write_id("d.t") - before <= 1
        assert read(tables, "d.t") == ([(7, "new")] if verb == "overwrite" else [])


def test_a_truncation_beside_changes_begins_anew(tables: AcidSession) -> None:
    """What was changed while it waited is no conflict to it: it has read nothing."""
    with connect(tables.connection.uri) as other:
        changing = other.begin()
        changing.lock(write_component("d", "t", Operation.UPDATE))
        changing.write_id("d", "t")
        timer = threading.Timer(1, changing.commit)
        timer.start()
        tables.truncate("d.t")
        timer.join()
    assert read(tables, "d.t") == []
