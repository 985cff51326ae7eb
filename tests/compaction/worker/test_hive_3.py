"""Compactions of tables that Apache Hive 3.1 reads: a base without a transaction's number, when nobody needs less."""

import json
import threading
from dataclasses import replace

import pytest

from hive_acid.filesystem import files
from metastore.compaction.states import CompactionState, CompactionType
from metastore.compaction.worker.back_off import Patience
from tests.compaction.world import ACID, World, fail


@pytest.fixture
def shared(world: World) -> World:
    info = world.catalogue.tables["db", world.table]
    shared = {**ACID, "hive_acid.hive31": "true"}
    world.catalogue.tables["db", world.table] = replace(info, parameters=shared)
    world.write(inserts=3)
    world.write(inserts=1, deletes=[min(world.read())])
    return world


@pytest.mark.parametrize("kind", [CompactionType.MINOR, CompactionType.MAJOR])
def test_the_base_is_visible_to_all_at_once(shared: World, kind: CompactionType) -> None:
    before = shared.read()
    done = shared.compact(kind)
    assert done.state is CompactionState.READY_FOR_CLEANING
    assert "base_0000002" in shared.directories()
    assert not [name for name in shared.directories() if "_v" in name]
    marker = files.read(files.join(shared.location, "base_0000002", "_metadata_acid"))
    assert json.loads(marker) == {"thisFileVersion": "0", "dataFormat": "compacted"}
    assert shared.read() == before
    shared.cleaner().run_once()
    assert shared.directories() == ["base_0000002"]
    assert shared.read() == before


def test_it_waits_for_readers_with_older_snapshots(shared: World) -> None:
    reader = shared.open()
    snapshot = shared.snapshot(reader)
    before = shared.read()
    shared.request()
    running = threading.Thread(target=shared.worker().run_once)
    running.start()
    running.join(1)
    assert running.is_alive()
    assert shared.read(snapshot) == before
    shared.txns.commit_txn(reader)
    running.join(20)
    assert "base_0000002" in shared.directories()


def test_readers_that_do_not_end_make_it_fail(shared: World) -> None:
    shared.patience = Patience(older_snapshots_s=0.3)
    shared.open()
    before = shared.read()
    done = shared.compact()
    assert done.state is CompactionState.FAILED
    assert "Hive 3.1" in (done.error_message or "")
    assert not [name for name in shared.directories() if name.startswith("base")]
    assert shared.read() == before


def test_what_is_visible_is_not_undone(shared: World, monkeypatch: pytest.MonkeyPatch) -> None:
    before = shared.read()
    monkeypatch.setattr(shared.service, "mark_compacted", fail)
    shared.compact()
    assert "base_0000002" in shared.directories()
    assert shared.read() == before
