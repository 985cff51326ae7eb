"""When compactions are queued by themselves (transactions.md §4.4, §4.5; checklist §9, 59 to 61)."""

from __future__ import annotations

import dataclasses
import itertools
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from hive_acid.filesystem import files
from hive_acid.format.names import delta_name
from hive_acid.format.rows import INSERT, RowEvent, encode_bucket
from metastore.compaction.initiator.initiator import Initiator
from metastore.compaction.models import CompactionRequest
from metastore.compaction.queue.decisions import Decider
from metastore.compaction.states import CompactionState, CompactionType
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.txn_cleaner import AcidTxnCleaner
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.states import LockType
from metastore.store.database import Database
from tests.compaction.world import ACID, OWNER, World, fail, write_directory

MINOR, MAJOR = CompactionType.MINOR, CompactionType.MAJOR


def decision(world: World, partition: str | None = None) -> str | None:
    """The code of the Initiator's decision on the table, or on the partition."""
    found = world.service.decisions("db", world.table, partition)
    codes = [one.code for one in found if one.service is Decider.INITIATOR and one.partition == partition]
    return codes[0] if codes else None


def message(world: World) -> str:
    (found,) = world.service.decisions("db", world.table)
    return found.message


def change(world: World, parameters: Mapping[str, str]) -> None:
    info = world.catalogue.tables["db", world.table]
    world.catalogue.tables["db", world.table] = dataclasses.replace(info, parameters=parameters)


def execute(world: World, statement: str) -> int:
    with world.db.engine.begin() as connection:
        return connection.exec_driver_sql(statement).rowcount


def old(world: World) -> None:
    """What was written is long ago."""
    execute(world, "UPDATE completed_component SET committed_at = committed_at - interval '1 hour'")


def test_eleven_writes(world: World) -> None:
    for _ in range(10):
        world.write()
    assert world.initiator().run_once() == []
    world.write()
    (request,) = world.initiator().run_once()
    assert (request.type, request.db, request.table, request.partition) == (MAJOR, "db", "t", None)
    assert world.initiator().run_once() == []
    (queued,) = world.service.show()
    assert (queued.state, queued.initiator) == (CompactionState.INITIATED, "initiator-1")


def test_only_what_was_written_since_the_last_run(world: World) -> None:
    """Looking is not free: directories are listed."""
    world.write()
    initiator = world.initiator()
    initiator.run_once()
    old(world)
    assert world.service.looks.candidates(initiator._since_ms) == ([], initiator._since_ms)
    world.write()
    assert len(world.service.looks.candidates(initiator._since_ms)[0]) == 1


def test_what_is_written_after_the_clock_was_put_back_is_looked_at(world: World) -> None:
    """It was older than the last run, for as long as the clock was put back, and at most for a day."""
    world.configure(delta_num_threshold=1)
    world.write()
    initiator = world.initiator()
    initiator.run_once()
    world.write()
    assert initiator._clock is not None
    initiator._clock = replace(initiator._clock, shown_ms=initiator._clock.shown_ms + 5 * 3_600_000)
    initiator._since_ms += 5 * 3_600_000
    assert len(initiator.run_once()) == 1


def test_compaction_ends_the_candidacy(world: World) -> None:
    world.configure(delta_num_threshold=1)
    world.write()
    world.write()
    assert len(world.initiator().run_once()) == 1
    world.worker().run_once()
    world.cleaner().run_once()
    assert world.service.looks.candidates(0)[0] == []
    assert world.initiator().run_once() == []


def test_failures_in_a_row_stop_it(world: World) -> None:
    """transactions.md §9, 60."""
    world.configure(delta_num_threshold=1)
    world.write()
    world.write()
    world.executor.after = fail
    for _ in range(2):
        assert len(world.initiator().run_once()) == 1
        world.worker().run_once()
    assert world.initiator().run_once() == []
    assert world.initiator().run_once() == []
    (noted,) = world.service.show(state=CompactionState.DID_NOT_INITIATE)
    assert "all failed" in (noted.error_message or "")
    world.executor.after = lambda job: None
    world.compact(MAJOR)
    world.write()
    world.write()
    assert len(world.initiator().run_once()) == 1


