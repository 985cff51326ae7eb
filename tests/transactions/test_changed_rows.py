"""Which changes of others are of other rows, by the directories of a partition: what cannot be told is a conflict."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hive_acid.filesystem.delete_files import DeleteFiles
from hive_acid.format.names import VERSION_CONTENT, VERSION_MARKER
from hive_acid.format.orc.deletes import DeleteEvents, delete_file
from hive_acid.format.rows import RowId
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.ids import WriteId
from hive_acid.transactions.changed_rows import MOST_BYTES, ChangedRows, Since

OWN, HIGH = WriteId(20), 30
Change = tuple[WriteId, frozenset[RowId]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "t"


def put(place: Path, directory: str, rows: frozenset[RowId] = frozenset(), *, marked: bool = True, by: int = 1) -> None:
    """A directory as writers leave it; one of deletes names `rows`."""
    at = place / directory
    at.mkdir(parents=True)
    if marked:
        (at / VERSION_MARKER).write_bytes(VERSION_CONTENT)
    if directory.startswith("delete_"):
        ordered = sorted(rows)
        write_ids, buckets, row_ids = ([row[column] for row in ordered] for column in range(3))
        events = DeleteEvents(write_ids, buckets, row_ids, [by] * len(ordered))
        (at / "bucket_00000").write_bytes(delete_file([("id", "int")], events, "zlib"))
    else:
        (at / "bucket_00000").write_bytes(b"no one reads this")


def change(place: Path, write_id: int, rows: frozenset[RowId], statement: int = 0) -> None:
    """What an UPDATE leaves."""
    if rows:
        put(place, f"delete_delta_{write_id:07d}_{write_id:07d}_{statement:04d}", rows, by=write_id)
        put(place, f"delta_{write_id:07d}_{write_id:07d}_{statement:04d}")


def since(before: ValidWriteIdList | None = None, now: ValidWriteIdList | None = None) -> Since:
    return Since(
        OWN,
        before or ValidWriteIdList("d.t", 10),
        now or ValidWriteIdList("d.t", HIGH),
        ValidTxnList.everything(),
    )


def other(write_id: int | None, partition: str | None = None) -> Any:
    return SimpleNamespace(dbname="d", tablename="t", partname=partition, txnid=7, writeid=write_id)


def why(place: Path, *others: Any, of: Since | None = None) -> str | None:
    changed = ChangedRows(DeleteFiles())
    changed.begin("d.t", is_partitioned=False)
    changed.put("d.t", "", str(place))
    return changed.why_not_apart("d.t", of or since(), others)


def row(number: int, write_id: int = 1) -> RowId:
    return RowId(write_id, 536870912, number)


def rows(*numbers: int) -> frozenset[RowId]:
    return frozenset(map(row, numbers))


@pytest.mark.parametrize("seed", range(40))
def test_what_is_apart_is_told_and_nothing_else(seed: int, place: Path) -> None:
    """Writes by chance, seen before, seen now, or not at all, with compactions among them; the oracle are sets."""
    chance = random.Random(seed)
    sources = [(write_id, 536870912 + bucket * 65536) for write_id in (1, 5) for bucket in range(2)]

    def some(most: int) -> frozenset[RowId]:
        found = (RowId(*chance.choice(sources), chance.choice([0, 1, 63, 64, 4095, 4096, 9000])) for _ in range(most))
        return frozenset(found)

    mine = some(chance.randint(1, 4)) | (some(3) if chance.random() < 0.3 else frozenset())
    change(place, OWN, mine)
    writes = {write_id: some(chance.randint(0, 3)) for write_id in range(6, HIGH) if write_id != OWN}
    for write_id, theirs in writes.items():
        change(place, write_id, theirs, chance.randint(0, 2))
    unseen = chance.sample(sorted(writes), 4)
    before = ValidWriteIdList("d.t", 25, open_ids=tuple(chance.sample(range(6, 25), 12)), aborted_ids=())
    now = ValidWriteIdList("d.t", HIGH, open_ids=tuple(unseen[:2]), aborted_ids=tuple(unseen[2:]))
    if chance.random() < 0.5:
        put(place, "delete_delta_0000006_0000009_v0000099", some(5), by=6)
        put(place, "base_0000009_v0000099")
    new = [one for one in writes if now.is_valid(one) and not before.is_valid(one)]
    same = frozenset().union(*(writes[one] for one in new)) & mine
    told = why(place, *(other(one) for one in new if writes[one]), of=since(before, now))
    assert (told is None) == (not same), (told, same)
    if told is not None:
        first = min(same)
        assert f"{{writeid: {first.write_id}, bucketid: {first.bucket_property}, rowid: {first.row_id}}}" in told


@pytest.mark.parametrize(
    ("directory", "marked", "is_apart"),
    [
        ("base_0000015", True, False),  # an overwrite, or a partition that was dropped
        ("base_0000015_v0000099", True, True),  # a compaction
        ("base_0000009", True, True),  # it was there before
        ("delta_0000015_0000015_0000", False, False),  # Hive before version 3 may have updated in it
        ("delta_0000015_0000015_0000", True, True),
        ("delta_0000012_0000015", True, False),  # a batch of some writer's transactions
        ("delta_0000012_0000015_v0000099", True, True),
        ("delete_delta_0000012_0000015_v0000099", True, True),
        ("_tmp_spark_7_abc", True, True),
        ("some_other_thing", True, True),
    ],
)
def test_what_has_come_meanwhile(directory: str, marked: bool, is_apart: bool, place: Path) -> None:
    change(place, OWN, rows(1))
    change(place, 15, rows(2), statement=1)
    put(place, directory, rows(3), marked=marked, by=15)
    assert (why(place, other(15)) is None) == is_apart


def test_one_that_has_left_nothing_has_changed_nothing(place: Path) -> None:
    """Unless a compaction may have merged and removed what it had."""
    change(place, OWN, rows(1))
    assert why(place, other(15)) is None
    assert why(place, other(None)) is not None
    put(place, "delete_delta_0000012_0000016_v0000099", rows(9), by=15)
    assert why(place, other(15)) is not None
    assert why(place, other(17)) is None


def test_who_has_changed_nothing_there_minds_nobody(place: Path) -> None:
    put(place, "base_0000015")
    assert why(place, other(15)) is None


def test_too_much_is_not_read(place: Path) -> None:
    change(place, OWN, rows(1))
    change(place, 15, rows(2))
    (large,) = place.glob("delete_delta_0000015*/bucket_00000")
    with large.open("r+b") as file:
        file.truncate(MOST_BYTES + 1)
    assert why(place, other(15)) == "there are too many changes to compare them"


def test_what_cannot_be_read_is_not_apart(place: Path) -> None:
    change(place, OWN, rows(1))
    change(place, 15, rows(2))
    (broken,) = place.glob("delete_delta_0000015*/bucket_00000")
    broken.write_bytes(b"no ORC at all")
    assert why(place, other(15)) == "their changes cannot be read here"


def test_partitions(tmp_path: Path) -> None:
    """Only where it has changed something, and by the place that it had there."""
    changed = ChangedRows(DeleteFiles())
    changed.begin("d.t", is_partitioned=True)
    for name, mine, theirs in (("p=1", rows(1), rows(2)), ("p=2", rows(1), rows(1)), ("p=3", frozenset(), rows(1))):
        change(tmp_path / name, OWN, mine)
        change(tmp_path / name, 15, theirs)
    changed.put("d.t", "p=1", str(tmp_path / "p=1"))
    assert changed.why_not_apart("d.t", since(), [other(15, "p=1"), other(15, "p=2")]) is None
    assert changed.why_not_apart("d.t", since(), [other(15)]) is None, "its own partition is looked into"
    changed.put("d.t", "p=2", str(tmp_path / "p=2"))
    for said in (other(15, "p=2"), other(15)):
        told = changed.why_not_apart("d.t", since(), [said])
        assert told is not None
        assert told.endswith("in p=2")


def test_more_than_rows() -> None:
    changed = ChangedRows()
    assert not changed.tables
    changed.begin("d.t", is_partitioned=False)
    assert list(changed.tables) == ["d.t"]
    changed.begin_more()
    changed.begin("d.u", is_partitioned=False)
    assert not changed.tables


@pytest.mark.parametrize(
    ("before", "now", "found"),
    [
        (ValidWriteIdList("d.t", 10), ValidWriteIdList("d.t", 13), [11, 12, 13]),
        (ValidWriteIdList("d.t", 21, open_ids=(5, 20)), ValidWriteIdList("d.t", 22, open_ids=(22,)), [5]),
        (ValidWriteIdList("d.t", 21, open_ids=(5,)), ValidWriteIdList("d.t", 21, aborted_ids=(5,)), []),
        (ValidWriteIdList("d.t", 1), ValidWriteIdList("d.t", 1_000), None),
        (ValidWriteIdList("d.t", 1), ValidWriteIdList("d.t", 2**62), None),
    ],
)
def test_the_writes_of_others(before: ValidWriteIdList, now: ValidWriteIdList, found: list[int] | None) -> None:
    assert since(before, now).others(100) == found


def test_looks_are_asked_after_all_else(place: Path) -> None:
    asked: list[dict[str, str]] = []

    def look(_: Since, places: Any) -> str | None:
        asked.append(dict(places))
        return "it has come" if len(asked) > 1 else None

    changed = ChangedRows(DeleteFiles())
    changed.begin("d.t", is_partitioned=False)
    changed.put("d.t", "", str(place))
    changed.look_before_commit("d.t", look)
    change(place, OWN, rows(1))
    assert changed.why_not_apart("d.t", since(), []) is None
    assert changed.why_not_apart("d.t", since(), []) == "it has come"
    change(place, 15, rows(1))
    assert "both" in str(changed.why_not_apart("d.t", since(), [other(15)]))
    assert asked == [{"": str(place)}] * 2
