"""The vectors of acid-format.md §8 as real directories: what is read stays, whatever compactions and the Cleaner do.

Each directory has the rows that a history has which is the same for all vectors: write w inserts two rows and, where
there is a delete delta for it, deletes the first one of the write before. What aborted writes did is not in what
compactions have made.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from zlib import crc32

import pytest

from hive_acid.filesystem import files
from hive_acid.format.names import Directory, DirectoryKind, claims_to_be_data, parse_directory
from hive_acid.format.rows import DELETE, INSERT, RowEvent, RowId, encode_bucket, visible_rows
from hive_acid.format.snapshot import ValidTxnList
from hive_acid.format.state import DirectoryState, directory_state
from hive_acid.ids import TxnId
from metastore.compaction.plan import CompactionPlan, CompactionRefusedError, compaction_input, plan_compaction
from metastore.compaction.states import CompactionType
from tests.format.vectors import VECTORS, Vector, long_name, long_names

BUCKET = encode_bucket(0)
LATER = TxnId(2000)
"""The transaction of a compaction that comes after all that the vectors know."""


class OnDisk:
    """A vector's directory, with rows in its files."""

    def __init__(self, vector: Vector, location: Path) -> None:
        self.vector, self.location = vector, str(location)
        self.write_ids, self.txns = vector.write_id_list(), vector.txn_list()
        self._deleting = {
            write_id
            for path, _ in vector.entries()
            if (found := parse_directory(path.partition("/")[0])) and found.kind is DirectoryKind.DELETE_DELTA
            for write_id in range(found.min_write_id, found.max_write_id + 1)
        }
        metadata = vector.metadata()
        for path, _ in vector.entries():
            place = location / path
            if path.endswith("/"):
                place.mkdir(parents=True, exist_ok=True)
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(metadata[path] if path in metadata else self._content(path))

    def _content(self, path: str) -> bytes:
        top = path.partition("/")[0]
        directory = parse_directory(top)
        if directory is None:
            events = [RowEvent(INSERT, 0, BUCKET, crc32(path.encode()), 0, path)] if not claims_to_be_data(top) else []
        else:
            events = self._events(directory)
        return "".join(json.dumps(event) + "\n" for event in events).encode()

    def _events(self, directory: Directory) -> list[RowEvent]:
        lowest = 1 if directory.kind is DirectoryKind.BASE else directory.min_write_id
        of_writes = [
            write_id
            for write_id in range(lowest, directory.max_write_id + 1)
            if not (directory.visibility_txn_id and self.write_ids.is_aborted(write_id))
        ]
        bucket = encode_bucket(0, directory.statement_id or 0)
        inserts = [RowEvent(INSERT, write_id, bucket, row, write_id, "row") for write_id in of_writes for row in (0, 1)]
        deletes = [
            RowEvent(DELETE, write_id - 1, BUCKET, 0, write_id, None)
            for write_id in of_writes
            if write_id in self._deleting
        ]
        if directory.kind is DirectoryKind.DELETE_DELTA:
            return deletes
        gone = {event.key for event in deletes} if directory.kind is DirectoryKind.BASE else set()
        return [event for event in inserts if event.key not in gone]

    def state(self, txns: ValidTxnList | None = None) -> DirectoryState:
        return directory_state(files.list_tree(self.location), self.write_ids, txns or self.txns, self._metadata)

    def rows(self, txns: ValidTxnList | None = None) -> list[RowId]:
        """The rows that the snapshot reads, as often as it reads them."""
        state = self.state(txns)
        base = [file.path for file in (state.base.files if state.base else state.originals)]
        data, deletes = (
            [event for delta in deltas for file in delta.files for event in self._read(file.path)]
            for deltas in (state.insert_deltas, state.delete_deltas)
        )
        return sorted(
            event.key
            for event in visible_rows(data, deletes, self.write_ids, [one for path in base for one in self._read(path)])
        )

    def clean(self, txns: ValidTxnList | None = None) -> None:
        """Remove what the Cleaner would when only this snapshot and later ones are left."""
        state = self.state(txns)
        for name in (*state.obsolete, *state.aborted):
            files.remove(files.join(self.location, name))
        left = self.state(txns)
        assert not (*left.obsolete, *left.aborted)

    def plan(self, kind: CompactionType) -> CompactionPlan | None:
        found = compaction_input(files.list_tree(self.location), self.write_ids, self.txns, self._metadata)
        try:
            return plan_compaction(found, kind, LATER)
        except CompactionRefusedError:
            return None

    def carry_out(self, plan: CompactionPlan) -> None:
        """Merge as a compaction does: what is aborted is left out, and with a base also what is deleted."""
        found = compaction_input(files.list_tree(self.location), self.write_ids, self.txns, self._metadata)
        data, deletes = (
            [
                event
                for directory in directories
                for file in directory.files
                for event in self._read(file.path)
                if found.write_ids.is_valid(event.current_write_id)
            ]
            for directories in (plan.data, plan.deletes)
        )
        data += [event for file in plan.raw for event in self._read(file.path)]
        if plan.kind is CompactionType.MAJOR:
            data = visible_rows((), deletes, found.write_ids, data)
        for output, events in ((plan.insert_output, data), (plan.delete_output, deletes)):
            if output is not None:
                place = Path(self.location, output)
                place.mkdir()
                (place / "bucket_00000").write_text("".join(json.dumps(event) + "\n" for event in sorted(events)))

    def _read(self, path: str) -> list[RowEvent]:
        return [RowEvent(*json.loads(line)) for line in Path(self.location, path).read_text().splitlines()]

    def _metadata(self, path: str) -> bytes:
        return files.read(files.join(self.location, path))


