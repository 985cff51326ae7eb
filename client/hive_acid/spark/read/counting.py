"""How many rows a snapshot has, told by the tails of its files alone."""

from __future__ import annotations

from functools import partial

from hive_acid.filesystem import files
from hive_acid.filesystem.footers import SHARED, DataFilePath
from hive_acid.format.snapshot import RangeValidity
from hive_acid.spark.plans.choice import Choice
from hive_acid.spark.plans.read_plan import UNKNOWN, Counting, CountPlan, counting_by
from hive_acid.spark.plans.telling import tell
from hive_acid.spark.read.legacy.pre_hive_3_deltas import may_hold_updates
from hive_acid.spark.read.listing import PartitionState, TableState, is_raw
from hive_acid.spark.read.skipping import tails_of


def known_rows(state: TableState) -> int | None:
    """The number of rows; None where some may be deleted, are not all visible, or are not counted by tails."""
    rows, counting = _counted(state)
    tell(CountPlan(state.table.full_name, counting))
    return rows


def _counted(state: TableState) -> tuple[int | None, Choice[Counting]]:
    written = state.skipping and state.table.is_full_acid and all(map(_is_as_written, state.partitions))
    by = partial(counting_by, written=written, limits=state.limits)
    counting = by(unopened=None)
    if counting.way is not Counting.FOOTERS:
        return None, counting
    paths = [
        DataFilePath(files.join(partition.location, file.path), file.size, file.modified_ms)
        for partition in state.partitions
        for directory in partition.state.data
        for file in directory.files
        if file.size
    ]
    counting = by(unopened=SHARED.missing(paths))
    if counting.way is not Counting.FOOTERS:
        return None, counting
    tails = tails_of(paths)
    return (None, by(unopened=UNKNOWN)) if tails is None else (sum(tail.rows for tail in tails), counting)


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
