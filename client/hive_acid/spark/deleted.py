"""Delete events that the client knows: rows are left out by a look-up in bits instead of a join.

A join costs a job of its own for the delete files, a broadcast and a stage more, whatever is read. The delete files of
most tables are small, and never change: they are read here, by pyarrow, and what they say is kept. Where they are not,
are not to be read, or name rows of several partitions at a time, the reader joins them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, SparkSession

from hive_acid import files
from hive_acid.footers import DataFilePath
from hive_acid.format.deleted import (
    BLOCK_BITS,
    BUCKET_MASK,
    PACKED_BUCKET_BITS,
    PACKED_WRITE_ID_BITS,
    SLOT_SHIFT,
    WORDS_PER_BLOCK,
    WRITE_ID_MASK,
    Blocks,
    Layout,
    Run,
    Source,
    blocks_of,
    layout_of,
    merged,
)
from hive_acid.format.orc_deletes import Event
from hive_acid.format.rows import DELETE
from hive_acid.format.snapshot import RangeValidity, ValidWriteIdList
from hive_acid.format.state import DataDirectory
from hive_acid.spark.events import KEY
from hive_acid.spark.listing import PartitionState
from hive_acid.spark.skipping import tails_of

if TYPE_CHECKING:
    import pyarrow

MOST_EVENTS = 3_000_000
"""So many delete events of a partition are looked up; more are joined. To read as many once takes a second."""

MOST_MERGED_EVENTS = 300_000
"""So many are merged without Spark, which takes 0.3 s and 100 MB."""

MOST_WORDS = 1 << 18
"""Words of 64 rows each that a scan carries: 2 MB."""

_MOST_FILES = 64
"""So many delete files that are not known yet are read for one scan."""

_ARRAY = "__acid_words"
_MOST_KNOWN_BLOCKS = 1 << 18
"""So many blocks are kept, which is 150 MB, and a thousand million rows if each of their blocks has a deleted one."""
_COLUMNS = ["operation", *KEY, "currentTransaction"]
_THREADS = 8


class DeleteFiles:
    """What delete files say, by file; safe to share between threads. The least recently used go first."""

    def __init__(self, most_blocks: int = _MOST_KNOWN_BLOCKS) -> None:
        self._most_blocks = most_blocks
        self._guard = threading.Lock()
        self._known: OrderedDict[DataFilePath, Mapping[Source, Blocks]] = OrderedDict()
        self._blocks = 0

    def read(self, wanted: Sequence[DataFilePath]) -> list[Mapping[Source, Blocks]] | None:
        """What each file deletes; None if one cannot be read here, or there are too many that are not known."""
        with self._guard:
            found = {}
            for file in wanted:
                if file in self._known:
                    self._known.move_to_end(file)
                    found[file] = self._known[file]
        missing = [file for file in wanted if file not in found]
        if len(missing) > _MOST_FILES:
            return None
        if missing:
            with ThreadPoolExecutor(min(_THREADS, len(missing)), thread_name_prefix="delete-file") as pool:
                for file, said in zip(missing, pool.map(_read, missing), strict=True):
                    if said is None:
                        return None
                    found[file] = said
                    self._keep(file, said)
        return [found[file] for file in wanted]

    def _keep(self, file: DataFilePath, said: Mapping[Source, Blocks]) -> None:
        with self._guard:
            if file not in self._known:
                self._known[file] = said
                self._blocks += _number_of_blocks(said)
            while self._blocks > self._most_blocks:
                self._blocks -= _number_of_blocks(self._known.popitem(last=False)[1])


def _number_of_blocks(said: Mapping[Source, Blocks]) -> int:
    return sum(map(len, said.values()))


SHARED = DeleteFiles()
"""What this process has read."""


@dataclass(frozen=True, slots=True)
class LookUp:
    """What a reader asks: an array, and `Layout.has` in Spark's words, over the columns of `scan` and the array."""

    words: Column
    is_deleted: str

    def without_deleted(self, events: DataFrame, early: str | None = None) -> DataFrame:
        """The events of rows that are not deleted, with one more column; only those of which `early` is true."""
        asked = f"({early}) AND NOT ({self.is_deleted})" if early else f"NOT ({self.is_deleted})"
        # The array has a name, so that the rest can be said in one text: each call to the JVM for a column is a dozen.
        return events.withColumn(_ARRAY, self.words).where(asked)


def look_up_of(spark: SparkSession, partition: PartitionState, deltas: Sequence[DataDirectory]) -> LookUp | None:
    """How to find out whether an event in `partition` is of a row that `deltas` delete; None if that takes a join."""
    found = deleted_rows(partition, deltas)
    layout = None if found is None else layout_of(found, MOST_WORDS)
    return None if layout is None else LookUp(_words(spark, layout), _is_deleted(layout))


