"""Files of which a DELETE takes all rows: their tails tell which these are, so they need not be read.

So it is of a DELETE without a condition, of one by partition columns, and of one by what bounds in tails surely tell of
all rows of a file. What is left to be read are the other files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from hive_acid.catalog.table import Table
from hive_acid.filesystem.footers import SHARED, DataFilePath
from hive_acid.format.deletion_bitmap import DeletionBitmap, RowRange, RowSource, rows_within, runs_left
from hive_acid.format.orc.deletes import DeleteEvents
from hive_acid.format.orc.statistics import ColumnStatistics
from hive_acid.format.orc.tail import Tail
from hive_acid.format.state import DataFile
from hive_acid.spark.conditions.predicates import Predicate, may_match
from hive_acid.spark.read.deleted import deleted_rows
from hive_acid.spark.read.listing import PartitionState, TableState
from hive_acid.spark.read.skipping import of_value, row_range, statistics_of, tails_of, without_files
from hive_acid.spark.read.totals.counting import is_as_written
from hive_acid.write.staging import Values

_MOST_RUNS = 10_000
"""In more runs the rows that a file has left are looked for by Spark."""


class WholeFiles(NamedTuple):
    """The rows of `files` files, by the values of their partition, and the table without these files."""

    rows: Mapping[Values, list[RowRange]]
    files: int
    rest: TableState

    def events(self, deleted_by: int, others: Mapping[Values, DeleteEvents]) -> dict[Values, DeleteEvents]:
        """The events by which a write deletes these rows, and `others`."""
        found = dict(others)
        for values, runs in self.rows.items():
            beside = others[values].runs() if values in others else []
            if runs or beside:
                found[values] = DeleteEvents.of_runs([*runs, *beside], deleted_by)
        return found


def whole_files(state: TableState, refusal: Predicate | None) -> WholeFiles | None:
    """The files of which all rows are deleted where those that are not surely meet `refusal`; None for no file.

    Without a `refusal` all rows are deleted. Limits by which the client writes no deletes are for this as well.
    """
    if not state.skipping or not state.table.is_full_acid or state.limits.driver_deletes < 0:
        return None
    rows: dict[Values, list[RowRange]] = {}
    left: list[PartitionState] = []
    files = 0
    candidates = [partition for partition in state.partitions if is_as_written(partition)]
    paths = {partition.name: _paths(partition) for partition in candidates}
    every = [path for of in paths.values() for path in of.values()]
    if not every or SHARED.missing(every) > state.limits.counted_files:
        return None
    tails = tails_of(every)
    if tails is None:
        return None
    by_path = dict(zip(every, tails, strict=True))
    for partition in state.partitions:
        of = {file: by_path[path] for file, path in paths.get(partition.name, {}).items()}
        whole = _ranges(partition, of, state, refusal)
        if whole:
            values = partition.values
            if values in rows:
                return None  # two names of one value, which events do not tell apart
            rows[values] = [run for runs in whole.values() for run in runs]
            files += len(whole)
        left.append(without_files(partition, {(partition.name, file.path) for file in whole}))
    return WholeFiles(rows, files, replace(state, partitions=tuple(left))) if files else None


def _paths(partition: PartitionState) -> dict[DataFile, DataFilePath]:
    return {
        file: DataFilePath.of(partition.location, file)
        for directory in partition.state.data
        for file in directory.files
        if file.size
    }


def _ranges(
    partition: PartitionState, tails: Mapping[DataFile, Tail], state: TableState, refusal: Predicate | None
) -> dict[DataFile, list[RowRange]]:
    """The rows that are left of each file of which no row may meet `refusal`, and which tells its rows."""
    known = _statistics(partition, state.table)
    told = {
        file: found
        for file, tail in tails.items()
        if (found := row_range(tail)) is not None and (refusal is None or not may_match(refusal, known(tail)))
    }
    if not told:
        return {}
    gone: Mapping[RowSource, DeletionBitmap] = {}
    if deltas := partition.state.delete_deltas:
        deleted = deleted_rows([(partition, deltas)], state.write_ids, state.limits).rows
        if deleted is None:
            return {}
        (gone,) = deleted
    ranges = {}
    for file, (write_id, bucket, ids) in told.items():
        bitmap = gone.get((write_id, bucket), {})
        gone_here = rows_within(bitmap, ids[0], ids[-1])
        if min(gone_here, len(ids) - gone_here) < _MOST_RUNS:
            ranges[file] = [(write_id, bucket, left) for left in runs_left(bitmap, ids[0], ids[-1])]
    return ranges


def _statistics(partition: PartitionState, table: Table) -> Callable[[Tail], Callable[[str], ColumnStatistics | None]]:
    """What is known of the rows of a file in the partition, by its tail: of partition keys and of columns."""
    keys = {key.name: of_value(key, text) for key, text in zip(table.partition_keys, partition.values, strict=True)}

    def of(tail: Tail) -> Callable[[str], ColumnStatistics | None]:
        columns = statistics_of(table, tail)
        return lambda name: keys[name] if name in keys else columns(name)

    return of
