"""Rows that a compaction merges by pyarrow, which reads and writes them in less than half of the time of Spark's tasks.

Most files say that their rows are in order already, so a merge is to copy them without those that are deleted, batch by
batch. What is much, and what pyarrow does not write as Spark does, is left to Spark: see
`hive_acid.spark.compact.bucket_merge`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date, datetime
from io import SEEK_END
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from hive_acid.errors import FormatError
from hive_acid.filesystem import files
from hive_acid.filesystem.footers import DataFilePath, end_of, uncompressed, writer_zones
from hive_acid.format.deletion_bitmap import BLOCK_BITS, BLOCK_ROWS, DeletionBitmap, RowSource
from hive_acid.format.names import bucket_file_name
from hive_acid.format.orc.tail import OrcType, Tail, read_tail
from hive_acid.format.rows import INSERT, KEY
from hive_acid.format.snapshot import ValidWriteIdList
from hive_acid.spark.compact.bucket_merge_plan import BucketMergePlan, Run
from hive_acid.spark.limits import Limits
from hive_acid.spark.plans.compaction_plan import rows_fit_arrow
from hive_acid.spark.read.scan import ROW_COLUMN
from hive_acid.spark.values.timezone import UTC

if TYPE_CHECKING:
    import pyarrow

LOG = logging.getLogger(__name__)

_THREADS = 4
_FEW_ROWS = 64
"""Of so many rows of one write each is looked up by itself."""

_COMPRESSIONS = frozenset({"none", "zlib", "snappy", "lz4", "zstd"})
_KINDS = frozenset(
    {"boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string", "binary"}
)  # fmt: skip
_TEXTS = frozenset({"string", "binary"})
_PLAIN_TIMES: Mapping[str, tuple[date | datetime, date | datetime]] = {
    # Earlier ones are counted by more than one calendar; and pyarrow counts nanoseconds in 64 bits, and fractions of a
    # second before 1970 otherwise than readers do.
    "date": (date(1900, 1, 1), date(9999, 12, 31)),
    "timestamp": (datetime(1970, 1, 1), datetime(2262, 1, 1)),
}


def is_plain(tail: Tail, limits: Limits) -> bool:
    """Whether pyarrow reads and writes all that is in a file with ACID columns without a loss."""
    operation, row = tail.column("operation"), tail.column(ROW_COLUMN)
    if operation is None or row is None or tail.compression not in _COMPRESSIONS:
        return False
    columns = tail.types[row].children
    kinds = [tail.types[column].kind for column in columns]
    if not rows_fit_arrow(len(columns), 0, tail.rows, limits):
        return False
    if not all(kind in _KINDS or kind in _PLAIN_TIMES for kind in kinds):
        return False
    if tail.statistics(operation)[2:4] != (INSERT, INSERT):
        return False
    if not all(_has_plain_times(tail, column) for column in columns):
        return False
    texts = [tail.statistics(column) for column, kind in zip(columns, kinds, strict=True) if kind in _TEXTS]
    sizes = [0 if of.values == 0 else of.size for of in texts]
    return None not in sizes and rows_fit_arrow(len(columns), sum(filter(None, sizes)), tail.rows, limits)


def _has_plain_times(tail: Tail, column: int) -> bool:
    """Whether a column has no dates or timestamps, or only such as pyarrow writes as they are."""
    limits = _PLAIN_TIMES.get(tail.types[column].kind)
    if limits is None:
        return True
    of = tail.statistics(column)
    if of.values == 0:
        return True
    found = of.minimum, of.maximum
    # A datetime is a date as well, but the two cannot be compared.
    if any(type(bound) is not type(limits[0]) for bound in found):
        return False
    return bool(limits[0] <= found[0] and found[1] <= limits[1])  # type: ignore[operator]


class _Task(NamedTuple):
    """Runs that become one file, and its path."""

    runs: Sequence[Run]
    target: str


@dataclass(slots=True)
class _Done:
    """What has been written by now."""

    rows: int = 0
    files: int = 0
    size: int = 0
    guard: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True, slots=True)
class ArrowMerge:
    """The merge of files of the directory `location`, all plain and with columns of `types`.

    Left out are the rows `deleted`, and in the directories `partly_visible` those of writes that are not among
    `write_ids`. `told` hears, from one thread at a time, how many rows, files and bytes have been written; what it
    raises ends the merge.
    """

    location: str
    types: tuple[OrcType, ...]
    compression: str
    write_ids: ValidWriteIdList
    partly_visible: frozenset[str]
    deleted: Mapping[RowSource, DeletionBitmap]
    told: Callable[[int, int, int], None]
    limits: Limits
    _done: _Done = field(default_factory=_Done)

    def written(self, plans: Sequence[BucketMergePlan], directory: str) -> list[DataFilePath] | None:
        """The files of what is not kept by `plans`, below `directory`; None if pyarrow cannot do it after all.

        They are segments that follow each other.
        """
        import pyarrow

        tasks: list[_Task] = []
        one_by_one = not files.rename_is_copy(directory)
        for plan in plans:
            for runs in plan.written():
                # Where a file is copied to be joined, as few as can be.
                for together in [[run] for run in runs] if one_by_one else [runs]:
                    below = files.join(directory, str(len(tasks)))
                    files.make_directory(below)
                    tasks.append(_Task(together, files.join(below, bucket_file_name(plan.bucket))))
        if not tasks:
            return []
        # The longest begin first, so that none is left alone in the end.
        tasks.sort(key=lambda task: sum(run.size for run in task.runs), reverse=True)
        try:
            with ThreadPoolExecutor(min(_THREADS, len(tasks)), thread_name_prefix="merge") as pool:
                return [path for path in pool.map(self._carry_out, tasks) if path is not None]
        except (pyarrow.ArrowException, OSError, FormatError) as error:
            LOG.info("%s: left to Spark: %s", self.location, error)
            files.remove(directory)
            return None
        finally:
            pyarrow.default_memory_pool().release_unused()  # else the process keeps what its threads had

    def _tell(self, rows: int = 0, size: int | None = None) -> None:
        """Tell of more rows, and of a file if it has a size."""
        with self._done.guard:
            self._done.rows += rows
            if size is not None:
                self._done.files += 1
                self._done.size += size
            self.told(self._done.rows, self._done.files, self._done.size)

    def _carry_out(self, task: _Task) -> DataFilePath | None:
        """Write one file; its path, None if it has no rows."""
        from hive_acid.streaming.orc_file import OrcFile

        rows = 0
        file = OrcFile(task.target, self.compression)
        try:
            for run in task.runs:
                for batch in self._rows(run):
                    file.write(batch)
                    rows += batch.num_rows
                    self._tell(batch.num_rows)
            file.close()
        except BaseException:
            file.abandon()
            raise
        if not rows:
            files.remove(task.target)
            return None
        path = DataFilePath(task.target, file.size)
        tail = read_tail(end_of(path), uncompressed)
        if tail.rows != rows or tail.types != self.types:
            raise FormatError(f"pyarrow wrote {tail.rows} of {rows} rows, or other types than the table's")
        self._tell(size=path.size)
        return path

    def _rows(self, run: Run) -> Iterator[pyarrow.Table]:
        """The rows of a run that stay, in the order of their keys."""
        import pyarrow

        read = 0
        parts: list[pyarrow.Table] = []
        for path in run.paths:
            is_visible = path.partition("/")[0] not in self.partly_visible
            for batch in self._batches(files.join(self.location, path)):
                read += batch.num_rows
                seen = batch if is_visible else _visible(batch, self.write_ids)
                stays = _as_inserts(_without(seen, self.deleted))
                if run.overlap:
                    parts.append(stays)
                elif stays.num_rows:
                    yield stays
        if read != run.rows:
            raise FormatError(f"pyarrow read {read} of {run.rows} rows")
        if parts and (rows := pyarrow.concat_tables(parts)).num_rows:
            yield rows.sort_by([(name, "ascending") for name in KEY])

    def _batches(self, path: str) -> Iterator[pyarrow.RecordBatch]:
        from pyarrow import dataset

        if any(of.kind == "timestamp" for of in self.types):
            _refuse_zones(path)
        rows = max(self.limits.arrow_batch_rows, self.limits.arrow_batch_values // len(self.types))
        with files.opened(path) as content:
            fragment = dataset.OrcFileFormat().make_fragment(content)
            yield from fragment.to_batches(batch_size=rows, use_threads=False, batch_readahead=1, fragment_readahead=1)


def _refuse_zones(path: str) -> None:
    """Raises FormatError unless a file's timestamps were written in UTC: pyarrow keeps no other zone.

    The hour that a zone's clocks go back to would be one hour, and no longer two.
    """
    with files.opened(path) as content:
        size = content.seek(0, SEEK_END)
    if not (zones := writer_zones(DataFilePath(path, size))) <= UTC:
        raise FormatError(f"{path} has timestamps that were written in another zone than UTC: {sorted(zones)}")


def _as_inserts(rows: pyarrow.RecordBatch) -> pyarrow.Table:
    """Rows as what has inserted them, whatever a compaction before has made of it."""
    import pyarrow

    columns = {name: rows.column(name) for name in rows.schema.names}
    if any(column.null_count for column in columns.values()):
        raise FormatError("a row without a key")
    columns["currentTransaction"] = columns["originalTransaction"]
    # What Spark notes at the fields of its files pyarrow would write again, and files with and without are not joined.
    bare = pyarrow.struct([field.remove_metadata() for field in columns[ROW_COLUMN].type])
    types = {name: column.type for name, column in columns.items()} | {ROW_COLUMN: bare}
    return pyarrow.Table.from_arrays(list(columns.values()), schema=pyarrow.schema(types))


# --- rows that are left out --------------------------------------------------------------------------


def _visible(batch: pyarrow.RecordBatch, write_ids: ValidWriteIdList) -> pyarrow.RecordBatch:
    """The rows of a batch that visible writes have written."""
    import pyarrow
    from pyarrow import compute

    written_by = batch.column("currentTransaction")
    lost = [of for of in written_by.unique().to_pylist() if of is not None and not write_ids.is_valid(of)]
    if not lost:
        return batch
    return batch.filter(compute.invert(compute.is_in(written_by, value_set=pyarrow.array(lost, written_by.type))))


def _without(batch: pyarrow.RecordBatch, deleted: Mapping[RowSource, DeletionBitmap]) -> pyarrow.RecordBatch:
    """The rows of a batch that are not deleted."""
    import pyarrow
    from pyarrow import compute

    if not deleted or not batch.num_rows:
        return batch
    *source, row_ids = (batch.column(name) for name in KEY)
    # What has changed is found by Arrow: to look at each row takes ten times as long.
    ends = sorted({end for ids in source for end in compute.run_end_encode(ids).run_ends.to_pylist()})
    last = pyarrow.array([end - 1 for end in ends], "int64")
    sources = zip(*(ids.take(last).to_pylist() for ids in source), strict=True)
    parts = []
    is_whole = True
    for of, (begin, end) in zip(sources, pairwise([0, *ends]), strict=True):
        blocks = deleted.get(of)
        gone = _gone(row_ids.slice(begin, end - begin), blocks) if blocks else None
        is_whole = is_whole and gone is None
        parts.append(pyarrow.repeat(pyarrow.scalar(False), end - begin) if gone is None else gone)
    return batch if is_whole else batch.filter(compute.invert(pyarrow.concat_arrays(parts)))


def _gone(row_ids: pyarrow.Array, blocks: DeletionBitmap) -> pyarrow.Array | None:
    """Which rows of one source, in the order of their ids, are among those of `blocks`; None if none is."""
    import pyarrow
    from pyarrow import compute

    if len(row_ids) <= _FEW_ROWS:
        bits = [
            bool(blocks.get(row_id >> BLOCK_BITS, 0) >> (row_id & BLOCK_ROWS - 1) & 1) for row_id in row_ids.to_pylist()
        ]
        return pyarrow.array(bits) if any(bits) else None
    found = compute.min_max(row_ids).as_py()
    first, last = found["min"] >> BLOCK_BITS, found["max"] >> BLOCK_BITS
    numbers = range(first, last + 1) if last - first < len(blocks) else blocks
    parts = [_row_ids(number, blocks[number]) for number in numbers if first <= number <= last and number in blocks]
    return compute.is_in(row_ids, value_set=pyarrow.concat_arrays(parts)) if parts else None


def _row_ids(number: int, bits: int) -> pyarrow.Array:
    """The row ids that the bits of a block stand for."""
    import pyarrow
    from pyarrow import compute

    packed = pyarrow.py_buffer(bits.to_bytes(BLOCK_ROWS // 8, "little"))
    flags = pyarrow.BooleanArray.from_buffers(pyarrow.bool_(), BLOCK_ROWS, [None, packed])
    positions = compute.indices_nonzero(flags).cast(pyarrow.int64())
    return compute.add(positions, number << BLOCK_BITS)
