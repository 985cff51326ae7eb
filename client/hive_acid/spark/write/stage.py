"""What Spark's jobs and the client put below a hidden directory, before it is published (`hive_acid.write.staging`).

Spark's own committer makes each task's file safe against retries; this module runs the jobs, finds their files, and
checks that each directory has one file per bucket (acid-format.md §4.2).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.catalog.table import Table
from hive_acid.errors import FormatError
from hive_acid.filesystem import files
from hive_acid.filesystem.footers import SHARED, DataFilePath
from hive_acid.format.names import bucket_file_name, is_for_hive_3, is_hidden
from hive_acid.format.orc.bloom_filters import asked_filters, options_with_filters
from hive_acid.format.orc.deletes import DeleteEvents, delete_file
from hive_acid.format.orc.file import empty_acid_file
from hive_acid.format.partitions import parse_partition_name
from hive_acid.format.rows import ID_COLUMNS
from hive_acid.ids import WriteId
from hive_acid.spark.jvm.frames.observed import counts_of, not_counted
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.jvm.job_settings import configured
from hive_acid.spark.jvm.sources import writer_of
from hive_acid.spark.read.scan import ROW_COLUMN
from hive_acid.spark.write.events import (
    BUCKET_COLUMN,
    KIND_COLUMN,
    Events,
    key_column,
    row_columns,
    row_part,
    sorted_by,
)
from hive_acid.spark.write.tails import add_tails, is_readable
from hive_acid.write.staging import DELETE, INSERT, StagedFiles, Staging, Values

if TYPE_CHECKING:
    from hive_acid.streaming.bucket_file import BucketFile

ZSTD_LEVEL = 1
"""The tables of the benchmarks get no larger by it than by ORC's own, 3, and are written in a tenth less time."""

_WITH_EMPTY_ROW = {"spark.sql.legacy.allowEmptySchemaWrite": "true"}
"""Without it Spark does not write a struct without fields."""

_PART_FILE = re.compile(r"part-([0-9]+)-.+")
_WRITTEN = "written"


def _known_to_writer(options: Mapping[str, str], frame: DataFrame, apart: Sequence[str]) -> dict[str, str]:
    """`options` of ORC's writer, of columns as `frame` has them: those of its row, or these `apart` from it."""
    if not asked_filters(options):
        return dict(options)
    if apart:
        names = {name.lower(): row_part(position) for position, name in enumerate(apart)}
    else:
        row = frame.schema[ROW_COLUMN].dataType
        names = {name.lower(): name for name in row.names} if isinstance(row, t.StructType) else {}
    return options_with_filters(options, names)


def _deletes_in(events: Events) -> Callable[[str], bool]:
    """Whether the file of a path has delete events, of those that a job has written."""
    if events.holds is not None:
        return lambda _: events.holds == DELETE
    return lambda path: path.startswith(f"{KIND_COLUMN}={DELETE}/")


def left_by_job(location: str) -> list[files.FileEntry]:
    """The files that a job has left; one of a task that was started twice, and writes still, is hidden.

    Raises FormatError if one is called otherwise than Spark's: its rows would be lost.
    """
    found = [entry for entry in files.list_tree(location) if not entry.is_directory and not is_hidden(entry.path)]
    for entry in found:
        if _PART_FILE.fullmatch(entry.path.rpartition("/")[2]) is None:
            raise FormatError(f"{files.join(location, entry.path)} is not called as the files that Spark's jobs leave")
    return found


def task_of(entry: files.FileEntry) -> int:
    """The number of the task that has left a file."""
    return int(entry.path.rpartition("/")[2].split("-")[1])


def _in_order(rows: Any, names: Sequence[str]) -> Any:
    """An array of structs, sorted by some of their fields."""
    if not names:
        return rows
    import pyarrow
    from pyarrow import compute

    by = pyarrow.table([rows.field(name) for name in names], [str(at) for at in range(len(names))])
    return rows.take(compute.sort_indices(by, sort_keys=[(name, "ascending") for name in by.column_names]))


