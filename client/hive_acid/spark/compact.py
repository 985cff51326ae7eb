"""Compaction of one partition directory: the files of many writes become one file per bucket (acid-format.md §6.2).

A job says what to read and how the output is called; which directories those are is the metastore's decision. The
output appears below the job's staging directory, complete, and the metastore renames it into place.

Rows are written as cheaply as their number and their files allow: bucket by bucket without a shuffle and mostly without
a sort (`hive_acid.spark.lanes`), a few in one task, or after a shuffle by bucket. Files with large stripes, of which
nothing is deleted, become part of the new ones as they are. A few delete events are merged without Spark.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F

from hive_acid import files
from hive_acid.errors import FormatError
from hive_acid.footers import DataFilePath
from hive_acid.format.names import bucket_file_name, is_for_hive_3
from hive_acid.format.orc import empty_acid_file
from hive_acid.format.orc_tail import Tail, read_tail
from hive_acid.format.rows import INSERT as INSERT_OPERATION
from hive_acid.format.snapshot import RangeValidity
from hive_acid.format.state import DataDirectory
from hive_acid.spark.assign import quoted
from hive_acid.spark.compaction_job import (
    MINOR,
    REBALANCE,
    CompactionJob,
    CompactionResult,
    Progress,
    Report,
    unheard,
)
from hive_acid.spark.concatenate import concatenate
from hive_acid.spark.deleted import deleted_rows, merged_events
from hive_acid.spark.events import BUCKET_COLUMN, DELETE, INSERT, KEY, Events, file_of_row
from hive_acid.spark.file_order import can_look
from hive_acid.spark.job_settings import configured
from hive_acid.spark.lanes import Keeps, Lane, has_rows_of, lanes, restricted
from hive_acid.spark.listing import PartitionState, TableState
from hive_acid.spark.pieces import Piece, by_bucket, join, mixed, pieces_of
from hive_acid.spark.read import BROADCAST_LIMIT_BYTES, KEY_COLUMNS, delete_events, has_old_shape, read_rows
from hive_acid.spark.rebalance import rebalanced
from hive_acid.spark.scan import ID_COLUMNS, ROW_COLUMN
from hive_acid.spark.stage import StagedFiles, Staging
from hive_acid.spark.types import refuse_instants, row_type

LOG = logging.getLogger(__name__)

ONE_TASK_BYTES = 1024 * 1024
"""Up to so much is merged in one task, which is the least that Spark can do."""

SMALL_BYTES = 16 * 1024 * 1024
"""Up to so much, too, if there are many buckets."""

RUNS_PER_JOB = 16
"""Each run of a lane takes a scan of its own: plans of more become slow to make."""

LANE_BYTES = 1024 * 1024
"""Lanes pay where the files of a bucket have so much, or where there are no more than `FEW_LANES`."""

FEW_LANES = 4

KEPT_STRIPE_BYTES = 2 * 1024 * 1024
"""Files with smaller stripes, on an average, are read and written: each stripe costs a reader a start of its own."""

_FILE_BY_FILE = {
    # A union of frames with one part each has a part for each of them.
    "spark.sql.unionOutputPartitioning": "false",
    # Files are read from their beginning to their end, each in one piece.
    "spark.sql.files.maxPartitionBytes": str(1 << 40),
    "spark.sql.files.minPartitionNum": "1",
}
_EVENTS = "events"
_JOINED = "joined"
_NTH = "__acid_nth"


def compact(spark: SparkSession, job: CompactionJob, report: Report = unheard) -> CompactionResult:
    """Make the output of `job` below its staging directory; what an earlier attempt has left there is removed first.

    `report` hears of each phase. Raises FormatError or UnsupportedTableError for files that cannot be merged.
    """
    started = time.monotonic()
    files.remove(job.staging)
    report(Progress(0, 0, 0, "listing"))
    state = job.state()
    found = state.partitions[0].state
    with configured(spark, job.settings):
        if job.insert_only:
            rows, deletes = concatenate(spark, job, state, report), 0
        else:
            rows, deletes = _Merge(spark, job, state, report).run()
    made = tuple(name for name in (job.insert_output, job.delete_output) if name)
    written = [
        entry
        for name in made
        for entry in files.list_tree(files.join(job.staging, name))
        if not entry.is_directory and not entry.path.startswith(("_", "."))
    ]
    size = sum(entry.size for entry in written)
    report(Progress(rows + deletes, len(written), size, "written"))
    return CompactionResult(
        rows=rows,
        deletes=deletes,
        size=size,
        directories=made,
        seconds=round(time.monotonic() - started, 3),
        files=len(written),
        input_bytes=sum(of.size for of in (*found.data, *found.delete_deltas))
        + sum(file.size for file in found.originals),
    )


class _Task(NamedTuple):
    """What one task reads, in bytes, and the events that it writes."""

    size: int
    events: DataFrame


class _Merge:
    """The compaction of files with ACID columns."""

    def __init__(self, spark: SparkSession, job: CompactionJob, state: TableState, report: Report) -> None:
        self._spark = spark
        self._job = job
        self._state = state
        (self._partition,) = state.partitions
        self._report = report
        self._staging = Staging(job.staging)
        self._hive_3 = is_for_hive_3(job.parameters)

    def run(self) -> tuple[int, int]:
        """Write all that the job asks for; the numbers of rows and of delete events."""
        job, found = self._job, self._partition.state
        rows = deletes = 0
        if job.insert_output:
            refuse_instants(job.columns)
            self._report(Progress(0, 0, 0, "rows"))
            rows = self._rows(job.insert_output)
        if job.delete_output:
            self._report(Progress(rows, 0, 0, "deletes"))
            deletes = self._deletes(job.delete_output, found.delete_deltas)
        return rows, deletes

    def _deletes(self, output: str, deltas: Sequence[DataDirectory]) -> int:
        events = merged_events(self._partition, deltas, self._state.write_ids)
        if events:
            self._publish(output, self._staging.deletes(self._state.table, {(): events}, self._job.compression))
            return len(events)
        found = delete_events(self._spark, self._partition.scan_directories(deltas), self._state.write_ids)
        nothing = F.lit(None).cast(row_type(self._job.columns)).alias(ROW_COLUMN)
        in_one = _in_one_task(deltas, SMALL_BYTES)
        return self._placed(output, found.select(*ID_COLUMNS, nothing), DELETE, one_task=in_one)

    def _rows(self, output: str) -> int:
        job, partition = self._job, self._partition
        if job.kind == MINOR:
            if has_old_shape(self._spark, partition):
                raise FormatError(
                    f"{partition.location} has updates among its inserts, as Hive before version 3 wrote them: they "
                    "are merged by a major compaction"
                )
            partition = replace(partition, state=replace(partition.state, delete_deltas=()))
        if job.kind == REBALANCE:
            assert job.buckets is not None
            with rebalanced(self._spark, self._read(partition), job.buckets, job.order_by) as rows:
                return self._placed(output, self._events(rows), INSERT, one_task=job.buckets == 1)
        chosen = self._lanes(partition)
        if chosen and (written := self._by_lanes(output, partition, chosen)) is not None:
            return written
        many = job.raw or not _in_one_task(partition.state.data, SMALL_BYTES)
        return self._placed(output, self._events(self._read(partition)), INSERT, one_task=not many)

    def _read(self, partition: PartitionState) -> DataFrame:
        return read_rows(self._spark, replace(self._state, partitions=(partition,)))

    def _events(self, rows: DataFrame) -> DataFrame:
        """Rows with `KEY_COLUMNS` as insert events."""
        write_id, bucket, row_id = KEY_COLUMNS
        return rows.select(
            F.lit(INSERT_OPERATION).alias("operation"),
            F.col(write_id).alias("originalTransaction"),
            F.col(bucket).alias("bucket"),
            F.col(row_id).alias("rowId"),
            F.col(write_id).alias("currentTransaction"),
            F.struct(*(F.col(quoted(column.name)) for column in self._job.columns)).alias(ROW_COLUMN),
        )

    # --- after a shuffle, or in one task -------------------------------------------------------

    def _placed(self, name: str, events: DataFrame, holds: str, *, one_task: bool) -> int:
        """Write `events` as the directory `name`, sorted, in one file per bucket; the number of events."""
        placed = events.withColumn(BUCKET_COLUMN, F.coalesce(file_of_row(), F.lit(0)))
        placed = placed.coalesce(1) if one_task else placed.repartition(BUCKET_COLUMN)
        if holds == DELETE:
            # Hive 4 loses the events that follow a doubled one (acid-format.md §0.9).
            same_row = Window.partitionBy(BUCKET_COLUMN, *KEY).orderBy("currentTransaction")
            placed = placed.withColumn(_NTH, F.row_number().over(same_row)).where(F.col(_NTH) == 1)
        ordered = placed.sortWithinPartitions(BUCKET_COLUMN, *KEY)
        written = self._write(ordered.select(BUCKET_COLUMN, *ID_COLUMNS, ROW_COLUMN), (BUCKET_COLUMN,), holds, name)
        found = self._staging.staged(0, step=name)
        if not written:
            # A directory has at least one file: engines that list files do not see it otherwise (acid-format.md §2.7).
            found = [self._staging.nothing(self._state.table, ())]
        self._publish(name, found)
        return written

    def _write(self, frame: DataFrame, divided_by: tuple[str, ...], holds: str, step: str) -> int:
        counts = Observation()
        events = Events(frame.observe(counts, F.count(F.lit(1)).alias(_EVENTS)), divided_by, counts, holds)
        written = self._staging.write(
            events, self._job.compression, step=step, hive_3=self._hive_3, options=self._job.options
        )
        return written[_EVENTS]

    def _publish(self, name: str, found: Sequence[StagedFiles]) -> None:
        self._staging.publish(found, lambda _: (self._job.staging, name))

    # --- bucket by bucket ----------------------------------------------------------------------

    def _lanes(self, partition: PartitionState) -> list[Lane] | None:
        """The lanes by which to merge, None where they would not pay or not be right."""
        state = partition.state
        size = sum(directory.size for directory in state.data)
        deletes = sum(directory.size for directory in state.delete_deltas)
        # Beyond that deletes are not broadcast, and their join leaves no order.
        if size <= ONE_TASK_BYTES or deletes > BROADCAST_LIMIT_BYTES or not can_look():
            return None
        if has_old_shape(self._spark, partition):
            return None
        found = lanes(partition, self._keeps(partition))
        if not found or (len(found) > FEW_LANES and size < len(found) * LANE_BYTES):
            return None
        return found

    def _keeps(self, partition: PartitionState) -> Keeps:
        """Which files of `partition` become part of the new ones as they are: nothing of them is left out or changed.

        What the user wants written otherwise than by its compression is written, and so is what needs a user metadata
        of its own.
        """
        job, deltas = self._job, partition.state.delete_deltas
        deleted = deleted_rows(partition, deltas) if deltas else {}
        if job.options or self._hive_3 or deleted is None:
            return lambda directory, tail: False
        sources = deleted.keys()
        types = read_tail(empty_acid_file([(column.name, column.type) for column in job.columns])).types

        def keeps(directory: DataDirectory, tail: Tail) -> bool:
            return (
                directory.validity is RangeValidity.ALL
                and (tail.compression, tail.types) == (job.compression, types)
                and sum(stripe.length for stripe in tail.stripes) >= len(tail.stripes) * KEPT_STRIPE_BYTES
                and not has_rows_of(tail, sources)
            )

        return keeps

    def _by_lanes(self, output: str, partition: PartitionState, chosen: Sequence[Lane]) -> int | None:
        """Write each lane without a shuffle; the number of rows, None if what came out is not as it must be."""
        kept = self._kept(partition, chosen)
        unlike = mixed(kept)
        chosen = [lane.without_kept() if lane.bucket in unlike else lane for lane in chosen]
        kept = [piece for piece in kept if piece.bucket not in unlike]
        written = self._written(output, partition, chosen)
        if unlike := mixed([*kept, *written]):
            # Files of another writer, or of another version of it, are not joined with ours.
            again = [lane.of_kept() for lane in chosen if lane.bucket in unlike]
            written += self._written(f"{output}-again", partition, again)
            kept = [piece for piece in kept if piece.bucket not in unlike]
        found = by_bucket([*kept, *written])
        if found is None:
            LOG.warning("%s: merged once more, with a sort", self._job.location)
            self._staging.remove()
            return None
        rows = sum(piece.part.rows for of_bucket in found.values() for piece in of_bucket)
        made = StagedFiles(INSERT, (), self._joined(found, rows))
        self._publish(output, [made if found else self._staging.nothing(self._state.table, ())])
        return rows

    def _kept(self, partition: PartitionState, chosen: Sequence[Lane]) -> list[Piece]:
        """The files of lanes that stay as they are."""
        sizes = {file.path: file.size for directory in partition.state.data for file in directory.files}
        return pieces_of(
            [DataFilePath(files.join(partition.location, path), sizes[path]) for lane in chosen for path in lane.kept]
        )

    def _written(self, output: str, partition: PartitionState, chosen: Sequence[Lane]) -> list[Piece]:
        """Read and write what is not kept of lanes."""
        rows = 0
        paths: list[DataFilePath] = []
        with configured(self._spark, _FILE_BY_FILE):
            for number, together in enumerate(_jobs(chosen)):
                step = f"{output}-{number}"
                tasks = [task for lane in together for task in self._tasks(partition, lane)]
                # The longest begin first, so that none is left alone in the end.
                tasks.sort(key=lambda task: task.size, reverse=True)
                frame = reduce(DataFrame.unionAll, (task.events for task in tasks))
                rows += self._write(frame.select(*ID_COLUMNS, ROW_COLUMN), (), INSERT, step)
                paths += self._staging.paths(step)
                self._report(Progress(rows, len(paths), sum(path.size for path in paths), "rows"))
        return pieces_of(paths)

    def _tasks(self, partition: PartitionState, lane: Lane) -> list[_Task]:
        """The events of a lane by tasks: each a run, whose files are joined then.

        Where a file is copied to be joined, and where its metadata speak of its own rows, as few as can be.
        """
        tasks = []
        for runs in lane.written():
            parts = []
            for run in runs:
                of_run = replace(partition, state=restricted(partition.state, run.paths))
                events = self._events(self._read(of_run))
                in_order = events if run.in_order else events.coalesce(1).sortWithinPartitions(*KEY)
                parts.append(_Task(run.size, in_order.coalesce(1)))
            if self._hive_3 or files.rename_is_copy(self._job.staging):
                whole = reduce(DataFrame.unionAll, (part.events for part in parts))
                parts = [_Task(sum(part.size for part in parts), whole.coalesce(1))]
            tasks += parts
        return tasks

    def _joined(self, found: Mapping[int, Sequence[Piece]], rows: int) -> dict[int, str]:
        """One file for each bucket, by its path below the staging directory."""
        staging = self._staging.location
        buckets: dict[int, str] = {}
        size = 0
        for bucket, pieces in found.items():
            path = pieces[0].path.path
            if len(pieces) == 1 and files.is_below(path, staging):
                buckets[bucket] = path.removeprefix(staging).lstrip("/")
                continue
            buckets[bucket] = files.join(_JOINED, bucket_file_name(bucket))
            for length in join(pieces, files.join(staging, buckets[bucket])):
                size += length
                self._report(Progress(rows, len(buckets), size, "joining"))
        return buckets


def _jobs(chosen: Sequence[Lane]) -> list[list[Lane]]:
    """Lanes that are written together."""
    jobs: list[list[Lane]] = []
    left = 0
    for lane in chosen:
        runs = sum(map(len, lane.written()))
        if not runs:
            continue
        if not jobs or runs > left:
            jobs.append([])
            left = RUNS_PER_JOB
        jobs[-1].append(lane)
        left -= runs
    return jobs


def _in_one_task(directories: Sequence[DataDirectory], small_bytes: int) -> bool:
    """Whether one task reads and writes all: there is little, or one bucket only, and then nothing is shuffled."""
    if sum(directory.size for directory in directories) <= small_bytes:
        return True
    return len({file.path.rpartition("/")[2] for directory in directories for file in directory.files}) <= 1
