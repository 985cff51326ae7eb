"""When compactions are queued by themselves (transactions.md §4.4, §4.5; checklist §9, 59 to 61)."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from hive_acid import files
from hive_acid.format.names import base_name, delta_name
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.format.state import directory_state
from metastore.compaction.config import CompactionConfig
from metastore.compaction.models import CompactionRequest, TableInfo
from metastore.compaction.policy import Thresholds, compaction_needed, is_automatic, may_be_cleaned, pool_of
from metastore.compaction.states import CompactionState, CompactionType
from metastore.settings import SettingError
from metastore.store.database import Database

from .world import World, fail

MINOR, MAJOR = CompactionType.MINOR, CompactionType.MAJOR
HIVE = Thresholds(10, 0.1)


def state(deltas: int, delta_bytes: int, base_bytes: int = 0, *more: tuple[str, int]):  # type: ignore[no-untyped-def]
    entries = [(f"{delta_name(w, w, 0)}/bucket_00000", delta_bytes) for w in range(101, 101 + deltas)]
    if base_bytes:
        entries.append((f"{base_name(100)}/bucket_00000", base_bytes))
    return directory_state([*entries, *more], ValidWriteIdList("db.t", 1000), ValidTxnList(1000))


@pytest.mark.parametrize(
    ("deltas", "delta_bytes", "base_bytes", "expected"),
    [
        (10, 100, 0, None),
        (11, 100, 0, MAJOR),
        (11, 1, 10_000, MINOR),
        (10, 1, 10_000, None),
        (1, 1001, 10_000, MAJOR),
        (1, 1000, 10_000, None),
        (0, 0, 10_000, None),
        (0, 0, 0, None),
    ],
)
def test_minor_or_major(deltas: int, delta_bytes: int, base_bytes: int, expected: CompactionType | None) -> None:
    """§9, 59."""
    assert compaction_needed(state(deltas, delta_bytes, base_bytes), HIVE) is expected


def test_original_files_count_as_base() -> None:
    assert compaction_needed(state(1, 1001, 0, ("000000_0", 10_000)), HIVE) is MAJOR
    assert compaction_needed(state(11, 1, 0, ("000000_0", 10_000)), HIVE) is MINOR


def test_base_that_replaced_another_is_for_the_cleaner() -> None:
    assert compaction_needed(state(0, 0, 500, (f"{base_name(50)}/bucket_00000", 9)), HIVE) is MAJOR


def test_thresholds_of_a_table() -> None:
    config = CompactionConfig()
    own = {"CompactorThreshold.hive.compactor.delta.num.threshold": "3"}
    assert Thresholds.of(config, {}) == HIVE
    assert Thresholds.of(config, own) == Thresholds(3, 0.1)
    assert Thresholds.of(config, {"compactorthreshold.hive.compactor.delta.pct.threshold": "0.5"}) == Thresholds(
        10, 0.5
    )
    with pytest.raises(SettingError, match="unfit"):
        Thresholds.of(config, {"compactorthreshold.hive.compactor.delta.num.threshold": "many"})


def test_flags_of_tables_and_databases() -> None:
    """§9, 61: the database has the last word."""

    def table(own: dict[str, str], database: dict[str, str]) -> TableInfo:
        return TableInfo("/t", (), parameters=own, database_parameters=database)

    assert is_automatic(table({}, {}))
    assert not is_automatic(table({"NO_AUTO_COMPACTION": "true"}, {}))
    assert not is_automatic(table({}, {"no_auto_compaction": "TRUE"}))
    assert is_automatic(table({"no_auto_compaction": "true"}, {"no_auto_compaction": "false"}))
    assert not may_be_cleaned(table({"no_cleanup": "true"}, {}))
    assert pool_of(table({}, {"hive.compactor.worker.pool": "a"})) == "a"
    assert pool_of(table({"hive.compactor.worker.pool": "b"}, {"hive.compactor.worker.pool": "a"})) == "b"


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
    with world.db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE completed_component SET committed_at = committed_at - interval '1 hour'")
    assert world.service.candidates(initiator._since_ms) == ([], initiator._since_ms)
    world.write()
    assert len(world.service.candidates(initiator._since_ms)[0]) == 1


def test_compaction_ends_the_candidacy(world: World) -> None:
    world.configure(delta_num_threshold=1)
    world.write()
    world.write()
    assert len(world.initiator().run_once()) == 1
    world.worker().run_once()
    world.cleaner().run_once()
    assert world.service.candidates(0)[0] == []
    assert world.initiator().run_once() == []


def test_failures_in_a_row_stop_it(world: World) -> None:
    """§9, 60."""
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
    "parameters",
    [
        {"transactional": "true", "no_auto_compaction": "true"},
        {"transactional": "true", "transactional_properties": "insert_only"},
        {},
    ],
)
def test_tables_left_alone(world: World, parameters: dict[str, str]) -> None:
    world.configure(delta_num_threshold=0)
    world.write()
    info = world.catalogue.tables["db", "t"]
    world.catalogue.tables["db", "t"] = dataclasses.replace(info, parameters=parameters)
    assert world.initiator().run_once() == []
    assert world.service.show() == []


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
