"""The Cleaner against real directories, with readers and writers open (transactions.md §4.8 to §4.10)."""

import os
import time
from pathlib import Path

import psycopg
import pytest

from hive_acid.filesystem import files
from hive_acid.format.names import base_name, delta_name, staging_name
from metastore.compaction.cleaner.cleaner import Cleaner
from metastore.compaction.states import CompactionState, CompactionType
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.txn_cleaner import AcidTxnCleaner
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.states import LockType
from metastore.observe.meters import Meters
from metastore.store.database import Database
from metastore.txn.states import Operation, TxnType
from tests.compaction.world import OWNER, World, write_directory

MINOR, MAJOR = CompactionType.MINOR, CompactionType.MAJOR


def test_replaced_directories_go(world: World) -> None:
    world.write(inserts=2)
    world.write(inserts=1, deletes=[min(world.read())])
    rows = world.read()
    done = world.compact(MAJOR)
    run = world.cleaner().run_once()
    assert run.cleaned == [done.id]
    assert sorted(run.removed) == [
        files.join(world.location, name)
        for name in ("delete_delta_0000002_0000002_0000", "delta_0000001_0000001_0000", "delta_0000002_0000002_0000")
    ]
    assert world.directories() == ["base_0000002_v0000003"]
    assert world.read() == rows
    assert world.service.get(done.id).state is CompactionState.SUCCEEDED
    assert world.cleaner().run_once() == type(run)()


def test_trouble_of_the_database_in_a_hot_call_is_not_the_table_s(world: World, db: Database) -> None:
    """Its errors are of another driver than those of cold calls."""
    world.write()
    world.write()
    done = world.compact(MAJOR)
    with db.engine.begin() as connection:
        connection.exec_driver_sql("ALTER FUNCTION get_valid_write_ids RENAME TO away")
        connection.exec_driver_sql("ALTER FUNCTION current_write_ids RENAME TO away_too")
        connection.exec_driver_sql("ALTER FUNCTION get_open_txns RENAME TO gone_too")
    with pytest.raises(psycopg.errors.UndefinedFunction):
        world.cleaner().run_once()
    assert world.service.get(done.id).state is CompactionState.READY_FOR_CLEANING


@pytest.mark.parametrize("txn_type", [TxnType.DEFAULT, TxnType.READ_ONLY])
def test_reader_from_before_the_commit_is_waited_for(world: World, txn_type: TxnType) -> None:
    world.write()
    world.write()
    reader = world.open(txn_type)
    snapshot = world.snapshot(reader)
    rows = world.read(snapshot)
    done = world.compact(MAJOR)
    later = world.open(txn_type)
    assert world.cleaner().run_once().removed == []
    assert world.read(snapshot) == rows
    world.txns.abort_txn(reader)
    assert world.cleaner().run_once().cleaned == [done.id]
    assert world.read(world.snapshot(later)) == rows


def test_reader_opened_while_the_compaction_runs_is_waited_for(world: World) -> None:
    """Its id is larger than the compaction's, but it does not see the output."""
    world.write()
    world.write()
    readers = []
    world.executor.before = lambda job, cancelled: readers.append(world.open())
    world.compact(MAJOR)
    snapshot = world.snapshot(readers[0])
    assert world.cleaner().run_once().removed == []
    assert len(world.read(snapshot)) == 2


def test_uncommitted_compaction_is_not_cleaned(world: World) -> None:
    world.write()
    world.write()
    answer = world.request()
    taken = world.service.find_next("worker-1")
    assert taken is not None
    txn_id = world.open(TxnType.COMPACTION)
    world.service.update_state(answer.id, "worker-1", txn_id, 2)  # type: ignore[arg-type]
    world.service.mark_compacted(answer.id, "worker-1")
    assert world.cleaner().run_once().removed == []
    assert world.service.get(answer.id).state is CompactionState.READY_FOR_CLEANING


def test_later_writes_stay(world: World) -> None:
    world.write()
    world.write()
    world.compact(MAJOR)
    world.write()
    world.write(commit=False)
    rows = world.read()
    world.cleaner().run_once()
    assert world.directories() == ["base_0000002_v0000003"] + [delta_name(write_id, write_id, 0) for write_id in (3, 4)]
    assert world.read() == rows


