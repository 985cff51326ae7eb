"""The Cleaner decides the same with and without empty directories, and nothing where it cannot look."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from hive_acid.filesystem import files
from hive_acid.format.names import base_name, delta_name
from metastore.compaction.listings import LocationUnreachableError, empty_directories, listed, state_of
from metastore.compaction.states import CompactionState, CompactionType
from metastore.store.database import Database
from metastore.store.leases import LeaseLostError
from tests.compaction.world import World, nothing_left, write_directory

MAJOR = CompactionType.MAJOR


def test_an_empty_base_hides_nothing_from_the_cleaner(world: World) -> None:
    """Vector T45: on a disk it would replace the delta, in an object store it is not there."""
    world.write()
    world.write(inserts=0)
    files.make_directory(files.join(world.location, base_name(2)))
    entries = listed(world.location)
    write_ids, txns = world.snapshot()
    assert empty_directories(entries) == {base_name(2)}
    solid = [entry for entry in entries if not entry.path.startswith(base_name(2))]
    assert state_of(world.location, entries, write_ids, txns) == state_of(world.location, solid, write_ids, txns)
    assert state_of(world.location, entries, write_ids, txns).obsolete == ()


def test_an_empty_base_does_not_cost_a_delta(world: World) -> None:
    world.write()
    world.write(inserts=0)
    files.make_directory(files.join(world.location, base_name(2)))
    lost = world.open()
    world.write(lost)
    world.txns.abort_txn(lost)
    world.cleaner().run_once()
    assert world.directories() == [base_name(2), delta_name(1, 1, 0)]


def test_empty_directories_of_what_is_gone_go_too(world: World) -> None:
    """A removal was killed when the files were gone: on a disk their directories are left."""
    world.write()
    world.write()
    done = world.compact(MAJOR)
    for name in (delta_name(1, 1, 0), delta_name(2, 2, 0)):
        for file in Path(world.location, name).iterdir():
            file.unlink()
    assert world.cleaner().run_once().cleaned == [done.id]
    assert world.directories() == ["base_0000002_v0000003"]


def test_empty_directories_of_aborted_writes_go_without_a_compaction(world: World) -> None:
    """As above; their names would keep the record of the abort for as long as nothing is compacted."""
    world.write()
    lost = world.open()
    write_id = world.write(lost)
    world.txns.abort_txn(lost)
    for file in Path(world.location, delta_name(write_id, write_id, 0)).iterdir():
        file.unlink()
    world.cleaner().run_once()
    assert world.directories() == [delta_name(1, 1, 0)]
    assert nothing_left(world)


def test_the_record_of_an_empty_aborted_base_stays_as_long_as_it(world: World) -> None:
    """Without it the base would count as committed, and hide every row."""
    world.write()
    lost = world.open()
    world.write(lost, overwrite=True)
    for file in Path(world.location, base_name(2)).iterdir():
        file.unlink()
    world.txns.abort_txn(lost)
    rows = world.read()
    world.cleaner().run_once()
    assert world.read() == rows
    assert world.snapshot()[0].is_aborted(2) or base_name(2) not in world.directories()


def _unmount(world: World) -> Callable[[], None]:
    away = Path(world.root).with_name("away")
    shutil.move(world.root, away)

    def back() -> None:
        shutil.move(away, world.root)

    return back


def test_a_table_that_is_away_counts_as_no_clean_one(world: World) -> None:
    world.write()
    world.write()
    done = world.compact(MAJOR)
    rows = world.read()
    back = _unmount(world)
    run = world.cleaner().run_once()
    assert "mount or restore it" in run.failed["db.t"]
    (decision,) = world.service.decisions("db", "t")
    assert "is not there" in decision.message
    assert world.service.get(done.id).state is CompactionState.READY_FOR_CLEANING
    back()
    assert world.cleaner().run_once().cleaned == [done.id]
    assert world.read() == rows
    assert world.service.decisions("db", "t") == []


def test_records_of_aborted_writes_outlive_a_disk_that_is_away(db: Database, tmp_path: Path) -> None:
    """It lists like an empty table; with the records gone, the aborted rows would be there when it comes back."""
    world = World(db, tmp_path / "disk")
    world.write()
    lost = world.open()
    world.write(lost)
    world.txns.abort_txn(lost)
    rows = world.read()
    shutil.move(tmp_path / "disk", tmp_path / "away")
    assert world.cleaner().run_once().failed
    assert [decision.code for decision in world.service.decisions("db", "t")] == ["error"]
    shutil.move(tmp_path / "away", tmp_path / "disk")
    assert world.read() == rows
    world.cleaner().run_once()
    assert world.directories() == [delta_name(1, 1, 0)]
    assert world.service.decisions("db", "t") == []


def test_what_was_never_made_is_empty(tmp_path: Path) -> None:
    assert listed(str(tmp_path / "p=1")) == []
    with pytest.raises(LocationUnreachableError):
        listed(str(tmp_path / "p=1"), must_exist=True)
    with pytest.raises(LocationUnreachableError):
        listed(str(tmp_path / "gone" / "p=1"))


def test_a_listing_that_fails_is_no_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of whatever file system: what cannot be listed is an error, and what is not there is empty."""
    files.write("memory://t/delta_0000001_0000001_0000/bucket_00000", b"x")
    plain = MemoryFileSystem.ls

    def refusing(self: MemoryFileSystem, path: str, *args: object, **options: object) -> object:
        if path.rstrip("/").endswith("delta_0000001_0000001_0000"):
            raise PermissionError(path)
        return plain(self, path, *args, **options)

    monkeypatch.setattr(MemoryFileSystem, "ls", refusing)
    with pytest.raises(PermissionError):
        files.list_tree("memory://t")
    assert files.list_tree("memory://nothing") == []
    files.remove("memory://t")