def test_failures_are_forgotten_after_a_while(world: World) -> None:
    world.configure(delta_num_threshold=1, failed_retry_ms=1)
    world.write()
    world.write()
    world.executor.after = fail
    for _ in range(3):
        assert len(world.initiator().run_once()) == 1
        world.worker().run_once()
    world.configure(failed_retry_ms=0)
    assert world.initiator().run_once() == []


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({"transactional": "true", "no_auto_compaction": "true"}, "no_auto_compaction"),
        ({"transactional": "true", "hive.repl.first.inc.pending": "true"}, "replication_pending"),
        ({"transactional": "true", "transactional_properties": "insert_only"}, "insert_only_off"),
        ({}, None),
    ],
)
def test_tables_left_alone(world: World, parameters: dict[str, str], code: str | None) -> None:
    world.configure(delta_num_threshold=0, insert_only=False)
    world.write()
    change(world, parameters)
    initiator = world.initiator()
    assert initiator.run_once() == []
    assert world.service.show() == []
    assert decision(world) == code
    if code is not None:
        old(world)
        change(world, ACID)
        assert len(initiator.run_once()) == 1, "what it hung on has changed, without a write"
        assert decision(world) == "queued"


def test_gone_table_and_partition(db: Database, tmp_path: Path) -> None:
    world = World(db, tmp_path, partition="p=1")
    world.configure(delta_num_threshold=0)
    world.write()
    world.catalogue.partitions.clear()
    assert world.initiator().run_once() == []
    world.catalogue.tables.clear()
    assert world.initiator().run_once() == []


def test_partition(db: Database, tmp_path: Path) -> None:
    world = World(db, tmp_path, partition="p=1")
    world.configure(delta_num_threshold=0)
    world.write()
    (request,) = world.initiator().run_once()
    assert request.partition == "p=1"


def test_trouble_is_put_on_record_and_does_not_stop_the_others(db: Database, tmp_path: Path) -> None:
    worlds = [World(db, tmp_path, table) for table in ("t1", "t2")]
    for world in worlds:
        world.configure(delta_num_threshold=0)
        world.write()
    files.make_directory(files.join(worlds[0].location, "base_x"))
    world = worlds[1]
    world.catalogue.tables |= worlds[0].catalogue.tables
    assert [request.table for request in world.initiator().run_once()] == ["t2"]
    (noted,) = world.service.show(state=CompactionState.DID_NOT_INITIATE)
    assert (noted.table, "make no sense" in (noted.error_message or "")) == ("t1", True)
    files.remove(files.join(worlds[0].location, "base_x"))
    assert [request.table for request in world.initiator().run_once()] == ["t1"]


def test_queue_is_left_by_lost_workers(world: World) -> None:
    world.configure(claim_timeout_ms=0)
    request = CompactionRequest(MINOR, "db", "t")
    compaction_id = world.service.compact(request).id
    world.service.find_next("gone")
    world.initiator().run_once()
    assert world.service.get(compaction_id).state is CompactionState.INITIATED


# --- reasons -----------------------------------------------------------------------------------------


def test_every_decision_is_put_down(world: World) -> None:
    world.configure(policy="hive")
    world.write()
    initiator = world.initiator()
    initiator.run_once()
    assert decision(world) == "below_thresholds"
    assert message(world).startswith("1 delta, and a compaction is made of more than 10")
    world.configure(delta_num_threshold=1)
    world.write()
    (request,) = world.initiator().run_once()
    (row,) = world.service.show()
    assert request.reason == row.reason == "2 deltas, more than 1, and there is no base"
    assert message(world) == f"compaction {row.id}, a major one, was queued: {request.reason}; " + (
        "SHOW COMPACTIONS tells what became of it"
    )


def test_failures_are_explained(world: World) -> None:
    world.configure(delta_num_threshold=1, failed_threshold=1)
    world.write()
    world.write()
    world.executor.after = fail
    world.initiator().run_once()
    world.worker().run_once()
    assert world.initiator().run_once() == []
    assert decision(world) == "failing"
    assert "Spark has no memory" in message(world)
    assert "7 days" in message(world)


def test_unfit_thresholds_are_explained(world: World) -> None:
    world.write()
    change(world, {**ACID, "compactorthreshold.hive.compactor.delta.num.threshold": "many"})
    assert world.initiator().run_once() == []
    assert decision(world) == "unfit_setting"
    change(world, ACID)
    old(world)
    assert world.initiator().run_once() == []
    assert decision(world) == "not_worth_it", "it is looked at again without a write"