READABLE = [vector for vector in VECTORS if vector.error is None]


@pytest.mark.parametrize("vector", READABLE, ids=lambda vector: f"{vector.id} {vector.title}")
def test_the_cleaner_takes_what_nobody_reads(vector: Vector, tmp_path: Path) -> None:
    on_disk = OnDisk(vector, tmp_path)
    state, rows = on_disk.state(), on_disk.rows()
    assert (state.base.name if state.base else "") == long_name(vector.base)
    assert sorted(state.obsolete) == sorted(long_names(vector.obsolete))
    assert sorted(state.aborted) == sorted(long_names(vector.aborted))
    assert len(rows) == len(set(rows))
    on_disk.clean()
    assert on_disk.rows() == rows


@pytest.mark.parametrize("kind", [CompactionType.MINOR, CompactionType.MAJOR])
@pytest.mark.parametrize("vector", READABLE, ids=lambda vector: f"{vector.id} {vector.title}")
def test_a_compaction_changes_nothing_for_anybody(vector: Vector, kind: CompactionType, tmp_path: Path) -> None:
    """Neither for the snapshot from before it nor for the one that sees it, before and after the Cleaner came."""
    on_disk = OnDisk(vector, tmp_path)
    rows, before = on_disk.rows(), set(files.list_tree(on_disk.location, max_depth=1))
    plan = None if vector.compactor else on_disk.plan(kind)
    if plan is None:
        assert set(files.list_tree(on_disk.location, max_depth=1)) == before
        return
    on_disk.carry_out(plan)
    after = ValidTxnList(LATER, on_disk.txns.open_ids, on_disk.txns.aborted_ids)
    assert on_disk.rows() == rows
    assert on_disk.rows(after) == rows
    on_disk.clean(after)
    assert on_disk.rows(after) == rows


@pytest.mark.parametrize(
    "vector", [vector for vector in VECTORS if vector.error], ids=lambda vector: f"{vector.id} {vector.title}"
)
def test_what_no_snapshot_may_read_stays_as_it_is(vector: Vector, tmp_path: Path) -> None:
    """The reader is refused, the compaction too, and neither the Cleaner nor it takes anything away."""
    on_disk = OnDisk(vector, tmp_path)
    before = files.list_tree(on_disk.location)
    assert vector.error is not None
    with pytest.raises(vector.error):
        on_disk.rows()
    with pytest.raises(vector.error):
        on_disk.clean()
    for kind in (CompactionType.MINOR, CompactionType.MAJOR):
        with contextlib.suppress(vector.error):
            assert on_disk.plan(kind) is None
    assert files.list_tree(on_disk.location) == before


def test_most_vectors_can_be_compacted(tmp_path: Path) -> None:
    """Lest the test above passes because nothing is ever planned."""
    kinds = (CompactionType.MINOR, CompactionType.MAJOR)
    plans = [
        OnDisk(vector, tmp_path / f"{vector.id}{kind.value}").plan(kind)
        for vector in READABLE
        if not vector.compactor
        for kind in kinds
    ]
    assert sum(plan is not None for plan in plans) >= 35