@pytest.mark.parametrize("key", ["NO_CLEANUP", "no_cleanup", "No_Cleanup"])
def test_no_cleanup_of_a_partition(db: Database, tmp_path: Path, key: str) -> None:
    world = World(db, tmp_path, partition="k=1")
    world.catalogue.parameters["db", "t", "k=1"] = {key: "TRUE"}
    world.write()
    world.write()
    done = world.compact(MAJOR)
    assert world.cleaner().run_once().removed == []
    found = world.service.get(done.id)
    assert found.state is CompactionState.REFUSED
    assert "no_cleanup" in str(found.error_message)
    assert [decision.code for decision in world.service.decisions("db", "t", "k=1")] == ["no_cleanup"]
    world.catalogue.parameters.clear()
    world.write()
    later = world.compact(MAJOR)
    assert world.cleaner().run_once().cleaned == [later.id]
    assert len(world.directories()) == 1, "the next one takes up what is left"
    assert world.service.decisions("db", "t", "k=1") == []


def test_no_cleanup_keeps_what_aborted_transactions_left(db: Database, tmp_path: Path) -> None:
    world = World(db, tmp_path, partition="k=1")
    world.catalogue.parameters["db", "t", "k=1"] = {"NO_CLEANUP": "true"}
    lost = world.open()
    world.write(lost)
    world.txns.abort_txn(lost)
    assert world.cleaner().run_once().removed == []
    assert world.directories() == [delta_name(1, 1, 0)]
    assert [decision.code for decision in world.service.decisions("db", "t", "k=1")] == ["no_cleanup"]


def _many(db: Database, tmp_path: Path, count: int) -> list[World]:
    worlds = [World(db, tmp_path, f"t{number}") for number in range(count)]
    for world in worlds:
        world.write()
        world.write()
        world.compact(MAJOR)
        worlds[0].catalogue.tables.update(world.catalogue.tables)
    return worlds


def test_many_at_a_time(db: Database, tmp_path: Path) -> None:
    worlds = _many(db, tmp_path, 6)
    worlds[0].configure(cleaner_threads=3)
    shutil.rmtree(worlds[3].root)
    run = worlds[0].cleaner().run_once()
    assert len(run.cleaned) == 5
    assert list(run.failed) == ["db.t3"], "one that fails is no obstacle to others"
    assert all(len(world.directories()) == 1 for world in worlds if world is not worlds[3])


def test_a_lost_lease_ends_all_threads(db: Database, tmp_path: Path) -> None:
    worlds = _many(db, tmp_path, 4)
    worlds[0].configure(cleaner_threads=2)
    cleaner = worlds[0].cleaner()

    def lost() -> None:
        raise LeaseLostError("another server leads")

    cleaner._check_lease = lost
    with pytest.raises(LeaseLostError):
        cleaner.run_once()
    assert [len(world.directories()) for world in worlds] == [3, 3, 3, 3]
    assert {row.state for row in worlds[0].service.show()} == {CompactionState.READY_FOR_CLEANING}


def test_an_error_of_a_library_concerns_its_own_table(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients of object stores have errors that are no OSError."""
    world.write()
    world.write()
    done = world.compact(MAJOR)

    class EndpointConnectionError(Exception):
        pass

    def unreachable(*_: object) -> None:
        raise EndpointConnectionError("could not connect")

    with monkeypatch.context() as patch:
        patch.setattr(files, "list_tree", unreachable)
        assert world.cleaner().run_once().failed == {"db.t": "could not connect"}
    assert world.cleaner().run_once().cleaned == [done.id]


def test_given_up_is_said_until_something_is_cleaned(world: World) -> None:
    world.configure(cleaner_max_attempts=1)
    world.write()
    world.write()
    world.compact(MAJOR)
    odd = files.join(world.location, "base_x")
    write_directory(odd, [])
    cleaner = world.cleaner()
    cleaner.run_once()
    cleaner.run_once()
    assert [decision.code for decision in world.service.decisions("db", "t")] == ["failed"]
    files.remove(odd)
    world.compact(MAJOR)
    assert world.cleaner().run_once().cleaned, "a compaction asked for again takes up what is left"
    assert len(world.directories()) == 1
    assert world.service.decisions("db", "t") == []
