"""What delete files say of rows, read by pyarrow and kept: delete files of most tables are small, and never change.

Those whose tails say which rows they delete need not be read, however many rows these are.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from hive_acid.errors import FormatError
from hive_acid.filesystem import files, footers
from hive_acid.filesystem.footers import DataFilePath
from hive_acid.forks import renew_in_children
from hive_acid.format.deletion_bitmap import DeletionBitmap, RowSource, Run, bitmaps_of
from hive_acid.format.orc.deletes import told_runs
from hive_acid.format.rows import DELETE, ID_COLUMNS, KEY

if TYPE_CHECKING:
    import pyarrow

_MOST_KNOWN_BLOCKS = 1 << 18
"""So many blocks are kept, which is 150 MB, and a thousand million rows if each of their blocks has a deleted one."""


class Said(NamedTuple):
    """What a delete file says: the rows, and the writes that deleted them."""

    rows: Mapping[RowSource, DeletionBitmap]
    by: frozenset[int]


class DeleteFiles:
    """What delete files say, by file; safe to share between threads. The least recently used go first."""

    def __init__(self, most_blocks: int = _MOST_KNOWN_BLOCKS) -> None:
        self._most_blocks = most_blocks
        self.renew_in_child()
        renew_in_children(self)
        self._known: OrderedDict[DataFilePath, Said] = OrderedDict()
        self._blocks = 0

    def renew_in_child(self) -> None:
        """Have a lock that no thread of the parent's holds."""
        self._guard = threading.Lock()

    def missing(self, wanted: Iterable[DataFilePath]) -> int:
        """How many of `wanted` `read` would have to open."""
        with self._guard:
            return sum(file not in self._known for file in wanted)

    def read(self, wanted: Sequence[DataFilePath]) -> list[Said] | None:
        """What each file says; None if one cannot be read here."""
        with self._guard:
            found = {}
            for file in wanted:
                if file in self._known:
                    self._known.move_to_end(file)
                    found[file] = self._known[file]
        missing = [file for file in wanted if file not in found]
        if missing:
            for file, said in zip(missing, files.side_by_side(_read, missing, missing[0].path), strict=True):
                if said is None:
                    return None
                found[file] = said
                self._keep(file, said)
        return [found[file] for file in wanted]

    def _keep(self, file: DataFilePath, said: Said) -> None:
        with self._guard:
            if file not in self._known:
                self._known[file] = said
                self._blocks += _number_of_blocks(said.rows)
            while self._blocks > self._most_blocks:
                self._blocks -= _number_of_blocks(self._known.popitem(last=False)[1].rows)


def _number_of_blocks(rows: Mapping[RowSource, DeletionBitmap]) -> int:
    return sum(map(len, rows.values()))


SHARED = DeleteFiles()
"""What this process has read."""


def events_of(file: DataFilePath) -> pyarrow.Table | None:
    """The ids of the delete events in a file, in its order; None if pyarrow cannot read it."""
    try:
        import pyarrow
        from pyarrow import compute, orc
    except ImportError:
        return None
    try:
        table = orc.ORCFile(pyarrow.BufferReader(files.read(file.path))).read(columns=list(ID_COLUMNS))
    except (OSError, pyarrow.ArrowException):
        return None
    if not set(ID_COLUMNS).issubset(table.column_names) or any(table.column(name).null_count for name in ID_COLUMNS):
        return None
    return table.filter(compute.greater_equal(table.column("operation"), DELETE))


def _read(file: DataFilePath) -> Said | None:
    """What the events in a file say; None as `events_of`."""
    with suppress(FormatError, OSError):
        (tail,) = footers.SHARED.read([file])
        if (told := told_runs(tail.user_metadata, tail.rows)) is not None:
            return Said(bitmaps_of(told[0]), frozenset(told[1:]))
    table = events_of(file)
    if table is None:
        return None
    return Said(bitmaps_of(_runs(table)), frozenset(table.column("currentTransaction").unique().to_pylist()))


def _runs(table: pyarrow.Table) -> Iterator[Run]:
    """The events of a table by their source, as they come."""
    from pyarrow import array, compute

    *source, row_id = (table.column(name).combine_chunks() for name in KEY)
    # What has changed is found by Arrow: to look at each event takes ten times as long.
    ends = sorted({end for ids in source for end in compute.run_end_encode(ids).run_ends.to_pylist()})
    last = array([end - 1 for end in ends], "int64")
    row_ids = row_id.to_pylist()
    begin = 0
    for write_id, bucket, end in zip(*(ids.take(last).to_pylist() for ids in source), ends, strict=True):
        yield write_id, bucket, row_ids[begin:end]
        begin = end
