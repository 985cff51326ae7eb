"""Queueing, refusing and giving up (transactions.md §9, 42 to 53)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from hive_acid.errors import MetaError, NoSuchLockError, NoSuchTxnError, TxnAbortedError, TxnOpenError
from hive_acid.ids import LockId, TxnId
from metastore.lock.models import LockComponent, LockRequest, LockResult
from metastore.lock.service import LockService
from metastore.lock.states import LockAnswer, LockState, LockType
from metastore.store.database import Database
from metastore.txn.service import TxnService
from metastore.txn.states import Operation
from metastore.txn.write_ids.service import WriteIdService
from tests.lock.conftest import OWNER

ACQUIRED, WAITING, NOT_ACQUIRED = LockAnswer.ACQUIRED, LockAnswer.WAITING, LockAnswer.NOT_ACQUIRED
Ask = Callable[..., LockResult]
OpenOne = Callable[[], TxnId]


def test_nobody_overtakes(locks: LockService, ask: Ask, open_one: OpenOne) -> None:
    assert ask("r db/t", txn=open_one()).answer is ACQUIRED
    exclusive = ask("e db/t", txn=open_one())
    late = ask("r db/t", txn=open_one())
    assert (exclusive.answer, late.answer) == (WAITING, WAITING)
    assert locks.check_lock(late.lock_id).answer is WAITING
    locks.unlock(exclusive.lock_id)
    assert locks.check_lock(late.lock_id).answer is ACQUIRED
    assert locks.check_lock(late.lock_id).answer is ACQUIRED


def test_all_or_nothing(locks: LockService, ask: Ask, open_one: OpenOne) -> None:
    busy = ask("e db/busy", txn=open_one())
    blocked = ask("r db/free", "r db/busy", txn=open_one())
    assert blocked.answer is WAITING
    assert blocked.blocker == busy.lock_id
    assert {info.state for info in locks.show_locks() if info.lock_id == blocked.lock_id} == {LockState.WAITING}
    assert ask("r db/free", txn=open_one()).answer is ACQUIRED


def test_show_locks(locks: LockService, txns: TxnService, ask: Ask, open_one: OpenOne) -> None:
    holder, waiter = open_one(), open_one()
    held = ask("r db/a", "e db/b/p=1", txn=holder)
    blocked = ask("r db/a", "w db/b", txn=waiter)
    loose = ask("r other")
    shown = locks.show_locks()
    assert [(info.lock_id, info.component, info.state) for info in shown] == [
        (held.lock_id, 1, LockState.ACQUIRED),
        (loose.lock_id, 1, LockState.ACQUIRED),
        (held.lock_id, 2, LockState.ACQUIRED),
        (blocked.lock_id, 1, LockState.WAITING),
        (blocked.lock_id, 2, LockState.WAITING),
    ]
    assert [(info.blocker_lock, info.blocker_component) for info in shown[3:]] == [(None, None), (held.lock_id, 2)]
    assert (shown[2].db, shown[2].table, shown[2].partition, shown[2].type) == ("db", "b", "p=1", LockType.EXCLUSIVE)
    assert (shown[2].txn_id, shown[2].owner, shown[2].heartbeat_ms) == (holder, OWNER, None)
    assert shown[2].acquired_ms is not None
    assert shown[3].acquired_ms is None
    assert (shown[1].txn_id, shown[1].table, shown[1].heartbeat_ms is None) == (0, None, False)
    assert len(locks.show_locks(db="OTHER")) == 1
    assert len(locks.show_locks(db="db", table="B")) == 2
    assert len(locks.show_locks(partition="p=1")) == 1
    assert len(locks.show_locks(txn_id=waiter)) == 2
    txns.commit_txn(holder)
    assert locks.check_lock(blocked.lock_id).answer is ACQUIRED
    assert locks.show_locks(txn_id=waiter)[1].blocker_lock is None


def test_reader_that_will_not_wait(db: Database, locks: LockService, ask: Ask, open_one: OpenOne) -> None:
    holder = open_one()
    ask("e db/t", txn=holder)
    refused = ask("r db/t", txn=open_one(), reader_waits=False)
    assert refused.answer is NOT_ACQUIRED
    assert refused.message == f"no read lock on db/t without waiting: lock 1, EXCLUSIVE held by transaction {holder}"
    assert len(locks.show_locks()) == 1
    assert ask("w db/t", txn=open_one(), reader_waits=False).answer is WAITING
    assert ask("r db/t", reader_waits=False).answer is WAITING
    ask("e loose")
    refused = ask("r loose/t", txn=open_one(), reader_waits=False)
    assert refused.message is not None
    assert refused.message.endswith("EXCLUSIVE held outside of transactions")


def test_concurrent_ctas(locks: LockService, ask: Ask, open_one: OpenOne) -> None:
    ask("x db/new", txn=open_one(), exclusive_ctas=True)
    refused = ask("x db/new", "r db", txn=open_one(), exclusive_ctas=True)
    assert refused.answer is NOT_ACQUIRED
    assert refused.message is not None
    assert "CREATE TABLE AS SELECT" in refused.message
    assert len(locks.show_locks()) == 1


def test_refused_request_leaves_no_component(db: Database, locks: LockService, ask: Ask, open_one: OpenOne) -> None:
    ask("e db/t", txn=open_one())
    writer = LockComponent(LockType.SHARED_READ, "db", "t", None, Operation.INSERT)
    refused = locks.lock(LockRequest((writer,), OWNER, open_one(), reader_waits=False))
    assert refused.answer is NOT_ACQUIRED
    assert components(db) == []


def test_unlock(locks: LockService, txns: TxnService, ask: Ask, open_one: OpenOne) -> None:
    holder = open_one()
    held = ask("e db/t", txn=holder)
    waiting = ask("r db/t", txn=open_one())
    with pytest.raises(TxnOpenError, match=f"belongs to transaction {holder}"):
        locks.unlock(held.lock_id)
    locks.unlock(waiting.lock_id)
    locks.unlock(LockId(999))
    loose = ask("r db/u")
    locks.unlock(loose.lock_id)
    assert [info.lock_id for info in locks.show_locks()] == [held.lock_id]


def test_unlock_tells_what_was_freed(db: Database, ask: Ask) -> None:
    freed: list[LockId] = []
    loose = ask("e db1/t", "r db2")
    LockService(db, freed.extend).unlock(loose.lock_id)
    assert freed == [loose.lock_id]


def test_unknown_locks_and_transactions(locks: LockService, txns: TxnService, ask: Ask, open_one: OpenOne) -> None:
    with pytest.raises(NoSuchLockError, match="lockid:99"):
        locks.check_lock(LockId(99))
    committed, aborted = open_one(), open_one()
    lost = ask("r db/t", txn=aborted)
    txns.commit_txn(committed)
    txns.abort_txn(aborted)
    for txn_id, error in ((committed, NoSuchTxnError), (aborted, TxnAbortedError), (TxnId(99), NoSuchTxnError)):
        with pytest.raises(error):
            ask("r db/t", txn=txn_id)
    with pytest.raises(NoSuchLockError):
        locks.check_lock(lost.lock_id)
    with pytest.raises(TxnAbortedError):
        locks.check_lock(lost.lock_id, aborted)
    assert locks.show_locks() == []


def test_senseless_requests(locks: LockService, open_one: OpenOne) -> None:
    with pytest.raises(MetaError, match="without components"):
        locks.lock(LockRequest((), OWNER, open_one()))
    with pytest.raises(MetaError, match="partition of a table"):
        locks.lock(LockRequest((LockComponent(LockType.SHARED_READ, "db", None, "p=1"),), OWNER))


def test_check_keeps_alive(db: Database, locks: LockService, txns: TxnService, ask: Ask, open_one: OpenOne) -> None:
    held, loose = ask("r db/t", txn=open_one()), ask("r db/t")
    with db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE lock_component SET heartbeat_at = heartbeat_at - interval '1h'")
    old = locks.show_locks(txn_id=TxnId(0))[0].heartbeat_ms
    locks.check_lock(held.lock_id)
    locks.check_lock(loose.lock_id)
    new = locks.show_locks(txn_id=TxnId(0))[0].heartbeat_ms
    assert old is not None
    assert new is not None
    assert new >= old + 3_599_000
    assert txns.get_open_txns_info()[1][0].heartbeat_count == 1


def test_what_a_lock_declares(db: Database, locks: LockService, open_one: OpenOne) -> None:
    """Reads and non-transactional tables declare nothing; dynamic components are merged (transactions.md §3.2)."""
    txn_id = open_one()
    WriteIdService(db).allocate("db", "t", [txn_id])

    def wanted(
        partition: str | None, operation: Operation | None, dynamic: bool = False, table: str = "t"
    ) -> LockComponent:
        return LockComponent(LockType.SHARED_WRITE, "db", table, partition, operation, dynamic)

    requested = (
        wanted(None, None),
        wanted("p=1", Operation.INSERT),
        wanted("P=1", Operation.DELETE),
        wanted(None, Operation.INSERT, dynamic=True, table="dyn"),
        wanted(None, Operation.DELETE, dynamic=True, table="dyn"),
        wanted(None, Operation.INSERT, dynamic=True, table="ins"),
    )
    for _ in range(2):  # a repetition declares nothing twice
        locks.lock(LockRequest(requested, OWNER, txn_id))
    assert components(db) == [
        ("dyn", None, "u", None),
        ("ins", None, "i", None),
        ("t", "p=1", "d", 1),
        ("t", "p=1", "i", 1),
    ]


def test_hot_calls_are_one_round_trip(db: Database, locks: LockService, ask: Ask, open_one: OpenOne) -> None:
    txn_id = open_one()
    before = db.calls
    result = ask("r db/a", "w db/b/p=1", txn=txn_id)
    locks.check_lock(result.lock_id)
    locks.show_locks()
    assert db.calls - before == 3


def test_of_concurrent_exclusive_requests_one_is_granted(txns: TxnService, locks: LockService, ask: Ask) -> None:
    """On tables and on their database, in any order: those granted at the same time are compatible."""
    targets = ("e db/t", "x db/t/p=1", "w db/t", "x db")
    ids = txns.open_txns(40, OWNER)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: ask(targets[n % 4], txn=ids[n]), range(40)))
    granted = [result for result in answers if result.answer is ACQUIRED]
    assert granted[:1]
    kinds = {targets[answers.index(result) % 4] for result in granted}
    assert len(granted) == 1 or kinds == {"w db/t"}


def test_every_request_is_served_at_last(txns: TxnService, locks: LockService, ask: Ask) -> None:
    """Whoever waits gets the lock when all before have ended: in the order of the lock ids."""
    ids = txns.open_txns(12, OWNER)
    requests = [(ask("rwxe"[n % 4] + " db/t", txn=txn_id).lock_id, txn_id) for n, txn_id in enumerate(ids)]
    for lock_id, txn_id in requests:
        assert locks.check_lock(lock_id).answer is ACQUIRED
        txns.commit_txn(txn_id)
    assert locks.show_locks() == []


def components(db: Database) -> list[tuple[str, str | None, str, int | None]]:
    with db.engine.connect() as connection:
        rows = connection.exec_driver_sql(
            "SELECT tbl, partition, operation, write_id FROM txn_component ORDER BY 1, 2, 3"
        )
        return [(row[0], row[1], row[2], row[3]) for row in rows]