def deleted_rows(partition: PartitionState, deltas: Sequence[DataDirectory]) -> Mapping[Source, Blocks] | None:
    """The rows in `partition` that `deltas` delete; None if there are too many to be read here, or it cannot be.

    Nor can it where only some of the events are visible: what is known of a file is known for all snapshots.
    """
    if any(found.validity is not RangeValidity.ALL for found in deltas):
        return None
    wanted = _event_files(partition, deltas, MOST_EVENTS)
    said = None if wanted is None else SHARED.read(wanted)
    return None if said is None else merged(said)


def _event_files(
    partition: PartitionState, deltas: Sequence[DataDirectory], most_events: int
) -> list[DataFilePath] | None:
    """The files of `deltas`; None if they are not finished, or have more than `most_events`."""
    if any(found.unfinished for found in deltas):
        return None
    wanted = [
        DataFilePath(files.join(partition.location, file.path), file.size, file.modified_ms)
        for found in deltas
        for file in found.files
        if file.size
    ]
    if not all(file.modified_ms for file in wanted):
        return None
    tails = tails_of(wanted)
    return None if tails is None or sum(tail.rows for tail in tails) > most_events else wanted


def merged_events(
    partition: PartitionState, deltas: Sequence[DataDirectory], write_ids: ValidWriteIdList
) -> list[Event] | None:
    """The events of `deltas` that are visible, in the order of their keys, the first one of each row.

    None if there are too many to be read here, or it cannot be.
    """
    wanted = _event_files(partition, deltas, MOST_MERGED_EVENTS)
    if wanted is None:
        return None
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="delete-file") as pool:
        said = list(pool.map(_events, wanted))
    if any(of_file is None for of_file in said):
        return None
    events = sorted(event for of_file in said for event in of_file or ())
    if any(found.validity is not RangeValidity.ALL for found in deltas):
        visible = {write_id for write_id in {event[3] for event in events} if write_ids.is_valid(write_id)}
        events = [event for event in events if event[3] in visible]
    # Hive 4 loses the events that follow a doubled one (acid-format.md §0.9).
    first_of_rows = dict(reversed([(event[:3], event) for event in events]))
    return list(reversed(first_of_rows.values()))


def _read(file: DataFilePath) -> Mapping[Source, Blocks] | None:
    """The rows that the events in a file name; None as `_table`."""
    table = _table(file)
    return None if table is None else blocks_of(_runs(table))


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


def _events(file: DataFilePath) -> list[Event] | None:
    """The delete events in a file, in its order; None as `_table`."""
    table = _table(file)
    if table is None:
        return None
    return list(zip(*(table.column(name).to_pylist() for name in (*KEY, "currentTransaction")), strict=True))


def _table(file: DataFilePath) -> pyarrow.Table | None:
    """The ids of the delete events in a file, in its order; None if pyarrow cannot read it."""
    try:
        import pyarrow
        from pyarrow import compute, orc
    except ImportError:
        return None
    try:
        table = orc.ORCFile(pyarrow.BufferReader(files.read(file.path))).read(columns=_COLUMNS)
    except (OSError, pyarrow.ArrowException):
        return None
    if not set(_COLUMNS).issubset(table.column_names) or any(table.column(name).null_count for name in _COLUMNS):
        return None
    return table.filter(compute.greater_equal(table.column("operation"), DELETE))


def _words(spark: SparkSession, layout: Layout) -> Column:
    """The array of a layout as a subquery's, which plans do not spell out."""
    array = "SELECT cast(split(words, ',') AS array<bigint>) FROM VALUES (:words) AS v(words)"
    return spark.sql(array, args={"words": ",".join(map(str, layout.words))}).scalar()


def _is_deleted(layout: Layout) -> str:
    """Never null. The numbers are part of the code that Spark generates: `layout_of` sees to it that few change."""
    mixed = (
        f"(originalTransaction & {WRITE_ID_MASK}) * {layout.write_id_factor}"
        f" ^ (cast(bucket AS bigint) & {BUCKET_MASK}) * {layout.bucket_factor}"
    )
    slot = f"(shiftright({mixed}, {SLOT_SHIFT}) & {layout.slots - 1})"
    block = f"least(shiftright(rowId, {BLOCK_BITS}), {layout.longest}L)"
    at = f"get({_ARRAY}, get({_ARRAY}, {slot} + {layout.slots}) + {block})"
    word = f"get({_ARRAY}, {at} + (shiftright(rowId, 6) & {WORDS_PER_BLOCK - 1}))"
    source = f"shiftleft(originalTransaction, {PACKED_BUCKET_BITS}) | bucket"
    is_packed = f"shiftright(originalTransaction, {PACKED_WRITE_ID_BITS}) = 0"
    bit = f"getbit({word}, cast(rowId & 63 AS int))"
    return f"{is_packed} AND get({_ARRAY}, {slot}) = ({source}) AND {bit} = 1"
