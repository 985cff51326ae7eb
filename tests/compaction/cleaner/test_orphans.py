"""What is an orphan, what is not, and that only what was asked for is removed."""

import os
import time
from pathlib import Path

import pytest

from hive_acid.errors import NoSuchObjectError
from hive_acid.filesystem import files
from hive_acid.filesystem.files import FileEntry
from hive_acid.format.names import base_name, delete_delta_name, delta_name, staging_name
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from metastore.compaction.cleaner.orphan_rules import Evidence, Survey, Unit, judge_data, judge_hidden, judge_place
from metastore.compaction.cleaner.orphans import Orphan, Orphans, Sweep
from metastore.compaction.states import CompactionType
from metastore.store.database import Database
from metastore.txn.states import TxnType
from tests.compaction.world import World, write_directory

from .cleaning_walk import SharedTables

ALL = Sweep(0, remove=True)
EVEN_UNCERTAIN = Sweep(0, remove=True, uncertain=True)
DAY_MS = 86_400_000

EVIDENCE = Evidence(ValidTxnList(20, (15,), (12,)), ValidWriteIdList("db.t", 9, (7,), (4, 5)))


# --- the rules ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (delta_name(3, 3, 0), None),
        (delta_name(4, 4, 0), "aborted"),
        (delete_delta_name(4, 5), "aborted"),
        (delta_name(3, 5), None),
        (delta_name(7, 7, 0), None),
        (delta_name(9, 9, 0), None),
        (delta_name(10, 10, 0), "write_id"),
        (delta_name(9, 10), None),
        (base_name(4), "aborted"),
        (base_name(7), None),
        (base_name(10), "write_id"),
        (base_name(3, 12), "compactor"),
        (delta_name(1, 5, None, 12), "compactor"),
        (base_name(3, 15), None),
        (base_name(3, 20), None),
        (base_name(3, 21), "compactor"),
        ("base_-9223372036854775808_v0000012", "compactor"),
        ("base_-9223372036854775808", None),
        ("base_x", "unknown"),
    ],
)
def test_data_directories(name: str, reason: str | None) -> None:
    judgement = judge_data(name, EVIDENCE)
    assert (judgement and judgement.reason.value) == reason
    assert judgement is None or judgement.is_certain == (reason != "unknown")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (staging_name(12, "a"), "staging"),
        (staging_name(14, "a"), "staging"),
        (staging_name(15, "a"), None),
        (staging_name(20, "a"), "staging"),
        (staging_name(21, "a"), "staging"),
        (".hive-staging_hive_2026", None),
        ("_anything", None),
    ],
)
def test_hidden_directories(name: str, reason: str | None) -> None:
    judgement = judge_hidden(name, EVIDENCE)
    assert (judgement and judgement.reason.value) == reason


def test_staging_of_others_is_never_certain() -> None:
    quiet = Evidence(EVIDENCE.txns, ValidWriteIdList("db.t", 9))
    for name in ("_tmp_0f3a", ".hive-staging_hive_2026", "_task_tmp.-ext-10000"):
        judgement = judge_hidden(name, quiet)
        assert judgement is not None
        assert not judgement.is_certain


@pytest.mark.parametrize("evidence", [
    Evidence(EVIDENCE.txns, EVIDENCE.write_ids, takes_foreign_ids=True),
    Evidence(EVIDENCE.txns, ValidWriteIdList("db.t", 0)),
])  # fmt: skip
def test_what_comes_from_elsewhere_is_never_certain(evidence: Evidence) -> None:
    """Files of an imported or replicated table may be ahead of what is known here, and so may those of a moved one."""
    judgement = judge_data(delta_name(10, 10, 0), evidence)
    assert judgement is not None
    assert not judgement.is_certain
    if evidence.takes_foreign_ids:
        for foreign in (judge_data(base_name(3, 21), evidence), judge_hidden(staging_name(21, "a"), evidence)):
            assert foreign is not None
            assert not foreign.is_certain


def test_a_partition_that_is_being_written_is_none_that_was_lost() -> None:
    assert judge_place("k=1", Unit(data={delta_name(7, 7, 0)}), EVIDENCE) is None
    aborted = judge_place("k=1", Unit(data={delta_name(4, 4, 0)}), EVIDENCE)
    committed = judge_place("k=1", Unit(data={delta_name(3, 3, 0)}), EVIDENCE)
    assert aborted is not None
    assert aborted.is_certain
    assert committed is not None
    assert not committed.is_certain


def test_one_young_file_keeps_a_directory() -> None:
    survey = Survey.of([
        FileEntry("k=1/", 0, 5),
        FileEntry("k=1/delta_0000001_0000001_0000/", 0, 5),
        FileEntry("k=1/delta_0000001_0000001_0000/a", 10, 7),
        FileEntry("k=1/delta_0000001_0000001_0000/b", 20, 9),
        FileEntry("k=1/_tmp_spark_3_x/delta_0000001_0000001_0000/c", 40, 3),
        FileEntry("000000_0", 80, 100),
    ])  # fmt: skip
    assert {path: (unit.size, unit.files, unit.modified_ms) for path, unit in survey.data.items()} == {
        "k=1/delta_0000001_0000001_0000": (30, 2, 9)
    }
    assert list(survey.hidden) == ["k=1/_tmp_spark_3_x"]
    assert survey.places["k=1"].data == {"delta_0000001_0000001_0000"}
    assert (survey.places["k=1"].size, survey.places["k=1"].modified_ms) == (70, 9)


def test_an_unknown_age_is_no_age() -> None:
    (unit,) = Survey.of([FileEntry("base_0000001/a", 1, 0)]).data.values()
    assert unit.modified_ms > time.time() * 1000


