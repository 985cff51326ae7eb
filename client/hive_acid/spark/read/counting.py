"""How many rows a snapshot has, told by the tails of its files alone."""

from __future__ import annotations

from hive_acid.filesystem import files
from hive_acid.filesystem.footers import SHARED, DataFilePath
from hive_acid.format.snapshot import RangeValidity
from hive_acid.spark.read.listing import PartitionState, TableState, is_raw
from hive_acid.spark.read.old_shapes import may_hold_updates
from hive_acid.spark.read.skipping import tails_of


def known_rows(state: TableState) -> int | None:
    """The number of rows; None where some may be deleted, are not all visible, or are not counted by tails."""
    if not state.skipping or not state.table.is_full_acid or not all(map(_is_as_written, state.partitions)):
        return None
    paths = [
        DataFilePath(files.join(partition.location, file.path), file.size, file.modified_ms)
        for partition in state.partitions
        for directory in partition.state.data
        for file in directory.files
        if file.size
    ]
    if SHARED.missing(paths) > state.limits.counted_files:
        return None
    tails = tails_of(paths)
    return None if tails is None else sum(tail.rows for tail in tails)


def _is_as_written(partition: PartitionState) -> bool:
    """Whether each event in the files is a row that is seen."""
    state = partition.state
    return (
        not state.delete_deltas
        and not state.originals
        and not any(map(may_hold_updates, state.insert_deltas))
        and all(
            directory.validity is RangeValidity.ALL
            and not directory.unfinished
            and not any(map(is_raw, directory.files))
            for directory in state.data
        )
    )
