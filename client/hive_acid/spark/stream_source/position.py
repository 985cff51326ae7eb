"""Where a stream is in a table: the writes whose rows have come, as they stand in its checkpoint; pure.

A position is a snapshot's write ids, not a number: a write that began early may commit late, and its rows are new then.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

from hive_acid.errors import FormatError
from hive_acid.format.snapshot import ValidWriteIdList

Runs = tuple[tuple[int, int], ...]
"""Ascending ids as their runs, each by its first and its last."""

EARLIEST = 0
"""The write id of rows that were there before a table was transactional."""


@dataclass(frozen=True, slots=True)
class Position:
    """The writes of a table up to `high`, but those `without`, which were open or aborted.

    `since` is the first write id of which rows are wanted at all.
    """

    table_id: int
    high: int
    without: Runs = ()
    since: int = EARLIEST

    @classmethod
    def of(cls, table_id: int, write_ids: ValidWriteIdList, since: int) -> Self:
        """That of a snapshot. `high` is of a write that it sees, so that one that only begins is no other position."""
        high = write_ids.high_water_mark
        invalid = sorted(one for one in {*write_ids.open_ids, *write_ids.aborted_ids} if one <= high)
        while invalid and invalid[-1] == high:
            high = invalid.pop() - 1
        return cls(table_id, high, _runs(one for one in invalid if one >= since), since)

    def beginning_at(self, since: int) -> Self:
        """Of one that wants all rows, the same where those of writes before `since` are not wanted."""
        return replace(self, without=_less(self.without, ((EARLIEST, since - 1),)), since=since)

    def as_far_as(self, write_id: int, start: Self | None) -> Self:
        """The position behind `start` of the writes that this one sees up to `write_id`, and of no later one."""
        some = _less(Fresh.between(start, self).runs, ((write_id + 1, max(write_id, self.high) + 1),))
        seen = _joined([*(() if start is None else start.seen), *some])
        high = seen[-1][1] if seen else self.since - 1
        return replace(self, high=high, without=_less(((self.since, high),), seen))

    @classmethod
    def parse(cls, text: str) -> Self:
        """That of a checkpoint. Raises FormatError for what no stream of a table has written."""
        try:
            found = json.loads(text)
            without = tuple((int(first), int(last)) for first, last in found["without"])
            return cls(int(found["table"]), int(found["writeId"]), without, int(found["since"]))
        except (ValueError, TypeError, KeyError) as error:
            raise FormatError(
                f"the checkpoint is not that of a stream of a table of the metastore: its offset is {text[:200]}"
            ) from error

    def __str__(self) -> str:
        found = {"table": self.table_id, "writeId": self.high, "without": self.without, "since": self.since}
        return json.dumps(found)

    def is_within(self, other: Self) -> bool:
        """Whether all writes of which rows have come have come there as well, or are not wanted there."""
        return not Fresh.between(other, self).runs

    @property
    def seen(self) -> Runs:
        """The ids of the writes of which rows have come, as runs."""
        return _less(((self.since, self.high),) if self.high >= self.since else (), self.without)


@dataclass(frozen=True, slots=True)
class Fresh:
    """The ids of writes that are new in one position, compared with another."""

    runs: Runs

    @classmethod
    def between(cls, start: Position | None, end: Position) -> Self:
        """Those that `end` sees and `start` does not; of no start, all of them."""
        if start is None:
            return cls(end.seen)
        before = ((EARLIEST, start.since - 1),) if start.since > EARLIEST else ()
        return cls(_less(end.seen, (*before, *start.seen)))

    def less(self, other: Self) -> Self:
        """Those that are not among the others."""
        return replace(self, runs=_less(self.runs, other.runs))

    @property
    def has_originals(self) -> bool:
        """Whether rows of before any write are among them."""
        return self.any_in(EARLIEST, EARLIEST)

    def any_in(self, lowest: int, highest: int) -> bool:
        """Whether some id of ``lowest..highest`` is one of them."""
        at = bisect_left(self.runs, lowest, key=lambda run: run[1])
        return at < len(self.runs) and self.runs[at][0] <= highest

    def condition(self, write_id: str) -> str:
        """That the column `write_id` is one of them, as SQL."""
        single = [str(first) for first, last in self.runs if first == last]
        spans = [f"{write_id} BETWEEN {first} AND {last}" for first, last in self.runs if first != last]
        if single:
            spans.append(f"{write_id} IN ({', '.join(single)})")
        return f"({' OR '.join(spans)})" if spans else "false"


def _runs(ids: Iterable[int]) -> Runs:
    """Ascending ids as runs."""
    runs: list[tuple[int, int]] = []
    for one in ids:
        if runs and runs[-1][1] == one - 1:
            runs[-1] = runs[-1][0], one
        else:
            runs.append((one, one))
    return tuple(runs)


def _joined(runs: Iterable[tuple[int, int]]) -> Runs:
    """The ids of all `runs`."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(runs):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], last)
        else:
            found.append((first, last))
    return tuple(found)


def _less(runs: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]) -> Runs:
    """The ids of `runs` that are none of `others`."""
    left: list[tuple[int, int]] = []
    at = 0
    for begin, last in runs:
        first = begin
        while at < len(others) and others[at][1] < first:
            at += 1
        of = at
        while of < len(others) and others[of][0] <= last and first <= last:
            if others[of][0] > first:
                left.append((first, others[of][0] - 1))
            first = max(first, others[of][1] + 1)
            of += 1
        if first <= last:
            left.append((first, last))
    return tuple(left)
