"""The policy `cost`: a compaction is made when it pays for itself (metastore.compactor.policy).

Everything is in milliseconds of a processor, as measured (docs/benchmarks.md, Compaction):

    saved     of each reading: files that it need not open any more; for a major compaction also delete events that it
              need not read, the bytes of rows that are gone, and rows that it need not look up any more
    cost      the job; each file that it opens; the bytes that it reads and writes, or copies: large files are copied,
              in a major compaction those of buckets that no delete file names
    pays      readings · saved / cost: at 1 the compaction has paid for itself

How often a table will be read is not known. It is supposed to be read `scans` times in the time of ten writes, more
with readers that are seen to hold it (`sample_readers`). For a minor compaction the writes since the last compaction
count; for a major one those since the base, or as many as the base has grown by five hundredths of itself: a table is
not read less for being written by few large loads. Half of them, since what a compaction saves grows from nothing; but
that rows have to be looked up begins with the first delete, and again with the next one.

A minor compaction leaves older deltas alone which would cost more than all newer ones together: they were merged
before, or are large. So each row is written a number of times that grows with the logarithm of the table's size.

Whoever comes unexpectedly is not to find more small deltas than by Hive's thresholds: more than
``hive.compactor.delta.num.threshold`` that a minor compaction would merge are merged, whether it pays or not.
`tests.compaction.simulator` tells what that comes to.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hive_acid.format.state import DataFile
from hive_acid.ids import WriteId
from metastore.compaction.file_totals import DeltaGroup, FileTotals
from metastore.compaction.plan import BEGINNING
from metastore.compaction.states import CompactionType

READ_FILE_MS = 6.0
READ_DELETE_FILE_MS = 3.0
READ_DELETES_MS_PER_MB = 170.0
"""A delete event takes some two bytes in its file, and 0.33 µs to be read."""
READ_MS_PER_MB = 17.0
LOOKED_UP_MS_PER_MB = 0.75
"""Rows of files that deletes have reached are looked up: those of half of a bucket's bytes, for 1.5 ms each MB."""
ROW_BYTES_PER_DELETED_BYTE = 10
"""A row has at least so many times the bytes of a delete event."""
DELETE_FILE_BYTES = 1500
"""What a delete file has besides its events."""
JOB_MS = 150.0
MERGED_FILE_MS = 5.0
WRITTEN_MS_PER_MB = 40.0
WRITTEN_BY_SPARK_MS_PER_MB = 96.0
BY_SPARK_BYTES = 512 << 20
"""More than this Spark reads and writes, not pyarrow."""
COPIED_MS_PER_MB = 2.0
COPIED_BYTES = 2 << 20
"""A file of so much has stripes large enough to be copied."""

_MB = 1 << 20
WRITES_OF_A_BASE = 500
"""Growing by so small a part of the base counts as a write."""
_WRITES = 10
"""In the time of so many writes a table is read as often as `scans` says."""
_MOST_HEAD_START_S = 600
_HEAD_START_S = 60


@dataclass(frozen=True, slots=True)
class Cost:
    """Whether a compaction pays, which, and in which ratio: `score` is the better one of both types'.

    A minor one merges the deltas beyond the write id `after`, `merges` of them; 0 if there are none to merge.
    """

    type: CompactionType | None
    score: float
    reason: str
    after: WriteId = BEGINNING
    merges: int = 0

    @classmethod
    def of(cls, place: FileTotals, scans: float) -> Cost:
        """Weigh a table or partition that is supposed to be read `scans` times in the time of ten writes."""
        new, since_base = writes(place)
        of_one = scans / _WRITES
        minor = _minor(place.groups, of_one * new / 2)
        major = _major(place)
        minor_ms = of_one * new / 2 * minor.saved_ms
        major_ms = of_one * (since_base / 2 * major.saved_ms + _writes_per_delete(place) * major.until_deleted_ms)
        minor_pays, major_pays = minor_ms / minor.cost_ms, (major_ms / major.cost_ms if new else 0.0)
        # What a major compaction does beyond a minor one has to pay as well.
        more_ms = major_ms - of_one * since_base / 2 * minor.saved_ms
        kind = None
        if major_pays >= 1 and (minor.deltas == 0 or more_ms >= major.cost_ms - minor.cost_ms):
            kind = CompactionType.MAJOR
        elif minor_pays >= 1:
            kind = CompactionType.MINOR
        beyond = f" of the {minor.deltas} beyond write id {minor.after}" if minor.after else ""
        figures = (
            f"{place.deltas} deltas of {place.delta_bytes} bytes, {place.delete_bytes} of them deletes, on a base of "
            f"{place.base_bytes}: over {of_one * since_base:.3g} readings a major compaction pays {major_pays:.3g} "
            f"times, over {of_one * new:.3g} a minor one{beyond} {minor_pays:.3g} times (1 is enough)"
        )
        return cls(kind, max(minor_pays, major_pays), figures, minor.after, minor.deltas)


