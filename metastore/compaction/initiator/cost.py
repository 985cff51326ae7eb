"""The policy `cost`: a compaction is made when it pays for itself (metastore.compactor.policy).

Everything is in bytes read: what costs as much as reading so many bytes.

    saved     of each reading: `OPEN_COST` for every file that it need not open any more, and the deletes that it need
              not read and join any more, three times their bytes, which only a major compaction takes away
    rewritten `JOB_COST` for the start of the job; the rows that it reads and writes: those of the insert deltas, and
              for a major one of the base
    score     scans · saved / rewritten: at 1 the compaction has paid for itself within as many readings (scans)

Deletes are left out of what is rewritten, though a minor compaction writes them too: they are small beside the rows,
and so more of them never make a compaction less urgent. A huge base is not rewritten for a tiny delta: its bytes stand
below the line, and the minor compaction wins. A major compaction that pays for itself is preferred to a minor one that
pays better: the next ones have less to do.

How often a table will be read is not known. What is known is how many readers it has: open transactions that hold a
read lock or a lease on it, sampled in each run of the Initiator and averaged (`sample_readers`). So `scans` is
``metastore.compactor.policy.cost.scans`` times (1 + readers).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from metastore.compaction.file_totals import FileTotals
from metastore.compaction.states import CompactionType

OPEN_COST = 4 << 20
"""Bytes that could be read in the time in which a file is opened: what Spark reckons with, too."""
JOB_COST = 256 << 20
"""Bytes that could be read in the time that the start of a job and the commit of its transaction take."""
DELETES_FACTOR = 3
"""Deletes are read, spread among the tasks and joined with the rows."""
_MOST_HEAD_START_S = 600
_HEAD_START_S = 60


@dataclass(frozen=True, slots=True)
class Cost:
    """Whether a compaction pays, which, and in which ratio: `score` is the better one of both types'."""

    type: CompactionType | None
    score: float
    reason: str

    @classmethod
    def of(cls, place: FileTotals, scans: float) -> Cost:
        """Weigh a table or partition that is supposed to be read so many times before it would be compacted again."""
        minor, major = minor_score(place, scans), major_score(place, scans)
        kind = CompactionType.MAJOR if major >= 1 else CompactionType.MINOR if minor >= 1 else None
        figures = (
            f"{place.deltas} deltas of {place.delta_bytes} bytes in {place.insert_files + place.delete_files} files, "
            f"{place.delete_bytes} bytes of them deletes, on a base of {place.base_bytes}: over {scans:.3g} readings "
            f"a major compaction pays {major:.3g} times, a minor one {minor:.3g} times (1 is enough)"
        )
        return cls(kind, max(minor, major), figures)


def major_score(place: FileTotals, scans: float) -> float:
    """How often a major compaction pays for itself; 0 without deltas."""
    kept = 0 if place.base_bytes else place.merged_files
    files = place.insert_files + place.delete_files - min(kept, place.insert_files)
    saved = OPEN_COST * files + DELETES_FACTOR * place.delete_bytes
    return scans * saved / (JOB_COST + 2 * (place.base_bytes + place.insert_bytes))


def minor_score(place: FileTotals, scans: float) -> float:
    """How often a minor compaction pays for itself; 0 where there is nothing to merge."""
    if not place.can_be_minor:
        return 0.0
    files = place.insert_files + place.delete_files - place.merged_files - place.merged_delete_files
    return scans * OPEN_COST * files / (JOB_COST + 2 * place.insert_bytes)


def head_start_s(score: float) -> int:
    """By how many seconds a compaction is preferred: a minute for each doubling of what it pays, at most ten."""
    return min(_MOST_HEAD_START_S, round(_HEAD_START_S * math.log2(max(1.0, score))))