class SparkStaging(Staging):
    """The hidden directory of one statement: `write` runs a job, `staged` finds what it made."""

    def write(
        self,
        events: Events,
        compression: str,
        *,
        step: str = "job",
        hive_3: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> dict[str, int]:
        """Run a job that writes `events`; the number of events of each kind.

        `options` are others of ORC's writer, as a table's properties give them. With `hive_3` the files are such as
        Apache Hive 3.1 reads.
        """
        frame, names = events.frame, events.apart
        if events.row:
            apart = self.keeps_apart(compression)
            parts = [row_part(position) for position in range(len(events.row))]
            frame = projected(frame, *events.divided_by, *ID_COLUMNS, *row_columns(parts, events.row, apart=apart))
            names = events.row if apart else ()
        if events.holds is not None:
            frame = frame.observe(events.counts, F.count(F.lit(1)).alias(events.holds))
        written = _known_to_writer(options or {}, frame, names)
        output = writer_of(frame, "orc").option("orc.compression.zstd.level", ZSTD_LEVEL).options(**written)
        output = output.option("compression", compression).option("maxRecordsPerFile", 0)
        # Nobody looks for it, and Hadoop starts a process for each local file that it makes.
        output = output.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
        if events.divided_by:
            output = output.partitionBy(*events.divided_by)
        location = files.join(self.location, _WRITTEN, step)
        with configured(frame.sparkSession, _WITH_EMPTY_ROW if names else {}):
            output.save(location)
        if names or hive_3:
            add_tails(location, names, _deletes_in(events) if hive_3 else None)
        counts = counts_of(events.counts)
        # Rows are not to be lost with what Spark has counted.
        if is_readable(compression) and not any((counts or {}).values()):
            return self._counted(location, events)
        if counts is None:
            raise not_counted("nothing was changed; run the statement again")
        return dict(counts)

    def _counted(self, location: str, events: Events) -> dict[str, int]:
        """The number of events of each kind in the files that a job has left in `location`, by their tails."""
        is_delete = _deletes_in(events)
        found = left_by_job(location)
        tails = SHARED.read([DataFilePath(files.join(location, entry.path), entry.size) for entry in found])
        counts: Counter[str] = Counter()
        for entry, tail in zip(found, tails, strict=True):
            counts[DELETE if is_delete(entry.path) else INSERT] += tail.rows
        return counts

    def keeps_apart(self, compression: str) -> bool:
        """Whether inserts are written with the columns of `row` behind it, and these moved into it after.

        That is where tails can be replaced.
        """
        return not self.is_bypassed and is_readable(compression)

    def staged(self, keys: int, *, step: str = "job") -> list[StagedFiles]:
        """What the job of `step` has written, of a table with `keys` partition keys.

        Delete events of one bucket may come in several files, each of which is in a layer of its own. Raises
        FormatError if a bucket has two files of new rows.
        """
        found: dict[tuple[str, Values, int], dict[int, str]] = {}
        sizes: Counter[tuple[str, Values, int]] = Counter()
        written = files.join(_WRITTEN, step)
        for entry in left_by_job(files.join(self.location, written)):
            directory = entry.path.rpartition("/")[0]
            divided = dict(parse_partition_name(directory)) if directory else {}
            bucket = int(divided.get(BUCKET_COLUMN) or task_of(entry))
            kind, values = divided.get(KIND_COLUMN) or INSERT, tuple(divided[key_column(i)] for i in range(keys))
            layer = 0
            while kind == DELETE and bucket in found.get((kind, values, layer), ()):
                layer += 1
            key = kind, values, layer
            buckets = found.setdefault(key, {})
            if bucket in buckets:
                raise FormatError(f"two files for bucket {bucket}: {buckets[bucket]} and {entry.path}")
            buckets[bucket] = files.join(written, entry.path)
            sizes[key] += entry.size
        return [
            StagedFiles(kind, values, buckets, layer, size=sizes[kind, values, layer])
            for (kind, values, layer), buckets in found.items()
        ]

    def paths(self, step: str) -> list[DataFilePath]:
        """The files that the job of `step` has written, undivided."""
        location = files.join(self.location, _WRITTEN, step)
        return [DataFilePath(files.join(location, entry.path), entry.size) for entry in left_by_job(location)]

    def deletes(self, table: Table, found: Mapping[Values, DeleteEvents], compression: str) -> list[StagedFiles]:
        """Write delete events, by the values of their partition: a file for each bucket.

        They are compressed by zlib unless nothing is to be.
        """
        columns = [(column.name, column.type) for column in table.columns]
        codec = "none" if compression == "none" else "zlib"
        return self.side_by_side(partial(self._deletes, columns, codec), found.keys(), found.values())

    def _deletes(
        self, columns: Sequence[tuple[str, str]], codec: str, position: int, values: Values, events: DeleteEvents
    ) -> StagedFiles:
        directory = files.join(_WRITTEN, "deletes", str(position))
        files.make_directory(files.join(self.location, directory))
        size = 0
        paths = {}
        for bucket, of in events.by_bucket().items():
            content = delete_file(columns, of, codec)
            paths[bucket] = files.join(directory, bucket_file_name(bucket))
            files.write(files.join(self.location, paths[bucket]), content)
            size += len(content)
        return StagedFiles(DELETE, values, paths, size=size, directory=directory)

    def inserts(
        self, table: Table, found: Mapping[Values, Any], write_id: WriteId, bucket_property: int, compression: str
    ) -> list[StagedFiles]:
        """Write new rows, arrays as `hive_acid.streaming.layout.row_array` makes them: one file in each partition."""
        if not found:  # as of every DELETE, which needs no writer
            return []
        from hive_acid.streaming.bucket_file import BucketFile
        from hive_acid.streaming.memory import small_file_written

        opened = partial(
            BucketFile,
            write_id=write_id,
            bucket_property=bucket_property,
            compression=compression,
            for_hive_3=is_for_hive_3(table.parameters),
            is_small=True,
        )
        # While pyarrow compresses one, Python has time for another.
        ordered = [_in_order(rows, sorted_by(table)) for rows in found.values()]
        staged = self.side_by_side(partial(self._inserts, opened), found.keys(), ordered, local=2)
        for _ in staged:
            small_file_written()
        return staged

    def _inserts(self, opened: Callable[[str], BucketFile], position: int, values: Values, rows: Any) -> StagedFiles:
        directory = files.join(_WRITTEN, "inserts", str(position))
        path = files.join(directory, bucket_file_name(0))
        written = opened(files.join(self.location, path))
        try:
            written.write(rows)
        except BaseException:
            written.abandon()
            raise
        return StagedFiles(INSERT, values, {0: path}, size=written.close(), directory=directory)

    def nothing(self, table: Table, values: Values, number: int = 0) -> StagedFiles:
        """A file without rows for the partition of `values`: engines that list files need one (acid-format.md §2.7).

        Those of one write have each a `number` of their own.
        """
        path = files.join(_WRITTEN, f"nothing-{number}", bucket_file_name(0))
        content = empty_acid_file([(column.name, column.type) for column in table.columns])
        files.make_directory(files.parent(files.join(self.location, path)))
        files.write(files.join(self.location, path), content)
        return StagedFiles(INSERT, values, {0: path}, size=len(content))
