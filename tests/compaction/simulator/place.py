"""A table or partition of a simulation: files of which nothing is there but their names, rows and bytes.

What readers see, what is merged and how the results are called, the product says (`metastore.compaction.plan`,
`metastore.compaction.worker.rounds`); which files are copied, and who writes the others, too
(`hive_acid.spark.plans.compaction_plan`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hive_acid.filesystem.files import FileEntry
from hive_acid.format.names import base_name, bucket_file_name, delete_delta_name, delta_name, parse_bucket_file
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.format.state import DataDirectory, DirectoryState
from hive_acid.ids import TxnId, WriteId
from hive_acid.spark.limits import DEFAULT
from hive_acid.spark.plans.compaction_plan import MergeFacts, is_taken_over, stripes_stay, why_not_by_arrow
from metastore.compaction.plan import FULL_ACID, CompactionInput, CompactionPlan, compaction_input, plan_compaction
from metastore.compaction.states import CompactionType
from metastore.compaction.worker.rounds import next_round
from tests.compaction.simulator.costs import MB, Costs

_FILE_BYTES = 3_000
"""What a file has besides its rows: tail, statistics and indexes."""
_EVENT_BYTES = 2
_STRIPE_BYTES = 64 * MB
_MOST_DELTAS = 500
_NONE = WriteId(0)


@dataclass(frozen=True, slots=True)
class File:
    """A file with rows; `deleted` are the delete events that name some of these, `is_of_cpp` that pyarrow wrote it."""

    rows: int
    size: int
    stripes: int
    is_of_cpp: bool
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """What a compaction took, and what it wrote."""

    cpu_s: float
    written_bytes: int
    kind: CompactionType


@dataclass
class WriteIds:
    """Those of a table, which all of its places share."""

    last: int = 0

    def next(self) -> int:
        """Allocate one."""
        self.last += 1
        return self.last


@dataclass
class Place:
    """One directory; `row_bytes` is what a row takes in a file, and write ids are those of its table."""

    row_bytes: int
    write_ids: WriteIds
    files: dict[str, File] = field(default_factory=dict)
    deletes: dict[str, int] = field(default_factory=dict)
    """Delete events by the path of their file."""
    written_bytes: int = 0
    """By those who write, not by compactions."""
    last_txn_id: int = 0
    rows: int = 0
    """Inserted, less deleted: what a reader must see."""

    # --- writing ---------------------------------------------------------------------------------

    def load(self, rows: int, files: int) -> None:
        """The base that is there in the beginning."""
        self._add(base_name(self.write_ids.next()), rows, files, by_cpp=False)

    def insert(self, rows: int, files: int = 1, *, by_cpp: bool = False) -> None:
        """One statement that writes so many rows into so many buckets."""
        write_id = self.write_ids.next()
        self._add(delta_name(write_id, write_id, 0), rows, files, by_cpp=by_cpp)

    def delete(self, rows: int, newest: float = 1.0) -> None:
        """Delete rows evenly out of the newest part of all rows."""
        write_id = self.write_ids.next()
        self._delete(write_id, rows, newest)

    def update(self, rows: int, newest: float = 1.0, more: int = 0) -> None:
        """Change rows evenly out of the newest part of all rows, and insert some more."""
        write_id = self.write_ids.next()
        changed = self._delete(write_id, rows, newest)
        if changed + more:
            self._add(delta_name(write_id, write_id, 0), changed + more, 1, by_cpp=False)

    def _add(self, directory: str, rows: int, files: int, *, by_cpp: bool) -> None:
        for bucket, of_bucket in enumerate(_spread(rows, [1] * files)):
            file = self._file(of_bucket, by_cpp=by_cpp)
            self.files[f"{directory}/{bucket_file_name(bucket)}"] = file
            self.written_bytes += file.size
        self.rows += rows

    def _delete(self, write_id: int, rows: int, newest: float) -> int:
        """Delete events of a write; how many there are."""
        ordered = sorted(self.files, key=_first_write_id, reverse=True)
        left = math.ceil(newest * self.rows)
        reached: list[str] = []
        for path in ordered:
            reached.append(path)
            left -= self.files[path].rows - self.files[path].deleted
            if left <= 0:
                break
        room = [self.files[path].rows - self.files[path].deleted for path in reached]
        by_bucket: dict[int, int] = {}
        gone = _spread(min(rows, sum(room)), room)
        for path, number in zip(reached, gone, strict=True):
            if number:
                self.files[path] = replace(self.files[path], deleted=self.files[path].deleted + number)
                by_bucket[_bucket(path)] = by_bucket.get(_bucket(path), 0) + number
        for bucket, number in sorted(by_bucket.items()):
            self.deletes[f"{delete_delta_name(write_id, write_id, 0)}/{bucket_file_name(bucket)}"] = number
            self.written_bytes += _delete_file_bytes(number)
        self.rows -= sum(gone)
        return sum(gone)

    def _file(self, rows: int, *, by_cpp: bool) -> File:
        size = _FILE_BYTES + rows * self.row_bytes
        return File(rows, size, math.ceil(size / _STRIPE_BYTES), by_cpp)

    # --- reading ---------------------------------------------------------------------------------

    def look(self, up_to: WriteId | None = None) -> CompactionInput:
        """What a compaction may merge of it."""
        entries = [FileEntry(path, file.size) for path, file in self.files.items()]
        entries += [FileEntry(path, _delete_file_bytes(events)) for path, events in self.deletes.items()]
        write_ids = ValidWriteIdList("db.t", self.write_ids.last)
        return compaction_input(entries, write_ids, ValidTxnList(self.last_txn_id), lambda _: b"", up_to)

    def state(self) -> DirectoryState:
        """What a reader sees of it, which is all that is there: replaced files are removed at once."""
        return self.look().state

    def reading_s(self, costs: Costs, part: float = 1.0) -> float:
        """What it takes to read some part of the columns, without the planning of the statement."""
        size = sum(file.size for file in self.files.values())
        touched = sum(file.size for file in self.files.values() if file.deleted)
        return (
            (costs.read_file + costs.read_columns_of_file * part) * len(self.files)
            + (costs.read_mb * part * size + costs.touched_mb * touched) / MB
            + costs.read_delete_file * len(self.deletes)
            + costs.read_delete_event * sum(self.deletes.values())
        )

    def least_s(self, costs: Costs, part: float = 1.0) -> float:
        """What it would take if all rows were in a base, in one file for each bucket."""
        size = self.rows * self.row_bytes
        buckets = {_bucket(path) for path in self.files}
        return (costs.read_file + costs.read_columns_of_file * part) * len(buckets) + costs.read_mb * part * size / MB

    # --- compacting ------------------------------------------------------------------------------

    def compact(self, kind: CompactionType, costs: Costs, after: WriteId = _NONE) -> Work | None:
        """Merge what a Worker would merge now; None if there is nothing to do."""
        self.last_txn_id += 1
        found = next_round(self.look, kind, FULL_ACID, after=after, at_most=_MOST_DELTAS)
        plan = plan_compaction(found.found, found.kind, TxnId(self.last_txn_id))
        if plan is None:
            return None
        is_major = plan.kind is CompactionType.MAJOR
        merged, cpu_s = self._merged_rows(plan, costs, is_major=is_major)
        events = self._merged_deletes(plan.deletes)
        work = Work(
            cpu_s + costs.job + costs.merged_file * plan.input_files + costs.merged_delete_event * sum(events.values()),
            sum(file.size for file in merged.values())
            + (0 if is_major else sum(map(_delete_file_bytes, events.values()))),
            plan.kind,
        )
        for directory in (*plan.data, *plan.deletes):
            for file in directory.files:
                self.files.pop(file.path, None)
                self.deletes.pop(file.path, None)
        if plan.insert_output:
            self.files |= {f"{plan.insert_output}/{bucket_file_name(b)}": file for b, file in merged.items()}
        if plan.delete_output:
            self.deletes |= {f"{plan.delete_output}/{bucket_file_name(b)}": number for b, number in events.items()}
        return work

    def _merged_rows(self, plan: CompactionPlan, costs: Costs, *, is_major: bool) -> tuple[dict[int, File], float]:
        """The new files by bucket, and what it took to make them."""
        by_bucket: dict[int, list[File]] = {}
        for directory in plan.data:
            for file in directory.files:
                by_bucket.setdefault(_bucket(file.path), []).append(self.files[file.path])
        kept = {bucket: _kept(found, is_major=is_major) for bucket, found in by_bucket.items()}
        written = {bucket: [file for file in found if file not in kept[bucket]] for bucket, found in by_bucket.items()}
        facts = MergeFacts(0, 0, plain=True, written_bytes=sum(_size(found) for found in written.values()))
        fits_arrow = why_not_by_arrow(facts, DEFAULT) is None
        merged: dict[int, File] = {}
        cpu_s = 0.0
        by_spark = False
        for bucket, found in by_bucket.items():
            by_arrow = fits_arrow and all(file.is_of_cpp for file in kept[bucket])
            if written[bucket] and any(file.is_of_cpp != by_arrow for file in kept[bucket]):
                kept[bucket], written[bucket] = [], found  # files of two writers are not joined
            rows = sum(file.rows - (file.deleted if is_major else 0) for file in written[bucket])
            new = self._file(rows, by_cpp=by_arrow) if written[bucket] else File(0, 0, 0, kept[bucket][0].is_of_cpp)
            each = costs.written_mb_by_arrow if by_arrow else costs.written_mb_by_spark
            by_spark = by_spark or (bool(written[bucket]) and not by_arrow)
            cpu_s += (each * _size(written[bucket]) + costs.copied_mb * _size(kept[bucket])) / MB
            merged[bucket] = File(
                rows + sum(file.rows for file in kept[bucket]),
                new.size + _size(kept[bucket]),
                new.stripes + sum(file.stripes for file in kept[bucket]),
                new.is_of_cpp,
                0 if is_major else sum(file.deleted for file in found),
            )
        if by_spark:
            cpu_s += costs.spark_job
        return merged, cpu_s

    def _merged_deletes(self, deltas: Iterable[DataDirectory]) -> Mapping[int, int]:
        events: dict[int, int] = {}
        for directory in deltas:
            for file in directory.files:
                events[_bucket(file.path)] = events.get(_bucket(file.path), 0) + self.deletes[file.path]
        return events

    def check(self) -> None:
        """That no row was lost, and no delete event."""
        assert sum(file.rows - file.deleted for file in self.files.values()) == self.rows
        assert sum(file.deleted for file in self.files.values()) == sum(self.deletes.values())


def _kept(found: Sequence[File], *, is_major: bool) -> list[File]:
    """The files of a bucket that are copied."""
    stay = [file for file in found if stripes_stay(file.stripes, file.size, DEFAULT)]
    if is_major:
        stay = [file for file in stay if not file.deleted]
    cpp = _size(file for file in stay if file.is_of_cpp)
    java = _size(stay) - cpp
    if java and (cpp or len(stay) < len(found)) and is_taken_over(_size(found), DEFAULT):
        return []  # all of it is written by pyarrow, and joined from then on
    return [file for file in stay if file.is_of_cpp == (cpp > java)]


def _size(files: Iterable[File]) -> int:
    return sum(file.size for file in files)


def _delete_file_bytes(events: int) -> int:
    return _FILE_BYTES // 2 + _EVENT_BYTES * events


def _bucket(path: str) -> int:
    found = parse_bucket_file(path.rpartition("/")[2])
    assert found is not None
    return found


def _first_write_id(path: str) -> tuple[int, str]:
    name = path.partition("/")[0].removeprefix("delta_").removeprefix("base_")
    return int(name.partition("_")[0]), path


def _spread(number: int, weights: Sequence[int]) -> list[int]:
    """A number divided by weights into whole parts, which together are the number; none is more than its weight if
    the number is not more than all of them.
    """
    total = sum(weights)
    ends: list[int] = []
    so_far = 0
    for weight in weights:
        so_far += weight
        ends.append(number * so_far // total if total else 0)
    return [end - begin for begin, end in zip([0, *ends[:-1]], ends, strict=True)]
