"""What each type of transaction does, and the cold RPCs round them, over Thrift (transactions.md §1.1, §1.5)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from hive_acid.wire import ttypes
from metastore.compaction.cleaner.cleaner import Cleaner
from metastore.compaction.config import CompactionConfig
from metastore.compaction.queue.service import CompactionService
from tests.caller import INTERNAL, Caller, refused
from tests.checklist.tables import create_database, create_table, get_table
from tests.served import Served
from tests.txn.conftest import shown

T = ttypes.TxnType


# --- read-only ------------------------------------------------------------------------------------


def test_read_only_writes_nothing(ann: Caller) -> None:
    txn_id = ann.begin(txn_type=T.READ_ONLY)
    with refused("MetaException", "read-only"):
        ann.allocate("d.t", txn_id)
    with refused(INTERNAL, "read-only"):
        ann.add_partitions(txn_id, 1, "d.t", "p=1")
    with refused(INTERNAL, "read-only"):
        ann.lock("w d/t u", txn=txn_id)
    assert ann.asks("r d/t", txn=txn_id) == "A"
    assert ann.max_write_id("d.t") == 0
    ann.commit(txn_id)
    assert ann.locks() == []


# --- a table parameter with a commit --------------------------------------------------------------


def key_value(table: Any, key: str = "_meta.offset", value: str = "17") -> Any:
    return ttypes.CommitTxnKeyValue(tableId=table.id, key=key, value=value)


@pytest.fixture
def stream(ann: Caller) -> Any:
    """A table that a stream writes to."""
    create_database(ann, "d")
    return create_table(ann, "d", parameters={"_meta.offset": "0", "other": "x"})


def test_a_parameter_is_set_with_the_commit(ann: Caller, stream: Any) -> None:
    txn_id = ann.begin()
    ann.write(txn_id, "d/t", "i")
    assert stream.id > 0
    ann.commit(txn_id, keyValue=key_value(stream))
    parameters = get_table(ann, "d").parameters
    assert (parameters["_meta.offset"], parameters["other"]) == ("17", "x")
    ann.commit(txn_id, keyValue=key_value(stream, value="99"))
    assert get_table(ann, "d").parameters["_meta.offset"] == "17", "the second commit did nothing"


@pytest.mark.parametrize(
    ("key", "words"),
    [("offset", "begin with _meta"), ("_meta.new", "no parameter '_meta.new'"), ("", "begin with _meta")],
)
def test_a_parameter_that_cannot_be_set_leaves_the_transaction_open(
    ann: Caller, stream: Any, key: str, words: str
) -> None:
    txn_id = ann.begin()
    ann.write(txn_id, "d/t", "i")
    with refused(INTERNAL, words):
        ann.commit(txn_id, keyValue=key_value(stream, key))
    assert ann.snapshot().open_ids == (txn_id,)
    assert len(ann.locks()) == 1
    ann.commit(txn_id)


def test_a_parameter_of_a_table_that_is_gone(ann: Caller, stream: Any) -> None:
    ann.call("drop_table", "d", "t", True)
    txn_id = ann.begin()
    with refused(INTERNAL, f"table id {stream.id} has no parameter"):
        ann.commit(txn_id, keyValue=key_value(stream))
    assert ann.snapshot().open_ids == (txn_id,)


def test_a_commit_in_conflict_sets_nothing(ann: Caller, stream: Any) -> None:
    first, second = ann.open(2)
    ann.write(first, "d/t")
    ann.write(second, "d/t")
    ann.commit(first, keyValue=key_value(stream, value="1"))
    with refused("TxnAbortedException", "write conflict on d/t"):
        ann.commit(second, keyValue=key_value(stream, value="2"))
    assert get_table(ann, "d").parameters["_meta.offset"] == "1"
    assert (ann.snapshot().aborted_ids, ann.locks()) == ((second,), [])
    with refused("TxnAbortedException", "already aborted"):
        ann.commit(second, keyValue=key_value(stream, value="2"))
    with refused("NoSuchTxnException"):
        ann.commit(99, keyValue=key_value(stream, value="2"))
    third = ann.begin()
    ann.write(third, "d/t")
    fourth = ann.begin()
    ann.write(fourth, "d/t")
    ann.commit(third)
    ann.commit(fourth, keyValue=key_value(stream, value="4"), exclWriteEnabled=True)
    assert get_table(ann, "d").parameters["_meta.offset"] == "4"


def test_a_parameter_is_durable_though_its_transaction_only_read(ann: Caller, server: Served, stream: Any) -> None:
    txn_id = ann.begin(txn_type=T.READ_ONLY)
    extras = f"{stream.id}, '_meta.offset', '5', NULL, NULL, NULL, '{{}}', '{{}}', '{{}}', '{{}}', '{{}}'"
    with server.db.engine.begin() as connection:
        connection.exec_driver_sql(f"SELECT * FROM commit_txn_with({txn_id}, false, '', NULL, {extras})")
        assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
    assert get_table(ann, "d").parameters["_meta.offset"] == "5"


# --- compactions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [T.COMPACTION, T.REBALANCE_COMPACTION])
def test_the_commit_of_a_compaction_stamps_its_queue_row(ann: Caller, kind: int) -> None:
    """Also of a rebalance, whose input may be read until all who were there before are gone."""
    reader = ann.begin()
    request = ttypes.CompactionRequest(dbname="d", tablename="t", type=ttypes.CompactionType.MAJOR)
    ann.call("compact", request)
    info = ann.call("find_next_compact", "hs2-1").ci
    compactor = ann.begin(txn_type=kind)
    info.highestWriteId = 3
    ann.call("update_compactor_state", info, compactor)
    ann.call("mark_compacted", info)
    (row,) = shown(ann)
    assert (row.nextTxnId, row.commitTime) == (None, None)
    later = ann.begin()
    ann.commit(compactor)
    (row,) = shown(ann)
    assert (row.txnId, row.nextTxnId) == (compactor, later)
    assert abs(row.commitTime - time.time() * 1000) < 60_000
    assert ann.snapshot().open_ids == (reader, later)


def test_what_a_soft_delete_submits_goes_when_its_readers_have_ended(
    ann: Caller, server: Served, cleaner: Cleaner, tmp_path: Path
) -> None:
    create_database(ann, "d")
    directory = Path(create_table(ann, "d").sd.location.removeprefix("file:"))
    (directory / "delta_0000001_0000001_0000").mkdir()
    reader = ann.begin()
    dropper = ann.begin(txn_type=T.SOFT_DELETE)
    request = ttypes.CompactionRequest(
        dbname="D", tablename="T", type=ttypes.CompactionType.MAJOR, properties={"location": f"file:{directory}"}
    )
    assert ann.call("submit_for_cleanup", request, 1, dropper) is True
    assert ann.call("submit_for_cleanup", request, 1, dropper) is True
    (row,) = shown(ann)
    assert (row.state, row.dbname, row.tablename, row.txnId) == ("ready for cleaning", "d", "t", dropper)
    ann.call("drop_table", "d", "t", False)
    cleaner.run_once()
    assert directory.exists(), "the drop has not committed"
    ann.commit(dropper)
    cleaner.run_once()
    assert directory.exists(), "a reader is there still"
    ann.commit(reader)
    assert cleaner.run_once().removed == [f"file:{directory}"]
    assert not directory.exists()
    assert [row.state for row in shown(ann)] == ["succeeded"]


def test_a_directory_that_is_in_use_again_stays(ann: Caller, cleaner: Cleaner) -> None:
    create_database(ann, "d")
    directory = Path(create_table(ann, "d").sd.location.removeprefix("file:"))
    dropper = ann.begin(txn_type=T.SOFT_DELETE)
    request = ttypes.CompactionRequest(
        dbname="d", tablename="t", type=ttypes.CompactionType.MAJOR, properties={"location": str(directory.parent)}
    )
    ann.call("submit_for_cleanup", request, 1, dropper)
    ann.commit(dropper)
    run = cleaner.run_once()
    assert (run.removed, len(run.cleaned)) == ([], 1)
    assert directory.exists()


def test_what_an_aborted_soft_delete_submitted_stays(ann: Caller, server: Served, cleaner: Cleaner) -> None:
    dropper = ann.begin(txn_type=T.SOFT_DELETE)
    request = ttypes.CompactionRequest(
        dbname="d", tablename="t", type=ttypes.CompactionType.MAJOR, properties={"location": "file:/nowhere"}
    )
    ann.call("submit_for_cleanup", request, 1, dropper)
    ann.abort(dropper)
    assert cleaner.run_once().removed == []
    CompactionService(server.db, CompactionConfig()).requeue()
    (row,) = shown(ann)
    assert (row.state, row.errorMessage) == ("refused", "its transaction was aborted: nothing is cleaned")


def test_who_may_submit_for_cleanup(ann: Caller) -> None:
    request = ttypes.CompactionRequest(dbname="d", tablename="t", type=ttypes.CompactionType.MAJOR)
    with refused("MetaException", "SOFT_DELETE"):
        ann.call("submit_for_cleanup", request, 1, ann.begin())
    with refused("MetaException", "No such transaction"):
        ann.call("submit_for_cleanup", request, 1, 99)
    ended = ann.begin(txn_type=T.SOFT_DELETE)
    ann.commit(ended)
    with refused("MetaException", "already committed"):
        ann.call("submit_for_cleanup", request, 1, ended)
    assert shown(ann) == []


def test_metrics_of_compactors(ann: Caller, server: Served) -> None:
    def stored() -> list[tuple[Any, ...]]:
        with server.db.engine.connect() as connection:
            query = "SELECT db, tbl, partition, type, value, version FROM compaction_metric ORDER BY type"
            return [tuple(row) for row in connection.exec_driver_sql(query)]

    def report(value: int, kind: int = 1, table: str = "T") -> bool:
        data = ttypes.CompactionMetricsDataStruct(
            dbname="D", tblname=table, partitionname="P=1", type=kind, metricvalue=value, version=0, threshold=100
        )
        return bool(ann.call("update_compaction_metrics_data", data))

    assert report(99)
    assert stored() == []
    assert report(100)
    assert report(120)
    assert report(300, 0)
    assert stored() == [("d", "t", "p=1", 0, 300, 1), ("d", "t", "p=1", 1, 120, 2)]
    assert report(12, 0)
    request = ttypes.CompactionMetricsDataRequest(dbName="D", tblName="T", partitionName="P=1", type=1)
    ann.call("remove_compaction_metrics_data", request)
    ann.call("remove_compaction_metrics_data", request)
    assert stored() == []
    with refused("MetaException", "no compaction metric type 9"):
        report(300, 9)
    create_database(ann, "d")
    create_table(ann, "d")
    report(300)
    ann.call("drop_table", "d", "t", True)
    assert stored() == []
