"""The Worker, step by step and with faults at every step (transactions.md §4.6, acid-format.md §6)."""

import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from hive_acid.compaction_job import CompactionJob, JobProgress, TellProgress
from hive_acid.errors import TxnAbortedError
from hive_acid.filesystem import files
from hive_acid.format.names import staging_name
from hive_acid.ids import CompactionId, TxnId
from metastore.compaction.models import Compaction, CompactionRequest, TableInfo
from metastore.compaction.states import CompactionState, CompactionType
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.states import LockAnswer, LockType
from metastore.store.database import Database
from metastore.txn.models import Intent, TxnOwner
from metastore.txn.states import Operation, TxnType
from tests.compaction.world import OWNER, World, fail, nothing_left, write_directory
from tests.waiting import until

MINOR, MAJOR = CompactionType.MINOR, CompactionType.MAJOR


def test_major(world: World) -> None:
    world.write(inserts=3)
    world.write(inserts=1, deletes=[min(world.read())])
    before = world.read()
    done = world.compact(MAJOR)
    assert done.state is CompactionState.READY_FOR_CLEANING
    assert (done.txn_id, done.highest_write_id, done.next_txn_id) == (3, 2, 3)
    assert done.committed_at is not None
    assert done.worker is None
    assert "base_0000002_v0000003" in world.directories()
    assert world.read() == before
    (job,) = world.executor.jobs
    assert job.schema == (("id", "int"), ("name", "string"))
    assert job.write_ids.startswith("db.t:2:")