def test_open_overwrite_hides_nothing(world: World) -> None:
    """What an overwrite will replace must stay until it commits: the reason for vector T19."""
    world.write()
    world.write()
    world.compact(MINOR)
    writer = world.open()
    world.write(writer, overwrite=True)
    rows = world.read()
    world.cleaner().run_once()
    assert world.directories() == ["base_0000003", "delta_0000001_0000002_v0000003"]
    assert world.read() == rows


def test_two_compactions_in_a_row(world: World) -> None:
    world.write()
    world.write()
    first = world.compact(MINOR)
    world.write()
    second = world.compact(MAJOR)
    cleaner = world.cleaner()
    assert cleaner.run_once().cleaned == [first.id]
    assert world.directories() == ["base_0000003_v0000005", "delta_0000001_0000002_v0000003", delta_name(3, 3, 0)]
    assert cleaner.run_once().cleaned == [second.id]
    assert world.directories() == ["base_0000003_v0000005"]


def test_failed_compaction_is_not_in_the_way_of_the_next(world: World) -> None:
    """The output of a compaction that died after publishing lies beside that of the one that replaced it."""
    world.write()
    world.write()
    dead = world.open(TxnType.COMPACTION)
    write_directory(files.join(world.location, base_name(2, dead)), [])
    answer = world.request()
    world.service.find_next("worker-0")
    world.service.update_state(answer.id, "worker-0", dead, 2)  # type: ignore[arg-type]
    world.txns.abort_txn(dead)
    world.service.mark_failed(answer.id, "dead", "worker-0")
    assert len(world.read()) == 2
    world.compact(MAJOR)
    world.cleaner().run_once()
    assert world.directories() == ["base_0000002_v0000004"]
    assert world.service.aborts_to_clean() == []


def test_records_go_with_the_files(world: World) -> None:
    world.write()
    lost = world.open()
    world.write(lost)
    world.txns.abort_txn(lost)
    world.write()
    world.configure(clean_aborts=False)
    assert _components(world) == [(lost, 2)]
    world.compact(MAJOR)
    world.cleaner().run_once()
    assert _components(world) == []


def test_aborted_writes_at_the_end_are_all_found(world: World) -> None:
    """Once the record of the committed writes is gone, a reader's list ends at the first of the aborted ones."""
    world.configure(clean_aborts=False)
    world.write()
    world.write()
    for _ in range(2):
        lost = world.open()
        world.write(lost)
        world.txns.abort_txn(lost)
    rows = world.read()
    world.compact(MAJOR)
    housekeeper = AcidTxnCleaner(world.db, HousekeepingConfig(finished_retention_ms=0))
    housekeeper.run_once()
    assert world.snapshot()[0].high_water_mark == 3
    world.cleaner().run_once()
    housekeeper.run_once()
    assert world.read() == rows
    assert world.directories() == ["base_0000002_v0000005"]


def test_no_cleanup(world: World) -> None:
    info = world.catalogue.tables["db", "t"]
    world.catalogue.tables["db", "t"] = type(info)(
        info.location, info.columns, parameters={**info.parameters, "NO_CLEANUP": "true"}
    )
    world.write()
    world.write()
    lost = world.open()
    left = files.join(world.location, staging_name(lost, "killed"))
    files.make_directory(left)
    world.txns.abort_txn(lost)
    done = world.compact(MAJOR)
    before = world.directories()
    assert world.cleaner().run_once().removed == [left], "nobody can read that"
    assert {*before} - {*world.directories()} == {staging_name(lost, "killed")}
    assert world.service.get(done.id).state is CompactionState.REFUSED


def test_dropped_table_is_forgotten(world: World) -> None:
    world.write()
    world.write()
    done = world.compact(MAJOR)
    world.catalogue.tables.clear()
    run = world.cleaner().run_once()
    assert (run.removed, run.cleaned) == ([], [done.id])


def test_delayed_cleanup(world: World) -> None:
    world.configure(delayed_cleanup=True, cleaner_retention_ms=3_600_000)
    world.write()
    world.write()
    world.compact(MAJOR)
    assert world.cleaner().run_once().cleaned == []
    world.configure(cleaner_retention_ms=0)
    assert len(world.cleaner().run_once().cleaned) == 1


