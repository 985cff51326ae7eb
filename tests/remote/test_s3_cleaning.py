"""Compactions, the Cleaner and orphans in an object store: no directories, and a rename that copies."""

from pathlib import Path
from typing import Any

import pytest

from hive_acid.filesystem import files
from hive_acid.format.names import base_name, delta_name, staging_name
from metastore.compaction.cleaner.orphans import Orphans, Sweep
from metastore.compaction.listings import LocationUnreachableError, listed
from metastore.compaction.states import CompactionState, CompactionType
from metastore.store.database import Database
from tests.compaction.cleaner.cleaning_walk import SharedTables
from tests.compaction.world import World, write_directory
from tests.remote.s3 import Store

pytestmark = pytest.mark.maven


@pytest.fixture
def world(store: Store, db: Database, tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    """A table in the store."""
    made = World(db, tmp_path)
    shared = SharedTables()
    info = made.catalogue.tables["db", "t"]
    made.root = made.location = f"s3a://{store.bucket}/{request.node.name}/t"
    shared.tables["db", "t"] = type(info)(made.root, info.columns, parameters=info.parameters)
    made.catalogue = shared
    return made


@pytest.mark.parametrize("kind", [CompactionType.MINOR, CompactionType.MAJOR])
def test_what_is_replaced_goes_when_its_readers_have_gone(world: Any, kind: Any) -> None:
    world.configure(delta_num_threshold=1, cleaner_threads=2)
    world.write(inserts=2)
    world.write(inserts=1, deletes=[min(world.read())])
    rows = world.read()
    reader = world.open()
    snapshot = world.snapshot(reader)
    assert world.initiator().run_once(), "the Initiator sees the deltas in the store"
    world.worker().run_once()
    done = world.compact(kind) if not world.service.show(state=CompactionState.READY_FOR_CLEANING) else None
    assert done is None or done.state is CompactionState.READY_FOR_CLEANING
    assert world.cleaner().run_once().removed == []
    assert world.read(snapshot) == rows
    world.txns.commit_txn(reader)
    run = world.cleaner().run_once()
    assert len(run.cleaned) == 1
    assert all("_v" in name for name in world.directories())
    assert world.read() == rows
    assert world.cleaner().run_once().removed == []


def test_aborted_data_and_staging(world: Any) -> None:
    world.write()
    lost = world.open()
    world.write(lost)
    write_directory(files.join(world.location, staging_name(lost, "x"), delta_name(2, 2, 0)), [])
    world.txns.abort_txn(lost)
    rows = world.read()
    world.cleaner().run_once()
    assert world.directories() == [delta_name(1, 1, 0)]
    assert world.read() == rows


def test_a_table_of_which_nothing_is_left_is_clean(world: Any) -> None:
    """No directory stays where no object is: that is no store that is away."""
    lost = world.open()
    world.write(lost)
    world.txns.abort_txn(lost)
    run = world.cleaner().run_once()
    assert run.failed == {}
    assert files.list_tree(world.location) == []
    lost = world.open()
    world.write(lost, inserts=0)
    world.txns.abort_txn(lost)
    assert world.cleaner().run_once().failed == {}


def test_a_bucket_that_is_away_is_no_empty_table(store: Store) -> None:
    with pytest.raises((LocationUnreachableError, OSError)):
        listed("s3a://there-is-no-such-bucket/t")


def test_orphans(world: Any) -> None:
    world.write()
    done = world.open()
    world.txns.commit_txn(done)
    for name in (staging_name(done, "x"), delta_name(9, 9, 0), base_name(1, 99)):
        write_directory(files.join(world.location, name), [])
    orphans = Orphans(world.service, world.snapshots, world.catalogue, world.catalogue)
    rows = world.read()
    assert list(orphans.of_table("db", "t", Sweep(3_600_000))) == [], "the store tells when objects were made"
    found = [one for _, one in orphans.of_table("db", "t", Sweep(0, remove=True)) if one is not None]
    assert [(one.reason.value, one.files, one.is_removed) for one in found] == [
        ("staging", 2, True),
        ("compactor", 2, True),
        ("write_id", 2, True),
    ]
    assert world.directories() == [delta_name(1, 1, 0)]
    assert world.read() == rows
