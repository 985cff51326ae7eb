"""Open, heartbeat, commit and abort (transactions.md §9, 1 to 16)."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from hive_acid.errors import MetaError, NoSuchLockError, NoSuchTxnError, TxnAbortedError
from hive_acid.ids import LockId, TxnId
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.service import LockService
from metastore.lock.states import LockType
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from metastore.txn.service import TxnService
from metastore.txn.states import TxnState, TxnType
from tests.txn.conftest import OWNER

OpenOne = Callable[..., TxnId]


def test_fresh_store_is_empty(txns: TxnService) -> None:
    snapshot = txns.get_open_txns()
    assert (snapshot.high_water_mark, snapshot.open_ids, snapshot.aborted_ids, snapshot.min_open) == (0, [], [], None)
    assert txns.get_open_txns_info() == (0, [])


def test_open_three(txns: TxnService) -> None:
    assert txns.open_txns(3, OWNER) == [1, 2, 3]
    snapshot = txns.get_open_txns()
    assert (snapshot.high_water_mark, snapshot.open_ids, snapshot.min_open) == (3, [1, 2, 3], 1)


def test_open_checks_and_cuts_the_number(txns: TxnService) -> None:
    for number in (0, -1):
        with pytest.raises(MetaError, match=f"not {number}"):
            txns.open_txns(number, OWNER)
    assert len(txns.open_txns(1500, OWNER)) == 1000


def test_limit_of_open_transactions_is_exact(db: Database) -> None:
    txns = TxnService(db, TxnConfig(max_open_txns=5))
    first = txns.open_txns(4, OWNER)
    with pytest.raises(MetaError, match=r"hive\.max\.open\.txns, which is 5"):
        txns.open_txns(2, OWNER)
    assert txns.get_open_txns().high_water_mark == 4
    txns.open_txns(1, OWNER)
    with pytest.raises(MetaError):
        txns.open_txns(1, OWNER)
    txns.commit_txn(first[0])
    assert txns.open_txns(1, OWNER) == [6]


def test_limit_holds_against_parallel_opens(db: Database) -> None:
    txns = TxnService(db, TxnConfig(max_open_txns=10))

    def attempt(_: int) -> int:
        try:
            return len(txns.open_txns(3, OWNER))
        except MetaError:
            return 0

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(attempt, range(12))) == 9


def test_info_tells_everything(txns: TxnService, open_one: OpenOne) -> None:
    before_ms = time.time() * 1000 - 5
    first, second = open_one(), open_one(TxnType.READ_ONLY)
    txns.abort_txn(first, 50005)
    mark, (aborted, reader) = txns.get_open_txns_info()
    assert mark == second
    assert (aborted.txn_id, aborted.state, aborted.abort_reason) == (first, TxnState.ABORTED, "rolled back")
    assert (reader.txn_id, reader.state, reader.type, reader.abort_reason) == (
        second,
        TxnState.OPEN,
        TxnType.READ_ONLY,
        None,
    )
    assert reader.owner == OWNER
    assert before_ms <= reader.started_ms == reader.heartbeat_ms <= time.time() * 1000 + 5


def test_heartbeat_advances_its_time(db: Database, txns: TxnService, open_one: OpenOne) -> None:
    txn_id = open_one()
    age(db, txn_id, seconds=100)
    old = txns.get_open_txns_info()[1][0]
    txns.heartbeat(txn_id)
    new = txns.get_open_txns_info()[1][0]
    assert new.heartbeat_ms >= old.heartbeat_ms + 99_000
    assert (old.heartbeat_count, new.heartbeat_count) == (0, 1)


def test_heartbeat_of_what_is_not_open(txns: TxnService, open_one: OpenOne) -> None:
    aborted, committed = open_one(), open_one()
    txns.abort_txn(aborted)
    txns.commit_txn(committed)
    with pytest.raises(TxnAbortedError, match="already aborted"):
        txns.heartbeat(aborted)
    for txn_id in (committed, TxnId(99)):
        with pytest.raises(NoSuchTxnError):
            txns.heartbeat(txn_id)
    txns.heartbeat(None, None)
    with pytest.raises(NoSuchLockError):
        txns.heartbeat(None, LockId(99))


def test_heartbeat_of_both_is_all_or_nothing(db: Database, txns: TxnService, open_one: OpenOne) -> None:
    txn_id = open_one()
    with pytest.raises(NoSuchLockError):
        txns.heartbeat(txn_id, LockId(99))
    assert txns.get_open_txns_info()[1][0].heartbeat_count == 0


def test_heartbeat_of_a_range(txns: TxnService) -> None:
    txns.open_txns(4, OWNER)
    txns.abort_txn(TxnId(2))
    txns.commit_txn(TxnId(3))
    found = txns.heartbeat_txn_range(TxnId(1), TxnId(6))
    assert (found.aborted, found.nosuch) == ({2}, {3, 5, 6})
    assert {info.txn_id: info.heartbeat_count for info in txns.get_open_txns_info()[1]} == {1: 1, 2: 0, 4: 1}
    found = txns.heartbeat_txn_range(TxnId(4), TxnId(4))
    assert (found.aborted, found.nosuch) == (set(), set())
    with pytest.raises(MetaError, match="too many"):
        txns.heartbeat_txn_range(TxnId(1), TxnId(2**60))


def test_overlapping_ranges_do_not_deadlock(txns: TxnService) -> None:
    txns.open_txns(200, OWNER)
    ranges = [(TxnId(1), TxnId(150)), (TxnId(50), TxnId(200))] * 20
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda ids: txns.heartbeat_txn_range(*ids), ranges))
    assert all(not one.aborted and not one.nosuch for one in found)


def test_commit_ends_it_and_frees_its_locks(txns: TxnService, locks: LockService, open_one: OpenOne) -> None:
    freed: list[set[int]] = []
    txns = TxnService(txns._db, TxnConfig(), lambda lock_ids: freed.append(set(lock_ids)))
    txn_id = open_one()
    locks.lock(LockRequest((LockComponent(LockType.EXCLUSIVE, "db1", "t"),), OWNER, txn_id))
    locks.lock(LockRequest((LockComponent(LockType.SHARED_READ, "db2"),), OWNER, txn_id))
    txns.commit_txn(txn_id)
    snapshot = txns.get_open_txns()
    assert (snapshot.high_water_mark, snapshot.open_ids, snapshot.min_open) == (txn_id, [], None)
    assert locks.show_locks() == []
    assert freed == [{1, 2}]


def test_commit_of_what_is_not_open(txns: TxnService, open_one: OpenOne) -> None:
    committed, aborted = open_one(), open_one()
    txns.commit_txn(committed)
    txns.commit_txn(committed)
    txns.abort_txn(aborted)
    with pytest.raises(TxnAbortedError):
        txns.commit_txn(aborted)
    with pytest.raises(NoSuchTxnError):
        txns.commit_txn(TxnId(99))


def test_abort_of_what_is_not_open(txns: TxnService, open_one: OpenOne) -> None:
    aborted, committed = open_one(), open_one()
    txns.abort_txn(aborted)
    txns.abort_txn(aborted)
    txns.commit_txn(committed)
    assert txns.get_open_txns().aborted_ids == [aborted]
    for txn_id in (committed, TxnId(99)):
        with pytest.raises(NoSuchTxnError):
            txns.abort_txn(txn_id)


def test_abort_of_a_mixed_list(txns: TxnService) -> None:
    txns.open_txns(4, OWNER)
    txns.abort_txn(TxnId(1))
    txns.commit_txn(TxnId(2))
    done = txns.abort_txns([TxnId(id_) for id_ in (4, 1, 2, 77)], 50001)
    assert (done.aborted, done.aborted_before, done.committed) == ([4], [1], [2])
    assert (txns.get_open_txns().open_ids, txns.get_open_txns().aborted_ids) == ([3], [1, 4])
    with pytest.raises(NoSuchTxnError, match="empty"):
        txns.abort_txns([])


def test_read_only_ones_are_hidden_from_the_plain_snapshot(txns: TxnService, open_one: OpenOne) -> None:
    reader, writer = open_one(TxnType.READ_ONLY), open_one()
    plain = txns.get_open_txns()
    assert (plain.open_ids, plain.min_open, plain.high_water_mark) == ([writer], reader, writer)
    assert txns.get_open_txns([]).open_ids == [reader, writer]
    assert txns.get_open_txns([TxnType.DEFAULT]).open_ids == [reader]


def test_ids_have_no_gaps_and_become_visible_in_order(txns: TxnService) -> None:
    """At any time the ids up to the high-water mark are all there: open, aborted or committed."""
    seen: list[tuple[int, list[TxnId]]] = []

    def open_some(_: int) -> list[TxnId]:
        opened = txns.open_txns(2, OWNER)
        snapshot = txns.get_open_txns([])
        assert set(opened) <= set(snapshot.open_ids)
        seen.append((snapshot.high_water_mark, snapshot.open_ids))
        return opened

    with ThreadPoolExecutor(8) as pool:
        opened = [txn_id for ids in pool.map(open_some, range(60)) for txn_id in ids]
    assert sorted(opened) == list(range(1, 121))
    assert all(ids == list(range(1, mark + 1)) for mark, ids in seen)


def test_hot_calls_are_one_round_trip(db: Database, txns: TxnService) -> None:
    def trips(call: Callable[[], object]) -> int:
        before = db.calls
        call()
        return db.calls - before

    assert trips(lambda: txns.open_txns(10, OWNER)) == 1
    assert trips(txns.get_open_txns) == 1
    assert trips(lambda: txns.heartbeat(TxnId(1))) == 1
    assert trips(lambda: txns.heartbeat_txn_range(TxnId(1), TxnId(10))) == 1
    assert trips(lambda: txns.commit_txn(TxnId(1))) == 1
    assert trips(lambda: txns.abort_txns([TxnId(2), TxnId(3)])) == 1


def age(db: Database, txn_id: TxnId, seconds: int) -> None:
    """Let a transaction look as if its last heartbeat were that long ago."""
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE txn SET heartbeat_at = heartbeat_at - make_interval(secs => %s), started_at = started_at"
            " - make_interval(secs => %s) WHERE txn_id = %s",
            (seconds, seconds, txn_id),
        )
