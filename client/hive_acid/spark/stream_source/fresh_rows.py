"""The rows of a table that some writes have put there, as one snapshot sees them: what a batch of a stream has.

A row belongs to the write that its id names, in whatever file it lies by now: compactions keep that. Files that can
have no such row are not read.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from hive_acid.errors import UnsupportedTableError
from hive_acid.format.names import Directory, DirectoryKind
from hive_acid.format.state import DataDirectory
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.read import insert_only
from hive_acid.spark.read.listing import PartitionState, TableState
from hive_acid.spark.read.table_frame import KEY_COLUMNS, has_pre_hive_3_updates, read_rows
from hive_acid.spark.stream_source.batch_limit import Written
from hive_acid.spark.stream_source.position import EARLIEST, Fresh
from hive_acid.spark.stream_source.whole_writes import whole_writes, writes_of
from hive_acid.spark.values.quoting import quoted


def fresh_rows(spark: SparkSession, state: TableState, fresh: Fresh) -> DataFrame:
    """The columns of a table, of the rows that `fresh` writes have put there and that are there still.

    Raises UnsupportedTableError for updates by Hive before version 3, which leave a row the id of its first write, and
    as `whole_writes`.
    """
    if not state.table.is_full_acid:
        return insert_only.read_table(spark, whole_writes(state, fresh))
    for partition in state.partitions:
        if has_pre_hive_3_updates(spark, partition):
            raise UnsupportedTableError(
                f"{partition.location} has updates by Hive before version 3, which do not tell when: let that Hive run "
                "a major compaction first, and begin the stream behind it (startingWriteId)"
            )
    narrowed = (_narrowed(partition, fresh) for partition in state.partitions)
    some = replace(state, partitions=tuple(partition for partition in narrowed if partition.data_files))
    rows = read_rows(spark, some, early=lambda rows: rows.where(fresh.condition(KEY_COLUMNS[0])))
    return projected(rows, *(quoted(column.name) for column in state.table.all_columns))


def written(state: TableState, fresh: Fresh) -> list[Written]:
    """The files in which rows of `fresh` writes may lie, by their writes."""
    if not state.table.is_full_acid:
        every = (of for partition in state.partitions for of in partition.state.data)
        return [Written(*writes_of(of), len(of.files), of.size) for of in every if of.files]
    found = []
    for partition in (_narrowed(one, fresh) for one in state.partitions):
        originals = partition.state.originals
        if originals:
            found.append(Written(EARLIEST, EARLIEST, len(originals), sum(file.size for file in originals)))
        found += [Written(*_writes_of(of.directory), len(of.files), of.size) for of in partition.state.data]
    return found


def _narrowed(partition: PartitionState, fresh: Fresh) -> PartitionState:
    """A partition without what has no row of `fresh` writes."""

    def may_have_some(found: DataDirectory) -> bool:
        return bool(found.files) and fresh.any_in(*_writes_of(found.directory))

    return partition.with_data(may_have_some, originals=fresh.has_originals)


def _writes_of(directory: Directory) -> tuple[int, int]:
    """The first and the last write whose rows a directory may have."""
    if directory.kind is DirectoryKind.BASE:
        return EARLIEST, max(EARLIEST, directory.max_write_id)
    return directory.min_write_id, directory.max_write_id