def writes(place: FileTotals) -> tuple[int, float]:
    """How many writes have come since the last compaction, and how many count as having come since the base.

    What was merged meanwhile does not say how many writes it was: as many, for the write ids that it has, as came
    since.
    """
    if not place.groups:
        return 0, 0.0
    before = place.base_write_id or place.groups[0].first_write_id - 1
    merged = max((group.last_write_id for group in place.groups if group.is_merged), default=before)
    new = sum(group.first_write_id > merged for group in place.groups)
    if not new:
        return 0, 0.0
    # Half a write less, for what is looked at has just been written to.
    since_base = new + (new - 0.5) * (merged - before) / (place.groups[-1].last_write_id - merged)
    grown = WRITES_OF_A_BASE * place.delta_bytes / place.base_bytes if place.base_bytes else 0.0
    return new, max(since_base, grown)


def _writes_per_delete(place: FileTotals) -> float:
    """How many writes come until the next one that deletes, about."""
    deleting = sum(bool(group.deletes) for group in place.groups)
    return len(place.groups) / deleting if deleting else 0.0


def head_start_s(score: float) -> int:
    """By how many seconds a compaction is preferred: a minute for each doubling of what it pays, at most ten."""
    return min(_MOST_HEAD_START_S, round(_HEAD_START_S * math.log2(max(1.0, score))))


@dataclass(slots=True)
class _Weight:
    """What a compaction saves of each reading, and what it costs; `deltas` is 0 if there is nothing to merge.

    `until_deleted_ms` it saves only until somebody deletes a row again.
    """

    saved_ms: float = 0.0
    cost_ms: float = JOB_MS
    after: WriteId = BEGINNING
    deltas: int = 0
    until_deleted_ms: float = 0.0
    _buckets: set[int | None] = field(default_factory=set)
    _delete_buckets: set[int | None] = field(default_factory=set)

    def saves(self, group: DeltaGroup) -> float:
        """What it saves to merge a group with what is there: the files of buckets that have one."""
        more = sum(file.bucket in self._buckets for file in group.inserts)
        return READ_FILE_MS * more + READ_DELETE_FILE_MS * sum(
            file.bucket in self._delete_buckets for file in group.deletes
        )

    def add(self, group: DeltaGroup, cost_ms: float) -> None:
        """Merge a group, too."""
        self.saved_ms += self.saves(group)
        self.cost_ms += cost_ms
        self.deltas += group.deltas
        self._buckets |= {file.bucket for file in group.inserts}
        self._delete_buckets |= {file.bucket for file in group.deletes}


def _minor(groups: Sequence[DeltaGroup], readings: float) -> _Weight:
    """The minor compaction of the newest deltas, back to those that would cost too much."""
    weight = _Weight()
    taken: list[DeltaGroup] = []
    for group in reversed(groups):
        cost_ms = _merged_ms(group.inserts) + MERGED_FILE_MS * len(group.deletes)
        if taken and cost_ms > max(weight.cost_ms, readings * weight.saves(group)):
            weight.after = WriteId(group.last_write_id)
            break
        weight.add(group, cost_ms)
        taken.append(group)
    is_pair = sum(group.insert_deltas for group in taken) == sum(group.delete_deltas for group in taken) == 1
    return _Weight() if len(taken) < 2 or is_pair else weight


def _major(place: FileTotals) -> _Weight:
    """The major compaction."""
    inserts = [file for group in place.groups for file in group.inserts]
    deletes = [file for group in place.groups for file in group.deletes]
    reached = {file.bucket for file in deletes}
    data = [*place.base_files, *inserts]
    events = max(0, _bytes(deletes) - DELETE_FILE_BYTES * len(deletes)) / _MB
    updated = sum(_bytes(group.inserts) for group in place.groups if group.deletes) / _MB
    saved_ms = (
        READ_FILE_MS * (len(data) - len({file.bucket for file in data}))
        + READ_DELETE_FILE_MS * len(deletes)
        + READ_DELETES_MS_PER_MB * events
        + READ_MS_PER_MB * max(updated, ROW_BYTES_PER_DELETED_BYTE * events)
    )
    looked_up_ms = LOOKED_UP_MS_PER_MB * _bytes(file for file in data if file.bucket in reached) / _MB
    cost_ms = JOB_MS + MERGED_FILE_MS * len(deletes) + _merged_ms(data, reached)
    return _Weight(saved_ms, cost_ms, deltas=place.deltas, until_deleted_ms=looked_up_ms)


def _merged_ms(found: Iterable[DataFile], reached: Iterable[int | None] = ()) -> float:
    """What it takes to merge files; those of buckets that deletes have `reached` are written anew."""
    files, spared = list(found), set(reached)
    copied = [file for file in files if file.size >= COPIED_BYTES and file.bucket not in spared]
    written = _bytes(files) - _bytes(copied)
    each = WRITTEN_MS_PER_MB if written <= BY_SPARK_BYTES else WRITTEN_BY_SPARK_MS_PER_MB
    return MERGED_FILE_MS * len(files) + (each * written + COPIED_MS_PER_MB * _bytes(copied)) / _MB


def _bytes(files: Iterable[DataFile]) -> int:
    return sum(file.size for file in files)
