"""A rebalance gives rows other ids; nobody fails by that who was there before it (transactions.md §4.7)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest

from hive_acid.compaction_job import CompactionJob
from hive_acid.errors import TxnAbortedError
from hive_acid.ids import LockId, TxnId
from metastore.compaction.models import Compaction
from metastore.compaction.states import CompactionState, CompactionType
from metastore.compaction.worker.back_off import BackOff, Patience
from metastore.compaction.worker.job import CompactionCancelledError
from metastore.lock.models import LockComponent, LockRequest, LockResult
from metastore.lock.states import LockAnswer, LockType
from metastore.txn.models import Intent
from metastore.txn.states import Operation, TxnType
from tests.compaction.world import OWNER, World, nothing_left
from tests.waiting import stays, until

DONE, QUEUED = CompactionState.READY_FOR_CLEANING, CompactionState.INITIATED
BLOCK = Intent(may_begin_again=False)
BLOCK_HERE = Intent((("db", "t"), ("db", "x")), may_begin_again=False)
BLOCK_ELSEWHERE = Intent((("db", "x"),), may_begin_again=False)
STATEMENT = Intent((("db", "t"),), may_begin_again=True)
OTHER_ENGINE = Intent()
SHORT = Patience(before_the_lock_s=0.3, behind_the_lock_s=0.3, before_the_commit_s=0.3, pause_s=0.05)


@pytest.fixture
def filled(world: World) -> World:
    world.patience = SHORT
    world.write(inserts=3)
    world.write(inserts=3)
    return world


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as executor:
        yield executor


def open_with(world: World, intent: Intent, txn_type: TxnType = TxnType.DEFAULT) -> TxnId:
    (txn_id,) = world.txns.open_txns(1, OWNER, txn_type, intent)
    return txn_id


def lock(world: World, txn_id: TxnId, kind: LockType, table: str = "t") -> LockAnswer:
    operation = None if kind is LockType.SHARED_READ else Operation.UPDATE
    component = LockComponent(kind, "db", table, operation=operation)
    return world.locks.lock(LockRequest((component,), OWNER, txn_id)).answer


def change(world: World, txn_id: TxnId) -> None:
    """Delete a row by the id that it has for the transaction, and commit."""
    world.write(txn_id, inserts=0, deletes=[min(world.read(world.snapshot(txn_id)))])
    world.txns.commit_txn(txn_id)


def holds_lock(world: World) -> bool:
    return any(one.type is LockType.EXCL_WRITE for one in world.locks.show_locks("db"))


def rebalance(world: World) -> Compaction:
    return world.compact(CompactionType.REBALANCE)


# --- who is waited for --------------------------------------------------------------------------------


@pytest.mark.parametrize("intent", [BLOCK, BLOCK_HERE, OTHER_ENGINE], ids=["block", "block that names it", "Hive"])
def test_who_may_yet_change_rows_is_waited_for(filled: World, intent: Intent) -> None:
    """Without a lock in anybody's way; it goes back into the queue in the end, and says why."""
    early = open_with(filled, intent)
    before = filled.directories()
    found = rebalance(filled)
    assert found.state is QUEUED
    assert found.reason is not None
    assert f"transaction {early} of ann on host1 with test" in found.reason
    assert f"may yet change rows of db.t, and would fail with other row ids: let it end, or ABORT TRANSACTIONS {early}"\
        in found.reason  # fmt: skip
    assert filled.executor.jobs == []
    assert filled.directories() == before
    change(filled, early)
    assert filled.worker().run_once()
    assert filled.service.get(found.id).state is DONE
    assert len(filled.read()) == 5
    assert nothing_left(filled)