@pytest.mark.parametrize("kind", [MINOR, MAJOR, CompactionType.REBALANCE])
def test_a_column_that_is_added_before_the_snapshot_is_merged(
    world: World, kind: CompactionType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was looked up earlier lacks it: the values of rows that the snapshot sees would be lost."""
    world.write()
    world.write()
    _before_the_snapshot(world, monkeypatch, lambda there: replace(there, columns=(*there.columns, ("more", "string"))))
    assert world.compact(kind).state is CompactionState.READY_FOR_CLEANING
    (job,) = world.executor.jobs
    assert "delta_0000003_0000003_0000" in {name for name, _ in job.data}
    assert ("more", "string") in job.schema


def test_a_table_that_is_moved_before_the_snapshot_is_left_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write()
    world.write()
    _before_the_snapshot(world, monkeypatch, lambda there: replace(there, location=f"{world.root}-elsewhere"))
    done = world.compact(MAJOR)
    assert (done.state, "was moved to" in (done.error_message or "")) == (CompactionState.REFUSED, True)
    assert world.executor.jobs == []


def _before_the_snapshot(
    world: World, monkeypatch: pytest.MonkeyPatch, alter: Callable[[TableInfo], TableInfo]
) -> None:
    """Have the table altered, and written to, when a compaction has been taken but sees nothing yet."""
    begin = world.txns.open_txns

    def changed(how_many: int, owner: TxnOwner, kind: TxnType, *declared: Intent) -> list[TxnId]:
        if kind is not TxnType.DEFAULT:
            world.catalogue.tables["db", "t"] = alter(world.catalogue.tables["db", "t"])
            world.write()
        return begin(how_many, owner, kind, *declared)

    monkeypatch.setattr(world.txns, "open_txns", changed)


def test_minor_makes_twins(world: World) -> None:
    world.write(inserts=3)
    world.write(inserts=0, deletes=[min(world.read())])
    world.write(inserts=1)
    before = world.read()
    world.compact(MINOR)
    assert {"delta_0000001_0000003_v0000004", "delete_delta_0000001_0000003_v0000004"} < set(world.directories())
    assert world.read() == before


def test_aborted_rows_are_left_out(world: World) -> None:
    world.write(inserts=2)
    lost = world.open()
    world.write(lost, inserts=2)
    world.txns.abort_txn(lost)
    world.write(inserts=1)
    world.compact(MINOR)
    assert [name for name, _ in world.executor.jobs[0].data] == [
        "delta_0000001_0000001_0000",
        "delta_0000003_0000003_0000",
    ]


def test_open_write_ends_the_range(world: World) -> None:
    world.write()
    world.write()
    world.write(commit=False)
    world.write()
    done = world.compact(MAJOR)
    assert done.highest_write_id == 2
    assert "base_0000002_v0000005" in world.directories()


def test_streaming_delta_is_taken_whole_or_not_at_all(world: World) -> None:
    """Of the two write ids of a streaming delta the second is open: the compaction ends before the delta."""
    world.write()
    world.write()
    world.write(inserts=0)
    world.write(inserts=0, commit=False)
    write_directory(files.join(world.location, "delta_0000003_0000004"), [])
    done = world.compact(MAJOR)
    assert done.highest_write_id == 2
    assert "base_0000002_v0000005" in world.directories()


@pytest.mark.parametrize(
    ("kind", "prepare", "reason"),
    [
        (MAJOR, lambda world: world.write(), "nothing to do"),
        (MINOR, lambda world: world.write(), "nothing to do"),
        (MINOR, lambda world: (world.write(), world.write(inserts=0, deletes=world.read())), "nothing to do"),
        (MAJOR, lambda world: _raw_file(world), "is not a file with ACID columns, as it must be there"),
        (MAJOR, lambda world: world.catalogue.tables.clear(), "does not exist any more"),
    ],
)
def test_refused(world: World, kind: CompactionType, prepare: Callable[[World], object], reason: str) -> None:
    prepare(world)
    before = world.directories()
    done = world.compact(kind)
    assert done.state is CompactionState.REFUSED
    assert reason in (done.error_message or "")
    assert world.directories() == before
    assert world.executor.jobs == []
    assert nothing_left(world)


def _raw_file(world: World) -> None:
    world.write()
    world.write()
    files.write(files.join(world.location, "delta_0000001_0000001_0000", "000000_0"), b"x")


def test_the_first_base_of_a_converted_table_replaces_its_files(world: World) -> None:
    for name in ("000000_0", "part-00000-1-c000.orc", "HIVE_UNION_SUBDIR_1/000000_0"):
        files.make_directory(files.parent(files.join(world.location, name)))
        files.write(files.join(world.location, name), b"x")
    assert world.compact(MAJOR).state is CompactionState.READY_FOR_CLEANING
    (job,) = world.executor.jobs
    assert job.raw == ("000000_0", "HIVE_UNION_SUBDIR_1/000000_0", "part-00000-1-c000.orc")
    world.cleaner().run_once()
    left = {entry.path for entry in files.list_tree(world.location) if not entry.is_directory}
    assert {path.partition("/")[0] for path in left} == {f"{job.insert_output}"}
    assert job.insert_output is not None
    assert job.insert_output.startswith("base_-9223372036854775808_v")


def test_statements_of_one_write_are_not_merged_by_a_minor(world: World) -> None:
    txn_id = world.open()
    world.write(txn_id)
    write_directory(files.join(world.location, "delta_0000001_0000001_0001"), [])
    world.txns.commit_txn(txn_id)
    assert world.compact(MINOR).state is CompactionState.REFUSED
    assert world.compact(MAJOR).state is CompactionState.READY_FOR_CLEANING


def test_only_garbage_is_left_to_the_cleaner(world: World) -> None:
    """An overwrite has replaced all: nothing to merge, but the old directories can go."""
    world.write()
    world.write()
    world.write(overwrite=True)
    done = world.compact(MAJOR)
    assert done.state is CompactionState.READY_FOR_CLEANING
    assert done.committed_at is not None
    assert world.executor.jobs == []
    assert world.cleaner().run_once().cleaned == [done.id]
    assert world.directories() == ["base_0000003"]


def test_table_under_an_exclusive_lock_is_left_alone(world: World) -> None:
    world.write()
    world.write()
    dropper = world.open()
    world.locks.lock(LockRequest((LockComponent(LockType.EXCLUSIVE, "db", "t"),), OWNER, dropper))
    done = world.compact(MAJOR)
    assert done.state is CompactionState.FAILED
    assert f"transaction {dropper}" in (done.error_message or "")
    world.txns.commit_txn(dropper)
    assert world.compact(MAJOR).state is CompactionState.READY_FOR_CLEANING


def test_lock_and_open_transaction_while_spark_works(world: World) -> None:
    seen: list[object] = []

    def look(job: CompactionJob, cancelled: threading.Event) -> None:
        seen.extend((lock.type, lock.table, lock.txn_id) for lock in world.locks.show_locks("db"))

    world.write()
    world.write()
    world.executor.before = look
    world.compact(MAJOR)
    assert seen == [(LockType.SHARED_READ, "t", 3)]
    assert world.locks.show_locks("db") == []


def _two_files_for_one_bucket(job: CompactionJob) -> None:
    files.write(files.join(job.staging, job.insert_output or "", "bucket_00000_1"), b"x")


def _no_marker(job: CompactionJob) -> None:
    files.remove(files.join(job.staging, job.insert_output or "", "_orc_acid_version"))


def _no_file(job: CompactionJob) -> None:
    files.remove(files.join(job.staging, job.insert_output or "", "bucket_00000"))


def _empty_file(job: CompactionJob) -> None:
    files.write(files.join(job.staging, job.insert_output or "", "bucket_00000"), b"")


def _no_directory(job: CompactionJob) -> None:
    files.remove(files.join(job.staging, job.insert_output or ""))


def _one_too_many(job: CompactionJob) -> None:
    write_directory(files.join(job.staging, "delta_0000001_0000009_v0000003"), [])


def _odd_file(job: CompactionJob) -> None:
    files.write(files.join(job.staging, job.insert_output or "", "part-0.orc"), b"x")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (fail, "Spark has no memory"),
        (_two_files_for_one_bucket, "two files for bucket 0"),
        (_no_marker, "without _orc_acid_version"),
        (_no_file, "without any bucket file"),
        (_empty_file, "empty"),
        (_no_directory, "did not make"),
        (_one_too_many, "nobody asked for"),
        (_odd_file, "no bucket file"),
    ],
)
def test_bad_output_leaves_nothing(world: World, fault: Callable[[CompactionJob], None], reason: str) -> None:
    world.write()
    world.write()
    before, rows = world.directories(), world.read()
    world.executor.after = fault
    done = world.compact(MAJOR)
    assert done.state is CompactionState.FAILED
    assert reason in (done.error_message or "")
    assert world.directories() == before
    assert world.read() == rows
    assert nothing_left(world)
    world.executor.after = lambda job: None
    assert world.compact(MAJOR).state is CompactionState.READY_FOR_CLEANING


def test_progress_is_stored(world: World) -> None:
    world.write()
    world.write()
    seen: list[Compaction] = []

    def told(job: CompactionJob, report: TellProgress) -> None:
        report(JobProgress("app-1:1"))
        report(JobProgress(None, {"rows": 1, "files": 0, "bytes_written": 10, "phase": "inserts"}))
        until(
            lambda: seen and seen[-1].progress is not None,
            between=lambda: seen.append(world.service.get(CompactionId(job.id))),
        )

    world.executor.tell = told
    done = world.compact(MAJOR)
    assert seen[-1].job_id == "app-1:1"
    assert seen[-1].progress is not None
    assert {**seen[-1].progress, "at": 0} == {"rows": 1, "files": 0, "bytes_written": 10, "phase": "inserts", "at": 0}
    assert done.progress is not None
    assert (done.progress["phase"], done.bytes_after, done.job_id) == ("done", 1, "app-1:1")
    assert done.reason == "compacted: what it replaces is removed once no reader needs it"


def test_what_the_job_is_called_and_where_it_runs(db: Database, tmp_path: Path) -> None:
    """The request wins over the table, the table over the configuration."""
    world = World(db, tmp_path, partition="month=1")
    info = world.catalogue.tables["db", "t"]
    queues = []
    of_table = {"compactor.hive.compactor.job.queue": "nightly"}
    of_request = {"compactor.mapred.job.queue.name": "now"}
    for table, request in (({}, {}), (of_table, {}), (of_table, of_request)):
        world.catalogue.tables["db", "t"] = replace(info, parameters={**info.parameters, **table})
        world.configure(job_queue="all")
        world.write()
        world.write()
        asked = CompactionRequest(MAJOR, "db", "t", "month=1", properties=request)
        assert world.service.compact(asked).accepted
        world.worker().run_once()
        queues.append(world.executor.jobs[-1].queue)
    assert queues == ["all", "nightly", "now"]
    assert world.executor.jobs[-1].name == f"{socket.gethostname()}-compactor-db.t.month=1"


def test_a_rebalance_waits_for_writers_and_they_for_it(world: World) -> None:
    """Who has changed rows before it had its lock makes it begin again; nobody fails."""
    world.write(inserts=3)
    world.write(inserts=3)
    writer = world.open()
    world.write(writer, inserts=0, deletes=[min(world.read())])
    answer = world.request(CompactionType.REBALANCE)
    results: list[object] = []

    def during(job: CompactionJob, cancelled: threading.Event) -> None:
        later = world.open()
        component = LockComponent(LockType.SHARED_WRITE, "db", "t", operation=Operation.UPDATE)
        results.append(world.locks.lock(LockRequest((component,), OWNER, later)).answer)
        reader = world.open()
        component = LockComponent(LockType.SHARED_READ, "db", "t")
        results.append(world.locks.lock(LockRequest((component,), OWNER, reader)).answer)
        results.extend((lock.type, lock.state) for lock in world.locks.show_locks("db", txn_id=TxnId(later - 1)))
        world.txns.abort_txns([later, reader])

    world.executor.before = during
    with ThreadPoolExecutor() as pool:
        working = pool.submit(world.worker().run_once)
        until(lambda: any(lock.type is LockType.EXCL_WRITE for lock in world.locks.show_locks("db")))
        assert not working.done()
        world.txns.commit_txn(writer)
        assert working.result(10)
    found = world.service.get(answer.id)
    assert found.state is CompactionState.INITIATED
    assert found.reason is not None
    assert f"transaction {writer} changed db.t just before it was locked" in found.reason
    assert world.worker().run_once()
    assert world.service.get(answer.id).state is CompactionState.READY_FOR_CLEANING, world.service.get(answer.id)
    assert results[:2] == [LockAnswer.WAITING, LockAnswer.ACQUIRED]


def test_who_changes_rows_by_ids_that_a_rebalance_has_replaced_collides_with_it(world: World) -> None:
    world.write(inserts=3)
    world.write(inserts=3)
    (early,) = world.txns.open_txns(1, OWNER, intent=Intent(may_begin_again=True))  # others are waited for
    assert world.compact(CompactionType.REBALANCE).state is CompactionState.READY_FOR_CLEANING
    world.write(early, inserts=0, deletes=[min(world.read())])
    with pytest.raises(TxnAbortedError):
        world.txns.commit_txn(early)
    # It is no write for anybody else: the Initiator does not take it for one.
    assert {row[0] for row in _rows(world, "SELECT write_id FROM completed_component")} == {1, 2}


def test_partition(db: Database, tmp_path: Path) -> None:
    world = World(db, tmp_path, partition="month=1")
    world.write()
    world.write()
    done = world.compact(MAJOR)
    assert done.partition == "month=1"
    assert world.executor.jobs[0].location == world.location
    assert staging_name(3, "x")[:-1] in world.executor.jobs[0].staging
    assert "base_0000002_v0000003" in world.directories()
    world.partition = None
    refused = world.compact(MAJOR)
    assert "name the partition" in (refused.error_message or "")


def test_nothing_to_do(world: World) -> None:
    assert not world.worker().run_once()


def _rows(world: World, query: str) -> list[tuple[object, ...]]:
    with world.db.engine.connect() as connection:
        return [tuple(row) for row in connection.exec_driver_sql(query)]