# --- against real directories -----------------------------------------------------------------------


def _orphans(world: World) -> Orphans:
    shared = SharedTables(world.catalogue.tables, world.catalogue.partitions)
    world.catalogue = shared
    return Orphans(world.service, world.snapshots, shared, shared)


def _of_table(orphans: Orphans, sweep: Sweep, name: str = "t") -> list[Orphan]:
    return [orphan for _, orphan in orphans.of_table("db", name, sweep) if orphan is not None]


def _found(world: World, sweep: Sweep = Sweep(0)) -> dict[str, str]:  # noqa: B008
    found = _of_table(_orphans(world), sweep, world.table)
    return {orphan.location.removeprefix(f"{world.root}/"): orphan.reason.value for orphan in found}


def test_a_table_with_all_kinds(world: World) -> None:
    world.write()
    world.write()
    world.compact(CompactionType.MAJOR)
    lost, busy = world.open(), world.open()
    world.write(lost)
    world.write(busy)
    world.txns.abort_txn(lost)
    done = world.open()
    world.txns.commit_txn(done)
    for name in (staging_name(done, "x"), staging_name(busy, "x"), delta_name(40, 40, 0), base_name(2, 99)):
        write_directory(files.join(world.location, name), [])
    files.write(files.join(world.location, "notes.txt"), b"x")
    rows = world.read()
    before = world.directories()
    expected = {
        staging_name(done, "x"): "staging",
        delta_name(3, 3, 0): "aborted",
        delta_name(40, 40, 0): "write_id",
        base_name(2, 99): "compactor",
    }
    assert _found(world) == expected
    assert world.directories() == before, "looking removes nothing"
    removed = _of_table(_orphans(world), ALL)
    assert all(orphan.is_removed and orphan.size and orphan.files == 2 for orphan in removed)
    assert sorted(set(before) - set(world.directories())) == sorted(expected)
    assert _found(world) == {}
    assert world.read() == rows
    world.txns.commit_txn(busy)
    assert len(world.read()) == len(rows) + 1


def test_the_age_floor(world: World) -> None:
    done = world.open()
    world.txns.commit_txn(done)
    old, young = (files.join(world.location, staging_name(done, token)) for token in ("old", "young"))
    past = time.time() - 8 * 86_400
    for place in (old, young):
        write_directory(place, [])
        for path in (*Path(place).iterdir(), Path(place)):
            os.utime(path, (past, past))
    os.utime(Path(young, "bucket_00000"))
    found = _of_table(_orphans(world), Sweep(7 * DAY_MS, remove=True))
    assert [orphan.location for orphan in found] == [old]
    assert not Path(old).exists()
    assert Path(young).exists()


def test_open_compaction_is_no_orphan(world: World) -> None:
    world.write()
    world.write()
    seen: list[dict[str, str]] = []
    world.executor.after = lambda job: seen.append(_found(world))
    world.compact(CompactionType.MINOR)
    txn_id = world.open(TxnType.COMPACTION)
    write_directory(files.join(world.location, base_name(2, txn_id)), [])
    assert [*seen, _found(world)] == [{}, {}]


def test_lost_partitions(db: Database, tmp_path: Path) -> None:
    world = World(db, tmp_path, partition="k=1")
    world.write()
    lost = world.open()
    world.write(lost)
    world.txns.abort_txn(lost)
    write_directory(files.join(world.root, "k=2", delta_name(1, 1, 0)), [])
    write_directory(files.join(world.root, "k=3", delta_name(2, 2, 0)), [])
    write_directory(files.join(world.root, "other", delta_name(2, 2, 0)), [])
    assert _found(world) == {f"k=1/{delta_name(2, 2, 0)}": "aborted", "k=2": "partition", "k=3": "partition"}
    _of_table(_orphans(world), ALL)
    assert _found(world) == {"k=2": "partition"}, "what was committed there may be wanted"
    _of_table(_orphans(world), EVEN_UNCERTAIN)
    assert sorted(path.name for path in Path(world.root).iterdir()) == ["k=1", "other"]
    assert len(world.read()) == 1


def test_partitions_elsewhere(db: Database, tmp_path: Path) -> None:
    world = World(db, tmp_path, partition="k=1")
    elsewhere = str(tmp_path / "elsewhere")
    world.catalogue.partitions["db", "t"]["k=2"] = elsewhere
    world.write()
    write_directory(files.join(elsewhere, delta_name(1, 1, 0)), [])
    write_directory(files.join(elsewhere, delta_name(5, 5, 0)), [])
    found = _of_table(_orphans(world), ALL)
    assert [orphan.location for orphan in found] == [files.join(elsewhere, delta_name(5, 5, 0))]
    assert Path(elsewhere, delta_name(1, 1, 0)).exists()


def test_a_table_that_is_made_anew_is_left_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the search and the removal: its new files have the names of the old ones."""
    world.write()
    write_directory(files.join(world.location, delta_name(2, 2, 0)), [])
    orphans = _orphans(world)
    find = orphans._in_place

    def found_before(*args: object) -> object:
        found = list(find(*args))  # type: ignore[arg-type]
        world.write()
        return found

    monkeypatch.setattr(orphans, "_in_place", found_before)
    (orphan,) = _of_table(orphans, ALL)
    assert not orphan.is_removed
    assert Path(orphan.location).exists()


def test_tables_without_transactions_have_none(world: World) -> None:
    info = world.catalogue.tables["db", "t"]
    world.catalogue.tables["db", "t"] = type(info)(info.location, info.columns)
    write_directory(files.join(world.location, delta_name(2, 2, 0)), [])
    assert _found(world) == {}
    with pytest.raises(NoSuchObjectError):
        _of_table(_orphans(world), ALL, "nothing")
