"""A model of one table: writes, compactions and snapshots, with the rows in memory.

It knows what a snapshot must see in two independent ways: from a log of what each write did, and by reading the
directories through `directory_state` and `visible_rows`. Tests let both race.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hive_acid.format.names import base_name, delete_delta_name, delta_name
from hive_acid.format.rows import DELETE, INSERT, RowEvent, RowId, encode_bucket, visible_rows
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.format.state import DataDirectory, DirectoryState, directory_state


@dataclass(frozen=True)
class Snapshot:
    """What a reader took, and the rows that the log promises it."""

    write_ids: ValidWriteIdList
    txns: ValidTxnList
    promised: frozenset[RowId]


@dataclass(frozen=True)
class Compaction:
    """A compaction under way: the directories that it will put into place."""

    txn_id: int
    output: dict[str, list[RowEvent]]


@dataclass
class History:
    """The table. Write ids map to transactions; `fate` holds open, committed or aborted per transaction."""

    directories: dict[str, list[RowEvent]] = field(default_factory=dict)
    fate: dict[int, str] = field(default_factory=dict)
    writer: dict[int, int] = field(default_factory=dict)
    inserted: dict[int, list[RowId]] = field(default_factory=dict)
    deleted: dict[int, list[RowId]] = field(default_factory=dict)

    def open_txn(self) -> int:
        txn_id = len(self.fate) + 1
        self.fate[txn_id] = "open"
        return txn_id

    def write(self, txn_id: int, inserts: int, deletes: int, overwrite: bool = False) -> int:
        """A write of one or two statements; deletes hit rows that nobody else is deleting."""
        write_id = len(self.writer) + 1
        self.writer[write_id] = txn_id
        self.inserted[write_id], self.deleted[write_id] = [], []
        if overwrite:
            self.deleted[write_id] = sorted(self.snapshot().promised)
            self.directories[base_name(write_id)] = self._insert(write_id, 0, inserts)
            return write_id
        if deletes:
            taken = {key for other, keys in self.deleted.items() if self._is(other, "open") for key in keys}
            targets = sorted(self.snapshot().promised - taken)[:deletes]
            events = [RowEvent(DELETE, *key, write_id, None) for key in targets]
            self.directories[delete_delta_name(write_id, write_id, 0)] = events
            self.deleted[write_id] = targets
        if inserts:
            statement_id = 1 if deletes and inserts % 2 else 0
            events = self._insert(write_id, statement_id, inserts)
            self.directories[delta_name(write_id, write_id, statement_id)] = events
        return write_id

    def _insert(self, write_id: int, statement_id: int, count: int) -> list[RowEvent]:
        bucket = encode_bucket(0, statement_id)
        events = [RowEvent(INSERT, write_id, bucket, row_id, write_id, "row") for row_id in range(count)]
        self.inserted[write_id] += [event.key for event in events]
        return events

    def snapshot(self) -> Snapshot:
        """What a reader without a transaction of its own takes now."""
        txns = ValidTxnList(len(self.fate), self._txns("open"), self._txns("aborted"))
        open_ids, aborted_ids = (
            tuple(write_id for write_id in self.writer if self._is(write_id, fate)) for fate in ("open", "aborted")
        )
        write_ids = ValidWriteIdList("db.t", len(self.writer), open_ids, aborted_ids)
        valid = [write_id for write_id in self.writer if self._is(write_id, "committed")]
        gone = {key for write_id in valid for key in self.deleted[write_id]}
        rows = {key for write_id in valid for key in self.inserted[write_id]}
        return Snapshot(write_ids, txns, frozenset(rows - gone))

    def state(self, snapshot: Snapshot) -> DirectoryState:
        entries = [(f"{name}/bucket_00000", len(events)) for name, events in self.directories.items()]
        return directory_state(entries, snapshot.write_ids, snapshot.txns)

    def read(self, snapshot: Snapshot) -> frozenset[RowId]:
        """The rows that the directories show to a snapshot."""
        state = self.state(snapshot)
        rows = visible_rows(
            self.events(state.insert_deltas),
            self.events(state.delete_deltas),
            snapshot.write_ids,
            self.events((state.base,) if state.base else ()),
        )
        return frozenset(event.key for event in rows)

    def events(self, directories: tuple[DataDirectory, ...]) -> list[RowEvent]:
        return [event for directory in directories for event in self.directories[directory.name]]

    def compact(self, major: bool) -> Compaction | None:
        """Merge what is resolved; None if there are not two directories to merge."""
        now = self.snapshot()
        seen = Snapshot(now.write_ids.for_compactor(), now.txns, now.promised)
        state = self.state(seen)
        deltas = state.insert_deltas + state.delete_deltas
        if len({d.directory.max_write_id for d in deltas}) < 2:
            return None
        txn_id = self.open_txn()
        lowest = min(d.directory.min_write_id for d in deltas)
        highest = max(d.directory.max_write_id for d in deltas)
        inserts = [event for event in self.events(state.insert_deltas) if seen.write_ids.is_valid(event[4])]
        deletes = [event for event in self.events(state.delete_deltas) if seen.write_ids.is_valid(event[4])]
        if major:
            base = self.events((state.base,) if state.base else ())
            rows = visible_rows(inserts, deletes, seen.write_ids, base)
            return Compaction(txn_id, {base_name(highest, txn_id): rows})
        output: dict[str, list[RowEvent]] = {}
        if state.insert_deltas:
            output[delta_name(lowest, highest, None, txn_id)] = sorted(inserts)
        if state.delete_deltas:
            output[delete_delta_name(lowest, highest, None, txn_id)] = sorted(deletes)
        return Compaction(txn_id, output)

    def _txns(self, fate: str) -> tuple[int, ...]:
        return tuple(txn_id for txn_id, its in self.fate.items() if its == fate)

    def _is(self, write_id: int, fate: str) -> bool:
        return self.fate[self.writer[write_id]] == fate
