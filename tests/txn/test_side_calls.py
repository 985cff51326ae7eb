"""Rebuilds of views, seeds of ids, readers that say what they read, statistics: over Thrift (transactions.md §2.4)."""

from __future__ import annotations

from pathlib import Path

from hive_acid.wire import ttypes
from metastore.compaction.cleaner.cleaner import Cleaner
from tests.caller import INTERNAL, Caller, refused
from tests.checklist.tables import create_database, create_table, get_table
from tests.served import served
from tests.txn.conftest import shown

T = ttypes.TxnType


# --- materialised views ---------------------------------------------------------------------------


def test_one_rebuild_of_a_view_at_a_time(ann: Caller) -> None:
    first, second, third = ann.open(3, txn_type=T.MATER_VIEW_REBUILD)

    def rebuild(txn_id: int, view: str = "v") -> str:
        answer = ann.call("get_lock_materialization_rebuild", "D", view, txn_id)
        assert answer.lockid == txn_id
        return {ttypes.LockState.ACQUIRED: "A", ttypes.LockState.NOT_ACQUIRED: "N"}[answer.state]

    def beat(txn_id: int) -> bool:
        return bool(ann.call("heartbeat_lock_materialization_rebuild", "d", "V", txn_id))

    assert (rebuild(first), rebuild(second, "V"), rebuild(second, "w")) == ("A", "N", "A")
    assert rebuild(first) == "A", "the same answer to the same call"
    assert (beat(first), beat(second)) == (True, False)
    ann.commit(first)
    assert beat(first) is False
    assert (rebuild(second), beat(second)) == ("A", True)
    ann.abort(second)
    assert (beat(second), rebuild(third)) == (False, "A")
    for ended, words in ((first, "already committed"), (second, "already aborted"), (99, "No such transaction")):
        with refused(INTERNAL, words):
            rebuild(ended)


# --- ids ------------------------------------------------------------------------------------------


def test_seed_txn_id(ann: Caller) -> None:
    ann.open(3)
    for seed in (0, 3):
        with refused("MetaException", f"cannot go on at {seed}: the high-water mark is 3"):
            ann.call("seed_txn_id", ttypes.SeedTxnIdRequest(seedTxnId=seed))
    ann.call("seed_txn_id", ttypes.SeedTxnIdRequest(seedTxnId=1000))
    assert ann.open(2) == [1000, 1001]
    assert ann.snapshot().open_ids == (1, 2, 3, 1000, 1001)


def test_a_seed_does_not_count_as_open_transactions(postgres_url: str, template: str, tmp_path: Path) -> None:
    with served(postgres_url, template, tmp_path, {"hive.max.open.txns": "3"}) as running, running.caller() as ann:
        ann.call("seed_txn_id", ttypes.SeedTxnIdRequest(seedTxnId=1000))
        assert ann.open(3) == [1000, 1001, 1002]
        with refused(INTERNAL, r"hive\.max\.open\.txns"):
            ann.open()


# --- readers that say what they read --------------------------------------------------------------


def replaced(ann: Caller, table: str) -> None:
    """A compaction of `d.table` that has committed; the Cleaner is next."""
    ann.call("compact", ttypes.CompactionRequest(dbname="d", tablename=table, type=ttypes.CompactionType.MAJOR))
    info = ann.call("find_next_compact", "hs2-1").ci
    compactor = ann.begin(txn_type=T.COMPACTION)
    info.highestWriteId = 3
    ann.call("update_compactor_state", info, compactor)
    ann.call("mark_compacted", info)
    ann.commit(compactor)


def test_the_cleaner_waits_for_those_who_read_the_table(ann: Caller, cleaner: Cleaner) -> None:
    create_database(ann, "d")
    for table in ("t", "u"):
        create_table(ann, "d", table)
    reader = ann.begin()
    ann.call("add_write_ids_to_min_history", reader, {"d.T": 4, "d.x": 1})
    ann.call("add_write_ids_to_min_history", reader, {"d.t": 7})
    silent = ann.begin()
    replaced(ann, "t")
    replaced(ann, "u")
    assert cleaner.run_once().cleaned == [], "one of them has not said what it reads"
    ann.commit(silent)
    (cleaned,) = cleaner.run_once().cleaned
    assert {row.tablename for row in shown(ann) if row.id == cleaned} == {"u"}
    ann.abort(reader)
    assert len(cleaner.run_once().cleaned) == 1


def test_a_reader_of_a_table_that_is_renamed(ann: Caller, cleaner: Cleaner) -> None:
    create_database(ann, "d")
    create_table(ann, "d", "t")
    reader, other = ann.open(2)
    ann.call("add_write_ids_to_min_history", reader, {"d.t": 4, "d.u": 2})
    ann.call("add_write_ids_to_min_history", other, {"d.x": 4})
    renamed = get_table(ann, "d", "t")
    renamed.tableName = "u"
    ann.call("alter_table", "d", "t", renamed)
    replaced(ann, "u")
    assert cleaner.run_once().cleaned == []
    ann.commit(reader)
    assert len(cleaner.run_once().cleaned) == 1


def test_minimum_history_of_the_ended(ann: Caller) -> None:
    ended = ann.begin()
    ann.commit(ended)
    with refused("MetaException", "already committed"):
        ann.call("add_write_ids_to_min_history", ended, {"d.t": 4})
    with refused("MetaException", "db.table|database.table"):
        ann.call("add_write_ids_to_min_history", ann.begin(), {"t": 4})
    with refused("MetaException", "negative"):
        ann.call("add_write_ids_to_min_history", ann.begin(), {"d.t": -1})
