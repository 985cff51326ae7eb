"""How attempts at a compaction end: done, lost, killed, stopped or timed out; nothing is lost and nothing stuck."""

import threading
import time
from typing import Any

import pytest

from hive_acid.compaction_job import CompactionJob, JobProgress, TellProgress
from hive_acid.errors import MetaError
from hive_acid.filesystem import files
from hive_acid.ids import CompactionId, TxnId
from metastore.compaction.states import CompactionState, CompactionType
from metastore.compaction.worker.job import BackendLostError, CompactionCancelledError
from metastore.txn.service import TxnService
from tests.compaction.world import World, abort, nothing_left, write_directory

MINOR, MAJOR = CompactionType.MINOR, CompactionType.MAJOR


def test_compaction_that_loses_its_transaction(world: World) -> None:
    """Somebody aborts it while Spark works: the output is not published."""
    world.write()
    world.write()
    before = world.directories()
    world.executor.before = lambda job, cancelled: abort(world, CompactionId(job.id))
    done = world.compact(MAJOR)
    assert done.state is CompactionState.FAILED
    assert "aborted" in (done.error_message or "")
    assert world.directories() == before


def test_a_lost_transaction_is_noticed_at_once(world: World) -> None:
    """Long before the next heartbeat: the job ends within two seconds."""
    world.write()
    world.write()
    waited: list[float] = []

    def aborted(job: CompactionJob, cancelled: threading.Event) -> None:
        abort(world, CompactionId(job.id))
        begun = time.monotonic()
        assert cancelled.wait(10)
        waited.append(time.monotonic() - begun)
        raise CompactionCancelledError("cancelled")

    world.executor.before = aborted
    answer = world.request()
    world.worker(heartbeat_ms=60_000).run_once()
    done = world.service.get(answer.id)
    assert (done.state, done.error_message) == (CompactionState.FAILED, "its transaction was aborted, or timed out")
    assert waited[0] < 2
    assert nothing_left(world)


def test_time_out(world: World) -> None:
    """It fails: it would take as long again."""
    world.write()
    world.write()
    before = world.directories()
    world.configure(worker_timeout_ms=300)

    def slow(job: CompactionJob, cancelled: threading.Event) -> None:
        assert cancelled.wait(10)
        raise CompactionCancelledError("cancelled")

    world.executor.before = slow
    done = world.compact(MAJOR)
    assert (done.state, done.error_message) == (
        CompactionState.FAILED,
        "it took longer than hive.compactor.worker.timeout",
    )
    assert world.directories() == before
    assert nothing_left(world)


def test_without_spark_it_waits_for_another_attempt(world: World) -> None:
    world.write()
    world.write()
    world.configure(max_attempts=2)

    def lost(job: CompactionJob, cancelled: threading.Event) -> None:
        raise BackendLostError("no cluster")

    world.executor.before = lost
    answer = world.request()
    for state, reason in (
        (CompactionState.INITIATED, "attempt 1 of 2 ended: no cluster"),
        (CompactionState.FAILED, "attempt 2 of 2 ended: no cluster"),
    ):
        with pytest.raises(BackendLostError):
            world.worker().run_once()
        found = world.service.get(answer.id)
        assert (found.state, found.reason) == (state, reason)
        assert nothing_left(world)


def test_second_rename_fails(world: World) -> None:
    """One twin is in place, the other cannot be: both go."""
    world.write(inserts=2)
    world.write(inserts=1, deletes=[min(world.read())])
    rows = world.read()
    world.executor.after = lambda job: write_directory(files.join(job.location, job.delete_output or ""), [])
    done = world.compact(MINOR)
    assert done.state is CompactionState.FAILED
    assert "exists" in (done.error_message or "")
    assert not [name for name in world.directories() if "_v" in name or name.startswith("_tmp")]
    assert world.read() == rows


class CommitAnswerLost(TxnService):
    """The connection breaks between the commit and its answer."""

    def commit_txn(self, txn_id: TxnId, skip_conflict_check: bool = False) -> None:
        super().commit_txn(txn_id, skip_conflict_check)
        raise ConnectionError("connection lost")


def test_lost_answer_of_the_commit_keeps_the_output(world: World) -> None:
    world.write()
    world.write()
    rows = world.read()
    world.txns = CommitAnswerLost(world.db, world.txns._config)
    done = world.compact(MAJOR)
    assert done.state is CompactionState.READY_FOR_CLEANING
    assert done.committed_at is not None
    assert "base_0000002_v0000003" in world.directories()
    assert world.read() == rows


def test_lost_answer_of_mark_compacted_is_asked_for_again(world: World) -> None:
    world.write()
    world.write()
    answer = world.request()
    lost: list[Any] = []
    worker = world.worker()
    mark = worker._service.mark_compacted

    def answer_lost(compaction_id: CompactionId, name: str | None = None) -> None:
        mark(compaction_id, name)
        if not lost:
            lost.append(compaction_id)
            raise MetaError("the database connection was lost during mark_compacted: outcome unknown")

    worker._service.mark_compacted = answer_lost  # type: ignore[assignment, method-assign]
    assert worker.run_once()
    done = world.service.get(answer.id)
    assert (done.state, lost) == (CompactionState.READY_FOR_CLEANING, [answer.id])
    assert done.committed_at is not None
    assert "base_0000002_v0000003" in world.directories()


