"""Between which values the columns of a table are, told by the tails of its files, whatever is deleted of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from hive_acid.filesystem.footers import SHARED
from hive_acid.spark.conditions.arithmetic import Span
from hive_acid.spark.read.listing import TableState
from hive_acid.spark.read.skipping import tails_of
from hive_acid.spark.read.totals.counting import CountedFile, has_tails, paths_of
from hive_acid.spark.read.totals.extremes import told_of


def spans_of(state: TableState) -> Callable[[str], Span | None]:
    """The least and the greatest value of a column of whole numbers in all rows of all files; None if it is not told.

    Rows that are deleted count, and those that the snapshot does not see. Nothing is opened before somebody asks. Of
    columns of other types nothing is told.
    """
    files = cache(lambda: _files(state))

    def span(column: str) -> Span | None:
        found = files()
        if found is None:
            return None
        told = list(told_of(state.table, column, found))
        ends = [end for of in told for end in (of.minimum, of.maximum) if end is not None]
        if not all(of.is_known for of in told) or not all(type(end) is int for end in ends):
            return None
        return (min(ends), max(ends)) if ends else (0, 0)

    return span


def _files(state: TableState) -> list[CountedFile] | None:
    """The tails of all data files; None if a file has none that tells, or too many would have to be opened."""
    if not state.skipping or not state.table.is_full_acid or not all(map(has_tails, state.partitions)):
        return None
    paths = [(partition, path) for partition in state.partitions for path in paths_of(partition)]
    if SHARED.missing([path for _, path in paths]) > state.limits.skipping_files:
        return None
    tails = tails_of([path for _, path in paths])
    if tails is None:
        return None
    return [CountedFile(partition, tail, 0) for (partition, _), tail in zip(paths, tails, strict=True) if tail.rows]
