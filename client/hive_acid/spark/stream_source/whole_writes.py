"""The directories of an insert-only table that have the rows of some writes, and of no others.

Its rows do not tell of which write they are, but its directories do: each write has one, and so has an overwrite, a
base. What a compaction has put together is read if all of it is wanted.
"""

from __future__ import annotations

from dataclasses import replace

from hive_acid.errors import UnsupportedTableError
from hive_acid.filesystem import files
from hive_acid.format.names import DirectoryKind
from hive_acid.format.state import DataDirectory
from hive_acid.spark.read.listing import PartitionState, TableState
from hive_acid.spark.stream_source.position import Fresh, Position
from hive_acid.spark.stream_source.start import OPTION

_FIRST = 1


def whole_writes(state: TableState, fresh: Fresh) -> TableState:
    """The state with what `fresh` writes have put there alone.

    Raises UnsupportedTableError for a directory in which a compaction has put such rows together with others.
    """
    visible = Fresh(Position.of(state.table.id, state.write_ids, _FIRST).seen)
    others = visible.less(fresh)

    def chosen(partition: PartitionState) -> PartitionState:
        data = [one for one in partition.state.data if one.files and fresh.any_in(*writes_of(one))]
        for one in data:
            if others.any_in(*writes_of(one)):
                raise _mixed(state, partition, one)
        return partition.with_data(data.__contains__, originals=True)

    narrowed = map(chosen, state.partitions)
    return replace(state, partitions=tuple(one for one in narrowed if one.data_files))


def writes_of(found: DataDirectory) -> tuple[int, int]:
    """The first and the last write whose rows a directory may have."""
    last = found.directory.max_write_id
    if found.directory.kind is DirectoryKind.BASE:
        return (_FIRST if found.is_compacted else last), last
    return found.directory.min_write_id, last


def _mixed(state: TableState, partition: PartitionState, found: DataDirectory) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"{state.table.full_name}: a compaction has put rows that the stream has still to read, and others, together "
        f"in {files.join(partition.location, found.name)}, while no query of the stream was running: of an insert-only "
        "table nobody can tell them apart. Begin a stream behind them, with another checkpoint and "
        f"{OPTION} {found.directory.max_write_id + 1}"
    )
