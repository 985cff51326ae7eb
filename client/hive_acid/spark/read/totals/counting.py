"""How many rows a snapshot has, told by the tails of its files, and by the delete events that the client knows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from hive_acid.filesystem.footers import SHARED, DataFilePath
from hive_acid.format.deletion_bitmap import DeletionBitmap, RowSource, rows_within
from hive_acid.format.orc.tail import Tail
from hive_acid.format.snapshot import RangeValidity
from hive_acid.spark.plans.choice import Choice
from hive_acid.spark.plans.read_plan import UNKNOWN, Counting, CountPlan, counting_by
from hive_acid.spark.plans.telling import tell
from hive_acid.spark.read.deleted import deleted_rows
from hive_acid.spark.read.legacy.pre_hive_3_deltas import may_hold_updates
from hive_acid.spark.read.listing import PartitionState, TableState, is_raw
from hive_acid.spark.read.skipping import row_range, tails_of


@dataclass(frozen=True, slots=True)
class CountedFile:
    """What is known of one data file: its partition, its tail, and how many of its rows are deleted."""

    partition: PartitionState
    tail: Tail
    deleted: int

    @property
    def rows(self) -> int:
        """How many of its rows the snapshot sees."""
        return self.tail.rows - self.deleted


def counted_files(state: TableState) -> list[CountedFile] | None:
    """The files of all rows; None where these are not all visible, or where tails and delete events do not tell."""
    files, counting = _counted(state)
    tell(CountPlan(state.table.full_name, counting))
    return files


def _counted(state: TableState) -> tuple[list[CountedFile] | None, Choice[Counting]]:
    written = state.skipping and state.table.is_full_acid and all(map(is_as_written, state.partitions))
    by = partial(counting_by, written=written, limits=state.limits)
    counting = by()
    if counting.way is not Counting.FOOTERS:
        return None, counting
    paths = [paths_of(partition) for partition in state.partitions]
    every = [path for of in paths for path in of]
    counting = by(unopened=SHARED.missing(every))
    if counting.way is not Counting.FOOTERS:
        return None, counting
    reached = [found for found in state.partitions if found.state.delete_deltas]
    gone: dict[str, Mapping[RowSource, DeletionBitmap]] = {}
    if reached:
        deletes = [(partition, partition.state.delete_deltas) for partition in reached]
        known, rows = deleted_rows(deletes, state.write_ids, state.limits)
        counting = by(unopened=0, deletes=known)
        if rows is None:
            return None, counting
        gone = {partition.name: of for partition, of in zip(reached, rows, strict=True)}
    tails = tails_of(every)
    if tails is None:
        return None, by(unopened=UNKNOWN)
    left, found = iter(tails), []
    for partition, of in zip(state.partitions, paths, strict=True):
        in_partition = [next(left) for _ in of]
        deleted = _deleted(in_partition, gone.get(partition.name, {}))
        if deleted is None:
            return None, by(unopened=0, numbered=False)
        found += [CountedFile(partition, tail, number) for tail, number in zip(in_partition, deleted, strict=True)]
    return found, counting


def paths_of(partition: PartitionState) -> list[DataFilePath]:
    """The data files of a partition that have rows."""
    return [
        DataFilePath.of(partition.location, file)
        for directory in partition.state.data
        for file in directory.files
        if file.size
    ]


def _deleted(tails: Sequence[Tail], deleted: Mapping[RowSource, DeletionBitmap]) -> list[int] | None:
    """How many rows of each file are deleted; None unless each one that is deleted is surely in one of them, once.

    A file of one write and bucket has all ids from its least to its greatest, if it has as many rows.
    """
    numbers = [0] * len(tails)
    spans: dict[RowSource, list[tuple[tuple[int, int], int]]] = defaultdict(list)
    for at, tail in enumerate(tails):
        if deleted and (found := row_range(tail)) is not None:
            spans[found[:2]].append(((found[2][0], found[2][-1]), at))
    for source, bitmap in deleted.items():
        ordered = sorted(spans[source])
        if any(before >= first for ((_, before), _), ((first, _), _) in pairwise(ordered)):
            return None
        for ids, at in ordered:
            numbers[at] += rows_within(bitmap, *ids)
        if sum(numbers[at] for _, at in ordered) != sum(bits.bit_count() for bits in bitmap.values()):
            return None
    return numbers


def is_as_written(partition: PartitionState) -> bool:
    """Whether each event in the data files is a row that is seen, or that a visible event deletes."""
    return has_tails(partition) and all(found.validity is RangeValidity.ALL for found in partition.state.data)


def has_tails(partition: PartitionState) -> bool:
    """Whether each data file is finished, and tells of its rows what the table's columns are in them."""
    state = partition.state
    return (
        not state.originals
        and not any(map(may_hold_updates, state.insert_deltas))
        and not any(found.unfinished or any(map(is_raw, found.files)) for found in state.data)
    )