def test_it_goes_on_as_soon_as_they_have_ended(
    filled: World, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.patience = replace(SHORT, before_the_lock_s=30)
    early = open_with(filled, BLOCK)
    working = pool.submit(rebalance, filled)
    stays(lambda: not working.done(), 0.3)
    assert not holds_lock(filled), "nobody waits behind it meanwhile"
    change(filled, early)
    assert working.result(10).state is DONE
    assert len(filled.read()) == 5


@pytest.mark.parametrize(
    ("intent", "txn_type"),
    [
        (BLOCK_ELSEWHERE, TxnType.DEFAULT),
        (STATEMENT, TxnType.DEFAULT),
        (Intent((("db", "t"),)), TxnType.READ_ONLY),
        (OTHER_ENGINE, TxnType.READ_ONLY),
        (OTHER_ENGINE, TxnType.COMPACTION),
    ],
)
def test_others_are_not_waited_for(filled: World, intent: Intent, txn_type: TxnType) -> None:
    open_with(filled, intent, txn_type)
    assert rebalance(filled).state is DONE


def test_another_engines_statement_that_has_its_locks_is_not_waited_for(filled: World) -> None:
    """It locks all that it needs at once, and the rows are locked by the rebalance."""
    for kind, table in ((LockType.SHARED_READ, "t"), (LockType.SHARED_WRITE, "x")):
        assert lock(filled, open_with(filled, OTHER_ENGINE), kind, table) is LockAnswer.ACQUIRED
    assert rebalance(filled).state is DONE


# --- who comes meanwhile ------------------------------------------------------------------------------


def meanwhile(world: World, comes: Callable[[], None]) -> None:
    """Have something happen during the job, which then goes on until it is cancelled, for a while at most."""

    def before(job: CompactionJob, cancelled: threading.Event) -> None:
        comes()
        if cancelled.wait(1.6):
            raise CompactionCancelledError("cancelled")

    world.executor.before = before


@pytest.mark.parametrize("intent", [BLOCK, OTHER_ENGINE], ids=["block", "Hive 3"])
def test_it_gives_way_to_who_waits_for_its_lock(filled: World, intent: Intent) -> None:
    """The job is ended at once; the change has its lock, and commits."""
    waiting: list[TxnId] = []
    results: list[LockResult] = []

    def comes() -> None:
        waiting.append(open_with(filled, intent))
        component = LockComponent(LockType.SHARED_WRITE, "db", "t", operation=Operation.DELETE)
        results.append(filled.locks.lock(LockRequest((component,), OWNER, waiting[0])))
        assert results[0].answer is LockAnswer.WAITING

    meanwhile(filled, comes)
    found = rebalance(filled)
    assert found.state is QUEUED
    assert f"transaction {waiting[0]} of ann" in (found.reason or "")
    assert "waits to change db.t" in (found.reason or "")
    assert filled.locks.check_lock(results[0].lock_id, waiting[0]).answer is LockAnswer.ACQUIRED
    assert not any(name.startswith(("base_", "_tmp")) for name in filled.directories())
    change(filled, waiting[0])
    filled.executor.before = lambda job, cancelled: None
    assert filled.worker().run_once()
    assert filled.service.get(found.id).state is DONE
    assert len(filled.read()) == 5


@pytest.mark.parametrize("kind", [LockType.SHARED_WRITE, LockType.EXCL_WRITE])
def test_who_begins_anew_waits_for_it(filled: World, kind: LockType) -> None:
    """A statement of ours; one of Hive 4, which asks for an exclusive lock and looks for changes behind it."""
    intent = STATEMENT if kind is LockType.SHARED_WRITE else OTHER_ENGINE
    waiting: list[TxnId] = []

    def comes() -> None:
        waiting.append(open_with(filled, intent))
        assert lock(filled, waiting[0], kind) is LockAnswer.WAITING

    meanwhile(filled, comes)
    found = rebalance(filled)
    assert found.state is DONE
    assert filled.txns.get_latest_txnid_in_conflict(waiting[0]) == found.txn_id


def test_it_does_not_commit_before_who_may_yet_change_rows(filled: World) -> None:
    """One that came during the job, and does not wait for a lock yet."""
    came: list[TxnId] = []
    filled.executor.before = lambda job, cancelled: came.append(open_with(filled, BLOCK))
    found = rebalance(filled)
    assert found.state is QUEUED
    assert "may yet change rows of db.t" in (found.reason or "")
    assert not any(name.startswith("base_") for name in filled.directories())
    change(filled, came[0])
    assert len(filled.read()) == 5


def test_the_commit_looks_once_more(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes after the last look is seen by the commit itself: it does not take place."""
    came: list[TxnId] = []
    finish = BackOff.finish

    def too_early(self: BackOff) -> None:
        finish(self)
        came.append(open_with(filled, BLOCK))

    monkeypatch.setattr(BackOff, "finish", too_early)
    found = rebalance(filled)
    assert found.state is not CompactionState.SUCCEEDED
    assert found.committed_at is None
    change(filled, came[0])
    assert len(filled.read()) == 5
    monkeypatch.undo()
    filled.service.requeue()
    assert filled.worker().run_once()
    assert filled.service.get(found.id).state is DONE
    assert len(filled.read()) == 5


def test_the_server_may_stop_while_it_waits(filled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    filled.patience = replace(SHORT, before_the_lock_s=30)
    open_with(filled, BLOCK)
    answer = filled.request(CompactionType.REBALANCE)
    worker = filled.worker()
    with ThreadPoolExecutor() as executor:
        working: Future[bool] = executor.submit(worker.run_once)
        until(lambda: filled.service.get(answer.id).state is CompactionState.WORKING)
        worker.stop()
        assert working.result(5)
    found = filled.service.get(answer.id)
    assert (found.state, found.attempts) == (QUEUED, 0)


# --- all together -------------------------------------------------------------------------------------


def test_nobody_fails_in_a_crowd(filled: World) -> None:
    """Blocks that open, lock and delete one row after the other, and a rebalance that is asked for again and again."""
    over = threading.Event()
    failures: list[str] = []
    turn = threading.Lock()  # of two changes at a time one fails, with or without a rebalance
    deleted = 0

    def is_acquired(lock_id: LockId, txn_id: TxnId) -> bool:
        return filled.locks.check_lock(lock_id, txn_id).answer is LockAnswer.ACQUIRED

    def changes() -> None:
        nonlocal deleted
        while not over.is_set() and filled.read():
            with turn:
                txn_id = open_with(filled, BLOCK_HERE)
                over.wait(0.05)
                key = min(filled.read(filled.snapshot(txn_id)))
                component = LockComponent(LockType.SHARED_WRITE, "db", "t", operation=Operation.DELETE)
                result = filled.locks.lock(LockRequest((component,), OWNER, txn_id))
                if result.answer is LockAnswer.WAITING:
                    until(partial(is_acquired, result.lock_id, txn_id))
                try:
                    filled.write(txn_id, inserts=0, deletes=[key])
                    filled.txns.commit_txn(txn_id)
                    deleted += 1
                except TxnAbortedError as error:
                    failures.append(str(error))
            over.wait(0.3)

    thread = threading.Thread(target=changes)
    thread.start()
    done = 0
    try:
        for _ in range(6):
            answer = filled.request(CompactionType.REBALANCE)
            while filled.service.get(answer.id).state is QUEUED:
                filled.worker().run_once()
            done += filled.service.get(answer.id).state is DONE
            filled.cleaner().run_once()
    finally:
        over.set()
        thread.join()
    assert failures == []
    assert done > 0
    assert len(filled.read()) == 6 - deleted