def test_open_writer_is_named(world: World) -> None:
    """Deltas above an open write id cannot be merged; who has it is told, and its end alone brings the compaction."""
    world.configure(delta_num_threshold=1)
    writer = world.open()
    world.write(writer, commit=False)
    for _ in range(3):
        world.write()
    initiator = world.initiator()
    assert initiator.run_once() == []
    (found,) = world.service.decisions("db", "t")
    assert (found.code, found.blocker) == ("open_write", writer)
    assert f"ABORT TRANSACTIONS {writer}" in found.message
    assert "ann on host1" in found.message
    old(world)
    world.txns.abort_txn(writer)
    assert len(initiator.run_once()) == 1
    assert world.service.decisions("db", "t")[0].blocker is None


def test_one_in_the_way_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looked before the compaction committed, and asks after it."""
    world.configure(delta_num_threshold=0)
    world.write()
    world.write()
    state = world.initiator()._states(world.service.looks.candidates(0)[0][0], world.location)[0]
    done = world.compact(MAJOR)
    initiator = world.initiator()
    monkeypatch.setattr(initiator, "_states", lambda *args: [state] * 2)
    assert initiator.run_once() == []
    assert decision(world) == "in_the_way"
    assert f"compaction {done.id} is ready for cleaning" in message(world)


def test_decisions_of_partitions_and_of_the_table(db: Database, tmp_path: Path) -> None:
    world = World(db, tmp_path, partition="p=1")
    world.write()
    change(world, {**ACID, "no_auto_compaction": "true"})
    world.initiator().run_once()
    assert (decision(world), decision(world, "p=1")) == ("no_auto_compaction", None)
    change(world, ACID)
    world.initiator().run_once()
    assert (decision(world), decision(world, "p=1")) == (None, "not_worth_it")


def test_nothing_is_written_when_nothing_has_changed(world: World) -> None:
    world.write()
    world.initiator().run_once()
    query = "SELECT xmin::text || ' ' || xmax::text FROM compaction_decision"
    with world.db.engine.connect() as connection:
        before = connection.exec_driver_sql(query).scalar()
    world.initiator().run_once()
    with world.db.engine.connect() as connection:
        assert connection.exec_driver_sql(query).scalar() == before


# --- what is looked at --------------------------------------------------------------------------------


def test_what_was_written_during_a_compaction_is_looked_at_after_it(world: World) -> None:
    """Its writes are older than the last run, which passed it over because it was under way."""
    world.configure(delta_num_threshold=1)
    world.write()
    world.write()
    initiator = world.initiator()
    assert len(initiator.run_once()) == 1
    world.executor.after = lambda job: [world.write() for _ in range(20)] and None  # type: ignore[assignment]
    world.worker().run_once()
    execute(world, "UPDATE completed_component SET committed_at = committed_at - interval '1 hour'")
    world.cleaner().run_once()
    assert len(initiator.run_once()) == 1


def test_everything_once_a_day(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator lowers the thresholds of a table to which nobody writes."""
    world.write()
    world.write()
    initiator = world.initiator()
    assert initiator.run_once() == []
    old(world)
    change(world, {**ACID, "compactorthreshold.hive.compactor.delta.num.threshold": "1"})
    assert initiator.run_once() == []
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 86_400)
    assert len(initiator.run_once()) == 1


def test_all_pages_in_one_run(db: Database, tmp_path: Path) -> None:
    """Hundreds that need nothing do not keep those behind them from being looked at."""
    world = World(db, tmp_path)
    world.configure(fetch_size=100, delta_num_threshold=0)
    insert = (
        "INSERT INTO completed_component (txn_id, db, tbl, partition, committed_at, write_id, update_delete)"
        " SELECT n, 'db', 'elsewhere', 'p=' || n, clock_timestamp(), n, false FROM generate_series(1, 350) n"
    )
    assert execute(world, insert) == 350
    world.write()
    pages: list[int] = []
    looks = world.service.looks
    ask = looks.candidates
    looks.candidates = lambda *args: pages.append(1) or ask(*args)  # type: ignore[method-assign]
    assert [request.table for request in world.initiator().run_once()] == ["t"]
    assert len(pages) == 4


@pytest.mark.parametrize("threads", [1, 4])
def test_the_server_stops(db: Database, tmp_path: Path, threads: int) -> None:
    """A run in progress ends soon; the next one, on whatever server, looks at the rest."""
    worlds = [World(db, tmp_path, f"t{number}") for number in range(10)]
    for world in worlds:
        world.configure(delta_num_threshold=0, initiator_threads=threads)
        world.write()
        worlds[0].catalogue.tables |= world.catalogue.tables
    initiator = worlds[0].initiator()
    compact = worlds[0].service.compact

    def last(request: CompactionRequest) -> object:
        initiator.stop()
        return compact(request)

    worlds[0].service.compact = last  # type: ignore[method-assign, assignment]
    assert len(initiator.run_once()) == 1
    worlds[0].service.compact = compact  # type: ignore[method-assign]
    assert len(worlds[0].initiator().run_once()) == 9