def test_failures_are_retried_with_a_limit(world: World) -> None:
    world.configure(cleaner_max_attempts=2)
    world.write()
    world.write()
    done = world.compact(MAJOR)
    write_directory(files.join(world.location, "delta_0000009_0000001_0000"), [])
    run = world.cleaner().run_once()
    assert "make no sense" in run.failed["db.t"]
    found = world.service.get(done.id)
    assert (found.state, found.cleaner_failures) == (CompactionState.READY_FOR_CLEANING, 1)
    world.cleaner().run_once()
    assert world.service.get(done.id).state is CompactionState.FAILED
    assert world.cleaner().run_once().failed == {}


def test_failure_waits_longer_each_time(world: World) -> None:
    world.configure(cleaner_retry_ms=60_000)
    world.write()
    world.write()
    done = world.compact(MAJOR)
    write_directory(files.join(world.location, "base_x"), [])
    world.cleaner().run_once()
    assert world.cleaner().run_once().failed == {}
    first = world.service.get(done.id)
    world.service.clean_failed(first, "again")
    second = world.service.get(done.id)
    assert first.clean_after is not None
    assert second.clean_after is not None
    assert 55 < (second.clean_after - first.clean_after).total_seconds() < 65


def test_a_failure_that_is_told_twice_counts_once(world: World) -> None:
    """As the database's connection may break before the answer comes, and the call is made again."""
    world.configure(cleaner_max_attempts=2)
    world.write()
    world.write()
    done = world.compact(MAJOR)
    answers = [world.service.clean_failed(done, "the disk is away") for _ in range(3)]
    assert answers == [CompactionState.READY_FOR_CLEANING] * 3
    once = world.service.get(done.id)
    assert once.cleaner_failures == 1
    answers = [world.service.clean_failed(once, "the disk is away") for _ in range(2)]
    assert answers == [CompactionState.FAILED] * 2
    assert world.service.get(done.id).cleaner_failures == 2
    assert world.service.clean_failed(done, "late") is None, "what was seen long ago is not told once more"


# --- aborted transactions ---------------------------------------------------------------------------


def test_aborted_writes_are_cleaned_without_a_compaction(world: World) -> None:
    """Open readers need not be waited for (transactions.md §9, 62)."""
    world.write()
    reader = world.open()
    lost = [world.open() for _ in range(3)]
    for txn_id in lost:
        world.write(txn_id)
    for txn_id in lost:
        world.txns.abort_txn(txn_id)
    rows = world.read()
    world.cleaner().run_once()
    assert world.directories() == [delta_name(1, 1, 0)]
    assert world.read() == rows
    assert _components(world) == []
    world.txns.commit_txn(reader)
    AcidTxnCleaner(world.db, HousekeepingConfig(finished_retention_ms=0)).run_once()
    assert world.txns.get_open_txns(()).aborted_ids == []
    assert world.read() == rows


def test_aborted_overwrite_is_removed(world: World) -> None:
    world.write()
    lost = world.open()
    world.write(lost, overwrite=True)
    world.txns.abort_txn(lost)
    world.cleaner().run_once()
    assert world.directories() == [delta_name(1, 1, 0)]


def test_obsolete_directories_are_not_the_abort_cleaners(world: World) -> None:
    """A reader may still need what a compaction replaced."""
    world.write()
    world.write()
    reader = world.open()
    snapshot = world.snapshot(reader)
    world.compact(MAJOR)
    lost = world.open()
    world.write(lost)
    world.txns.abort_txn(lost)
    world.cleaner().run_once()
    assert delta_name(3, 3, 0) not in world.directories()
    assert len(world.read(snapshot)) == 2


def test_threshold_and_age(world: World) -> None:
    world.configure(aborted_threshold=2)
    for _ in range(2):
        lost = world.open()
        world.write(lost)
        world.txns.abort_txn(lost)
    assert world.cleaner().run_once().removed == []
    world.configure(aborted_age_ms=0)
    assert len(world.cleaner().run_once().removed) == 2


def test_streaming_delta_with_an_aborted_id_keeps_its_record(world: World) -> None:
    lost = world.open()
    world.write(inserts=0)
    world.write(lost, inserts=0)
    world.txns.abort_txn(lost)
    write_directory(files.join(world.location, "delta_0000001_0000002"), [])
    world.cleaner().run_once()
    assert world.directories() == ["delta_0000001_0000002"]
    assert _components(world) == [(lost, 2)]