def test_a_compaction_that_is_somebody_elses_by_now_ends(world: World) -> None:
    """Its transaction is open still; the next word of the job finds it out."""
    world.write()
    world.write()
    answer = world.request()

    def requeued(job: CompactionJob, report: TellProgress) -> None:
        world.configure(worker_timeout_ms=0, claim_timeout_ms=0)
        assert world.service.requeue() == [(answer.id, CompactionState.INITIATED)]
        report(JobProgress("app-1:1"))

    attempts: list[threading.Event] = []

    def wait(job: CompactionJob) -> None:
        assert attempts[0].wait(10)
        raise CompactionCancelledError("cancelled")

    world.executor.before = lambda job, cancelled: attempts.append(cancelled)
    world.executor.tell, world.executor.after = requeued, wait
    assert world.worker().run_once()
    assert world.service.get(answer.id).state is CompactionState.INITIATED
    assert not [name for name in world.directories() if "_v" in name or name.startswith("_tmp")]
    assert world.txns.get_open_txns(()).open_ids == []


class Killed(BaseException):
    """The process ends here: no clean-up runs."""


def _kill(*_: object) -> None:
    raise Killed


def test_killed_while_spark_works(world: World) -> None:
    """Its transaction times out, the compaction is queued again, another worker does it, the rest is swept away."""
    world.write()
    world.write()
    rows = world.read()
    answer = world.request()
    world.executor.after = _kill
    with pytest.raises(Killed):
        world.worker("worker-1").run_once()
    world.executor.after = lambda job: None
    assert world.service.get(answer.id).state is CompactionState.WORKING
    assert world.service.requeue() == []
    abort(world, answer.id)
    assert world.service.requeue() == [(answer.id, CompactionState.INITIATED)]
    assert world.worker("worker-2").run_once()
    assert world.service.get(answer.id).state is CompactionState.READY_FOR_CLEANING
    world.cleaner().run_once()
    assert world.service.get(answer.id).state is CompactionState.SUCCEEDED
    assert world.directories() == ["base_0000002_v0000004"]
    assert world.read() == rows
    assert nothing_left(world)


def test_killed_after_the_renames(world: World) -> None:
    """The output of the dead worker is seen by nobody and removed."""
    world.write()
    world.write()
    rows = world.read()
    answer = world.request()
    worker = world.worker("worker-1")
    worker._service.mark_compacted = _kill  # type: ignore[assignment, method-assign]
    with pytest.raises(Killed):
        worker.run_once()
    assert "base_0000002_v0000003" in world.directories()
    assert world.read() == rows
    world.configure()
    abort(world, answer.id)
    assert world.read() == rows
    world.service.requeue()
    assert world.worker("worker-2").run_once()
    world.cleaner().run_once()
    assert world.directories() == ["base_0000002_v0000004"]
    assert world.read() == rows


def test_killed_before_the_commit(world: World) -> None:
    """Marked as compacted but never committed: the Cleaner does not touch it, and it is queued again."""
    world.write()
    world.write()
    rows = world.read()
    answer = world.request()
    worker = world.worker("worker-1")
    worker._txns.commit_txn = _kill  # type: ignore[assignment, method-assign]
    with pytest.raises(Killed):
        worker.run_once()
    del worker._txns.commit_txn
    found = world.service.get(answer.id)
    assert (found.state, found.committed_at) == (CompactionState.READY_FOR_CLEANING, None)
    assert world.cleaner().run_once().removed == []
    abort(world, answer.id)
    assert world.service.requeue() == [(answer.id, CompactionState.INITIATED)]
    assert world.worker("worker-2").run_once()
    world.cleaner().run_once()
    assert world.directories() == ["base_0000002_v0000004"]
    assert world.read() == rows


def test_worker_that_keeps_disappearing(world: World) -> None:
    world.configure(max_attempts=2, claim_timeout_ms=0)
    world.write()
    answer = world.request()
    for expected in (CompactionState.INITIATED, CompactionState.FAILED):
        assert world.service.find_next("worker-1") is not None
        assert world.service.requeue() == [(answer.id, expected)]


def test_stop_puts_the_compaction_back(world: World) -> None:
    world.write()
    world.write()
    before = world.directories()
    answer = world.request()
    worker = world.worker()

    def stopped(job: CompactionJob, cancelled: threading.Event) -> None:
        write_directory(files.join(job.staging, job.insert_output or ""), [])
        worker.stop()
        assert cancelled.wait(5)
        raise CompactionCancelledError("cancelled")

    world.executor.before = stopped
    worker.run_once()
    assert not worker.run_once()
    found = world.service.get(answer.id)
    assert (found.state, found.attempts, found.worker) == (CompactionState.INITIATED, 0, None)
    assert world.directories() == before
    assert nothing_left(world)


def test_stop_that_ends_spark_first_puts_it_back_too(world: World) -> None:
    world.write()
    world.write()
    answer = world.request()
    worker = world.worker()

    def ended(job: CompactionJob, cancelled: threading.Event) -> None:
        worker.stop()
        raise BackendLostError("the compaction process died")

    world.executor.before = ended
    assert worker.run_once()
    found = world.service.get(answer.id)
    assert (found.state, found.attempts) == (CompactionState.INITIATED, 0)
    assert found.reason == "waits for a worker: worker-1 was stopped with its server"
    assert nothing_left(world)