def test_side_by_side(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looks may take their time on an object store: as many as configured are under way at once."""
    worlds = [World(db, tmp_path, f"t{number}") for number in range(6)]
    for world in worlds:
        world.configure(delta_num_threshold=0, initiator_threads=3)
        world.write()
        worlds[0].catalogue.tables |= world.catalogue.tables
    meeting = threading.Barrier(3, timeout=30)
    states = Initiator._states

    def met(self: Initiator, *args: object) -> object:
        meeting.wait()
        return states(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Initiator, "_states", met)
    assert {request.table for request in worlds[0].initiator().run_once()} == {f"t{number}" for number in range(6)}


# --- aborted data left to compactions ------------------------------------------------------------------


def _aborted(world: World, count: int) -> Iterator[int]:
    for _ in range(count):
        txn_id = world.open()
        world.write(txn_id)
        world.txns.abort_txn(txn_id)
        yield txn_id


def test_aborts_with_the_cleaner_are_no_trigger(world: World) -> None:
    list(_aborted(world, 3))
    execute(world, "UPDATE txn SET started_at = started_at - interval '13 hours'")
    assert world.initiator().run_once() == []
    assert world.service.decisions("db", "t") == []


def test_many_aborts_without_it_are_a_major_compaction(world: World) -> None:
    world.configure(clean_aborts=False, aborted_threshold=2)
    list(_aborted(world, 2))
    assert world.initiator().run_once() == []
    list(_aborted(world, 1))
    kept = world.write()
    (request,) = world.initiator().run_once()
    assert (request.type, request.reason) == (MAJOR, "3 aborted transactions have left files")
    world.worker().run_once()
    world.cleaner().run_once()
    assert world.directories() == [delta_name(kept, kept, 0)]
    assert world.initiator().run_once() == []


def test_an_old_abort_without_it_is_a_minor_compaction(world: World) -> None:
    world.configure(clean_aborts=False, aborted_threshold=1000)
    world.write()
    list(_aborted(world, 1))
    assert world.initiator().run_once() == []
    execute(world, "UPDATE txn SET started_at = started_at - interval '13 hours'")
    (request,) = world.initiator().run_once()
    assert (request.type, request.reason) == (MINOR, "an aborted transaction of long ago has left files")
    world.worker().run_once()
    world.cleaner().run_once()
    assert world.directories() == [delta_name(1, 1, 0)]
    assert world.initiator().run_once() == []


def test_aborts_of_unnamed_partitions_are_left_to_a_compaction(db: Database, tmp_path: Path) -> None:
    """It merges nothing: it sends the Cleaner through all partitions, for what is aborted and nothing else."""
    world = World(db, tmp_path, partition="p=1")
    world.configure(clean_aborts=False, aborted_threshold=0)
    world.write()
    world.write()
    reader = world.open()
    world.compact(MAJOR)
    execute(world, "UPDATE compaction SET clean_after = clock_timestamp() + interval '1 hour'")
    rows = world.read()
    before = world.directories()
    world.partition = None  # a write that ends before it has named its partitions
    list(_aborted(world, 2))
    assert len(world.directories()) == len(before) + 2
    (request,) = world.initiator().run_once()
    assert (request.type, request.partition) == (MAJOR, None)
    assert "partitions that they never named" in (request.reason or "")
    assert world.worker().run_once()
    assert [job.type for job in world.executor.jobs] == ["major"], "no job for it"
    world.cleaner().run_once()
    assert len(world.directories()) == len(before) + 2, "as any compaction it waits for readers"
    world.txns.commit_txn(reader)
    assert world.cleaner().run_once().cleaned
    assert world.directories() == before, "what the other compaction replaced is not its business"
    assert world.read() == rows
    assert world.initiator().run_once() == []
    assert world.service.aborts_to_clean() == []
    refused = world.compact(MAJOR)
    assert "name the partition" in (refused.error_message or "")


def test_what_is_aborted_beside_others_in_one_delta_stays_on_record(db: Database, tmp_path: Path) -> None:
    """Of a streaming delta, in a partition that nobody has named: without the record its rows would be back."""
    world = World(db, tmp_path, partition="p=1")
    world.configure(clean_aborts=False, aborted_threshold=0)
    world.partition = None
    lost = world.open()
    lost_id = world.write(lost, inserts=0)
    kept_id = world.write(inserts=0)
    world.txns.abort_txn(lost)
    events = [RowEvent(INSERT, one, encode_bucket(0), 0, one, "row") for one in (lost_id, kept_id)]
    write_directory(files.join(world.location, delta_name(lost_id, kept_id)), events)
    rows = world.read()
    assert len(rows) == 1
    (request,) = world.initiator().run_once()
    assert request.partition is None
    assert world.worker().run_once()
    assert world.cleaner().run_once().cleaned
    AcidTxnCleaner(db, HousekeepingConfig(finished_retention_ms=0)).run_once()
    assert world.read() == rows


# --- costs --------------------------------------------------------------------------------------------


def test_costs_decide(world: World) -> None:
    for _ in range(3):
        world.write()
    assert world.initiator().run_once() == []
    assert decision(world) == "not_worth_it"
    for _ in range(20):
        world.write()
    (request,) = world.initiator().run_once()
    assert request.type is MAJOR
    assert request.head_start_s == world.service.show()[0].head_start_s
    assert "a major compaction pays" in (request.reason or "")


def test_a_large_delta_is_left_alone(world: World) -> None:
    """What is queued says where it begins."""
    write_id = world.write()
    (file,) = (Path(world.location) / delta_name(write_id, write_id, 0)).glob("bucket_*")
    os.truncate(file, 1 << 30)
    for _ in range(20):
        world.write()
    (request,) = world.initiator().run_once()
    assert (request.type, request.after) == (MINOR, write_id)
    assert world.service.show()[0].after_write_id == write_id


def test_readers_make_it_worth_while(world: World) -> None:
    """The readers that are there are counted, on average, and forgotten when they have gone."""
    for _ in range(5):
        world.write()
    looks = world.service.looks
    assert looks.readers() == {}
    readers = [world.open() for _ in range(10)]
    for txn_id in readers:
        component = LockComponent(LockType.SHARED_READ, "db", "t")
        world.locks.lock(LockRequest((component,), OWNER, txn_id))
    samples = [looks.readers()["db", "t"] for _ in range(20)]
    assert all(before < after < 10 for before, after in itertools.pairwise(samples))
    assert samples[-1] == pytest.approx(10, rel=0.02)
    (request,) = world.initiator().run_once()
    assert request.type is MAJOR
    for txn_id in readers:
        world.txns.commit_txn(txn_id)
    for _ in range(50):
        looks.readers()
    assert looks.readers() == {}


# --- numbers of deltas --------------------------------------------------------------------------------


def counts(world: World) -> list[tuple[object, ...]]:
    """(type, database, table, partition, number) of what is stored."""
    with world.db.engine.connect() as connection:
        query = "SELECT type, db, tbl, partition, value FROM compaction_metric ORDER BY type"
        return [tuple(row) for row in connection.exec_driver_sql(query)]


def test_numbers_of_deltas(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.configure(counted_deltas=3, counted_obsolete_deltas=2, crowded_deltas=3)
    for _ in range(2):
        world.write()
    world.initiator().run_once()
    assert counts(world) == []
    assert "too many deltas" not in caplog.text
    for _ in range(2):
        world.write()
    world.initiator().run_once()
    assert counts(world) == [(1, "db", "t", None, 4)]
    assert "the most: db.t with 4, 0 of them small, 0 replaced" in caplog.text
    reader = world.open()
    world.compact(MAJOR)
    world.initiator().run_once()
    assert counts(world) == [(0, "db", "t", None, 4)], "replaced, and not removed yet"
    world.txns.commit_txn(reader)
    world.cleaner().run_once()
    assert counts(world) == []
    assert decision(world) is None


def test_small_deltas_are_counted(world: World) -> None:
    world.configure(counted_deltas=2)
    world.write(overwrite=True, inserts=1000)
    for _ in range(2):
        world.write()
    world.initiator().run_once()
    assert counts(world) == [(1, "db", "t", None, 2), (2, "db", "t", None, 2)]


def test_deltas_above_an_open_write_are_counted(world: World) -> None:
    """Readers read them, whether they can be compacted or not."""
    world.configure(counted_deltas=2)
    world.write(world.open(), commit=False)
    for _ in range(2):
        world.write()
    world.initiator().run_once()
    assert counts(world) == [(1, "db", "t", None, 2)]