def test_partitions_never_named(db: Database, tmp_path: Path) -> None:
    """A writer died before it could say into which partitions it had written: all are searched."""
    world = World(db, tmp_path, partition="month=1")
    world.write()
    elsewhere = tmp_path / "elsewhere"
    world.catalogue.partitions["db", "t"]["month=2"] = str(elsewhere)
    lost = world.open()
    component = LockComponent(LockType.SHARED_WRITE, "db", "t", None, Operation.INSERT, dynamic=True)
    world.locks.lock(LockRequest((component,), OWNER, lost))
    world.write_ids.allocate("db", "t", [lost])
    places = [world.location, files.join(world.root, "month=3"), str(elsewhere)]
    for place in places:
        write_directory(files.join(place, delta_name(2, 2, 0)), [])
    staging = files.join(world.root, staging_name(lost, "abc"))
    write_directory(staging, [])
    world.txns.abort_txn(lost)
    run = world.cleaner().run_once()
    assert sorted(run.removed) == sorted([staging, *(files.join(place, delta_name(2, 2, 0)) for place in places)])
    assert world.directories() == [delta_name(1, 1, 0)]
    assert _components(world) == []


def test_failure_of_the_abort_cleaner_delays_it(world: World) -> None:
    world.configure(cleaner_retry_ms=60_000)
    lost = world.open()
    world.write(lost)
    world.txns.abort_txn(lost)
    odd = files.join(world.location, "base_x")
    write_directory(odd, [])
    assert "make no sense" in world.cleaner().run_once().failed["db.t"]
    assert world.cleaner().run_once().failed == {}
    files.remove(odd)
    world.db.call("abort_clean_failed", "db", "t", None, "again", -1_000_000)
    assert world.cleaner().run_once().failed == {}
    assert world.directories() == []
    assert world.service.show(state=CompactionState.READY_FOR_CLEANING) == []


# --- staging ----------------------------------------------------------------------------------------


def test_staging_directories(world: World) -> None:
    """Those of aborted transactions go at once, of finished ones when they are old, of open ones never."""
    world.write()
    world.write()
    lost, done, busy = world.open(), world.open(), world.open()
    for txn_id, token in ((lost, "a"), (done, "b"), (done, "old"), (busy, "c"), (busy, "old")):
        write_directory(files.join(world.location, staging_name(txn_id, token)), [])
    past = time.time() - 7200
    for txn_id in (done, busy):
        place = Path(world.location, staging_name(txn_id, "old"))
        for path in (*place.iterdir(), place):
            os.utime(path, (past, past))
    files.make_directory(files.join(world.location, "_tmp_others"))
    world.write(lost)
    world.txns.abort_txn(lost)
    world.txns.commit_txn(done)
    world.cleaner().run_once()
    staging = [name for name in world.directories() if name.startswith("_tmp")]
    assert staging == sorted(
        ["_tmp_others", staging_name(done, "b"), staging_name(busy, "c"), staging_name(busy, "old")]
    )


def _components(world: World) -> list[tuple[int, int]]:
    """(transaction, write id) of the aborted components on record."""
    with world.db.engine.connect() as connection:
        rows = connection.exec_driver_sql(
            "SELECT c.txn_id, c.write_id FROM txn_component c JOIN txn t USING (txn_id) WHERE t.state = 'a' ORDER BY 1"
        )
        return [(row[0], row[1]) for row in rows]


def test_cleanings_are_measured_by_type(world: World) -> None:
    """Also those that fail; in Hive's terms compaction_cleaner_cycle_<type>."""
    meters = Meters()
    for kind in (MINOR, MAJOR):
        world.write()
        world.write()
        world.compact(kind)
    lost = world.open()
    world.write(lost)
    world.txns.abort_txn(lost)
    cleaner = Cleaner(world.service, world.snapshots, world.catalogue, world.config, meters=meters)
    while cleaner.run_once().cleaned:
        pass
    world.write()
    world.compact(MAJOR)
    write_directory(files.join(world.location, "base_x"), [])
    cleaner.run_once()
    name = "hive_compaction_cleaner_cycle"
    for of, runs, failures in (("minor", 1, 0), ("major", 2, 1), ("abort_txn_cleanup", 1, 0)):
        assert meters.registry.get_sample_value(f"{name}_seconds_count", {"type": of}) == runs
        assert meters.registry.get_sample_value(f"{name}_failures_total", {"type": of}) == failures
