"""Snapshots name all aborted transactions, though only those are read that are new since the snapshot before."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.transport import TCyMemoryBuffer

from hive_acid.format.snapshot import ValidTxnList
from hive_acid.ids import TxnId
from hive_acid.wire import ttypes
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.txn_cleaner import AcidTxnCleaner
from metastore.lock.beginning import Beginning, Beginnings
from metastore.rpc.encoding import codec
from metastore.rpc.structs.snapshots import SnapshotFields
from metastore.store.database import Database
from metastore.txn.calls import Opening
from metastore.txn.config import TxnConfig
from metastore.txn.models import Aborted, OpenTxns
from metastore.txn.service import TxnService
from metastore.txn.states import TxnType
from metastore.txn.write_ids.service import WriteIdService
from tests.caller import Caller
from tests.txn.conftest import OWNER

EVERY_TYPE: tuple[TxnType, ...] = ()
ABORT = "SELECT abort_txns(ARRAY[{}]::bigint[], 'a test')"
CRASH = "TRUNCATE uncrashed; SELECT recover_from_crash()"


def aborted_on_record(db: Database) -> list[TxnId]:
    with db.engine.connect() as connection:
        return list(connection.exec_driver_sql("SELECT txn_id FROM txn WHERE state = 'a' ORDER BY txn_id").scalars())


@contextmanager
def transaction(db: Database) -> Iterator[Any]:
    """A transaction of the database, which commits at the end of the block."""
    with db.engine.begin() as connection:
        yield connection


def purge(db: Database) -> None:
    AcidTxnCleaner(db, HousekeepingConfig(finished_retention_ms=0)).run_once()


def test_an_abort_that_ends_late_is_named(db: Database, txns: TxnService) -> None:
    """Snapshots are taken while it is under way, and others that begin later end before it."""
    late, early, last = txns.open_txns(3, OWNER)
    with transaction(db) as slow:
        slow.exec_driver_sql(ABORT.format(late))
        assert txns.get_open_txns(EVERY_TYPE).aborted_ids == []
        txns.abort_txn(early)
        assert txns.get_open_txns(EVERY_TYPE).aborted_ids == [early]
        assert txns.get_open_txns(EVERY_TYPE).open_ids == [late, last]
    assert txns.get_open_txns(EVERY_TYPE).aborted_ids == [late, early]
    assert txns.get_open_txns(EVERY_TYPE).aborted_ids == [late, early]
    txns.abort_txn(last)
    assert txns.get_open_txns(EVERY_TYPE).aborted_ids == [late, early, last]


def test_what_is_forgotten_is_named_no_more(db: Database, txns: TxnService) -> None:
    first, second = txns.open_txns(2, OWNER)
    txns.abort_txn(first)
    assert txns.get_open_txns().aborted_ids == [first]
    purge(db)
    assert txns.get_open_txns().aborted_ids == []
    txns.abort_txn(second)
    assert txns.get_open_txns().aborted_ids == [second]


def test_a_crash_of_the_database_begins_another_era(db: Database, txns: TxnService) -> None:
    """It may give the id of a database transaction again that a snapshot of before has passed over."""
    first, second = txns.open_txns(2, OWNER)
    txns.abort_txn(first)
    assert txns.get_open_txns().aborted_ids == [first]
    with transaction(db) as connection:
        connection.exec_driver_sql(ABORT.format(second))
        connection.exec_driver_sql(f"UPDATE txn SET ended_xid = '3' WHERE txn_id = {second}")
        connection.exec_driver_sql(CRASH)
    assert txns.get_open_txns().aborted_ids == [first, second]


@pytest.mark.parametrize("seed", range(12))
def test_each_snapshot_names_what_is_on_record(db: Database, seed: int) -> None:
    """Of several servers, by both calls, beside aborts under way, purges and crashes."""
    random_ = random.Random(seed)
    servers = [TxnService(db, TxnConfig()) for _ in range(2)]
    beginnings = [Beginnings(db, one, 10_000, WriteIdService(db).aborted_ids) for one in servers]
    under_way: list[Any] = []
    open_ids = servers[0].open_txns(3, OWNER)
    for _ in range(60):
        one = random_.randrange(2)
        match random_.choice(
            ("open", "abort", "abort", "slow", "end", "end", "purge", "crash", "look", "look", "begin")
        ):
            case "open":
                open_ids += servers[one].open_txns(random_.randint(1, 3), OWNER)
            case "abort" if open_ids:
                servers[one].abort_txn(open_ids.pop(random_.randrange(len(open_ids))))
            case "slow" if open_ids and len(under_way) < 3:
                connection = db.engine.connect()
                under_way.append(connection)
                connection.exec_driver_sql(ABORT.format(open_ids.pop(random_.randrange(len(open_ids)))))
            case "end" if under_way:
                connection = under_way.pop(random_.randrange(len(under_way)))
                connection.commit() if random_.random() < 0.7 else connection.rollback()
                connection.close()
            case "purge":
                purge(db)
            case "crash" if not under_way:
                with transaction(db) as connection:
                    connection.exec_driver_sql(CRASH)
            case "look":
                assert servers[one].get_open_txns(EVERY_TYPE).aborted_ids == aborted_on_record(db)
            case "begin":
                begun = db.wait(beginnings[one].begin_soon(Beginning(Opening(1, OWNER, TxnType.DEFAULT))))
                assert begun.snapshot.aborted_ids == aborted_on_record(db)
                open_ids.append(begun.txn_id)
    for connection in under_way:
        connection.close()


# --- as they are sent ------------------------------------------------------------------------------------------------


def decoded(body: bytes) -> Any:
    """The HiveAcidSnapshot of these fields."""
    rest = codec.encoded(ttypes.HiveAcidSnapshot(highWaterMark=1_000))
    found = ttypes.HiveAcidSnapshot()
    TCyBinaryProtocol(TCyMemoryBuffer(body + rest)).read_struct(found)
    return found


@pytest.mark.parametrize("seed", range(30))
def test_a_snapshot_is_read_as_it_was_sent(seed: int) -> None:
    random_ = random.Random(seed)
    ids = sorted(random_.sample(range(1, 1_000), random_.choice((0, 1, 7, 8, 9, 200))))
    aborted = [TxnId(one) for one in ids if random_.random() < random_.choice((0, 0.1, 0.9, 1))]
    open_ids = [TxnId(one) for one in ids if one not in aborted]
    snapshot = OpenTxns(TxnId(1_000), open_ids, Aborted.only(aborted), None)
    fields = SnapshotFields(2, 3)
    found = decoded(fields.of(snapshot))
    assert found.openTxns == ids
    assert not found.abortedBits.endswith(b"\0")
    expected = ValidTxnList(1_000, tuple(open_ids), tuple(aborted))
    assert ValidTxnList.from_open_txns(1_000, found.openTxns, found.abortedBits) == expected
    assert decoded(fields.of(snapshot)) == found
    new = aborted[::3]
    short = decoded(fields.with_new(snapshot, new))
    assert ValidTxnList.from_open_txns(1_000, short.openTxns, short.abortedBits) == replace(
        expected, aborted_ids=tuple(new)
    )


@pytest.mark.parametrize("seed", range(10))
def test_what_is_new_is_told_to_who_knows_the_rest(seed: int) -> None:
    random_ = random.Random(seed)
    now = Aborted.only([TxnId(5), TxnId(7)])
    earlier = [now]
    for _ in range(10):
        now = now.and_those([TxnId(one) for one in random_.sample(range(1, 41), random_.randint(0, 3))])
        earlier.append(now)
    for one in earlier:
        for before in earlier[: earlier.index(one) + 1]:
            assert one.since(before.number) == sorted(set(one.ids) - set(before.ids))
    assert now.since(None) is None
    assert now.since(0) is None
    assert now.since(now.number + 1) is None
    assert now.since(Aborted.only(now.ids).number) is None
    assert earlier[0].ids == [5, 7]


def test_who_knows_the_aborted_ones_is_not_told_them_again(ann: Caller) -> None:
    ann.abort(ann.begin())
    first = ann.begin_statement()
    assert first.snapshot.abortedBits == b"\1"

    again = ann.call("hive_acid_begin", _knowing(ann, first.abortedVersion))
    assert again.abortedVersion == first.abortedVersion
    assert (again.snapshot.openTxns, again.snapshot.abortedBits) == ([first.txnid, again.txnid], b"")

    ann.abort(first.txnid)
    now = ann.call("hive_acid_begin", _knowing(ann, first.abortedVersion))
    assert now.abortedVersion != first.abortedVersion
    assert now.snapshot.isBesideKnown
    assert (now.snapshot.openTxns, now.snapshot.abortedBits) == ([first.txnid, again.txnid, now.txnid], b"\1")
    whole = ann.begin_statement()
    assert not whole.snapshot.isBesideKnown
    assert whole.snapshot.openTxns == [1, first.txnid, again.txnid, now.txnid, whole.txnid]
    assert whole.snapshot.abortedBits == b"\3"


def _knowing(caller: Caller, version: int) -> Any:
    request = caller.beginning()
    request.knownAborted = version
    return request
