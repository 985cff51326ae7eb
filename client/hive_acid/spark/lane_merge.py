"""Rows merged bucket by bucket: without a shuffle, mostly without a sort, and those of files that stay without a look.

Each lane is written by tasks of its own, and a bucket's pieces become one file; that they follow each other is not
believed but looked at.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame

from hive_acid import files
from hive_acid.errors import FormatError
from hive_acid.footers import DataFilePath
from hive_acid.format.names import bucket_file_name
from hive_acid.format.orc import empty_acid_file
from hive_acid.format.orc_tail import Tail, read_tail
from hive_acid.format.snapshot import RangeValidity
from hive_acid.format.state import DataDirectory
from hive_acid.spark.compaction_job import Progress
from hive_acid.spark.deleted import deleted_rows
from hive_acid.spark.events import INSERT, KEY
from hive_acid.spark.file_order import can_look
from hive_acid.spark.job_settings import configured
from hive_acid.spark.lanes import Keeps, Lane, has_rows_of, lanes, restricted
from hive_acid.spark.listing import PartitionState
from hive_acid.spark.merging import Merging
from hive_acid.spark.pieces import Piece, by_bucket, join, mixed, pieces_of
from hive_acid.spark.read import BROADCAST_LIMIT_BYTES, has_old_shape
from hive_acid.spark.stage import StagedFiles

LOG = logging.getLogger(__name__)

ONE_TASK_BYTES = 1024 * 1024
"""Up to so much is merged in one task, which is the least that Spark can do."""

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
_JOINED = "joined"


class _Task(NamedTuple):
    """What one task reads, in bytes, and the events that it writes."""

    size: int
    events: DataFrame


@dataclass(frozen=True, slots=True)
class LaneMerge:
    """The merge of a partition's rows by lanes."""

    _merging: Merging
    _partition: PartitionState

    def chosen(self) -> list[Lane] | None:
        """The lanes by which to merge, None where they would not pay or not be right."""
        state = self._partition.state
        size = sum(directory.size for directory in state.data)
        deletes = sum(directory.size for directory in state.delete_deltas)
        # Beyond that deletes are not broadcast, and their join leaves no order.
        if size <= ONE_TASK_BYTES or deletes > BROADCAST_LIMIT_BYTES or not can_look():
            return None
        if has_old_shape(self._merging.spark, self._partition):
            return None
        found = lanes(self._partition, self._keeps())
        if not found or (len(found) > FEW_LANES and size < len(found) * LANE_BYTES):
            return None
        return found

    def _keeps(self) -> Keeps:
        """Which files become part of the new ones as they are: nothing of them is left out or changed.

        What the user wants written otherwise than by its compression is written, and so is what needs a user metadata
        of its own.
        """
        job, deltas = self._merging.job, self._partition.state.delete_deltas
        deleted = deleted_rows([(self._partition, deltas)])
        if job.options or self._merging.hive_3 or deleted is None:
            return lambda directory, tail: False
        sources = deleted[0].keys()
        types = read_tail(empty_acid_file([(column.name, column.type) for column in job.columns])).types

        def keeps(directory: DataDirectory, tail: Tail) -> bool:
            return (
                directory.validity is RangeValidity.ALL
                and (tail.compression, tail.types) == (job.compression, types)
                and sum(stripe.length for stripe in tail.stripes) >= len(tail.stripes) * KEPT_STRIPE_BYTES
                and not has_rows_of(tail, sources)
            )

        return keeps

    def merge(self, output: str, chosen: Sequence[Lane]) -> int | None:
        """Write each lane without a shuffle; the number of rows, None if what came out is not as it must be."""
        try:
            kept = self._kept(chosen)
        except FormatError as error:
            LOG.info("%s: all is written again: %s", self._merging.job.location, error)
            kept, chosen = [], [lane.without_kept() for lane in chosen]
        unlike = mixed(kept)
        chosen = [lane.without_kept() if lane.bucket in unlike else lane for lane in chosen]
        kept = [piece for piece in kept if piece.bucket not in unlike]
        written = self._written(output, chosen)
        if unlike := mixed([*kept, *written]):
            # Files of another writer, or of another version of it, are not joined with ours.
            again = [lane.of_kept() for lane in chosen if lane.bucket in unlike]
            written += self._written(f"{output}-again", again)
            kept = [piece for piece in kept if piece.bucket not in unlike]
        found = by_bucket([*kept, *written])
        if found is None:
            LOG.warning("%s: merged once more, with a sort", self._merging.job.location)
            self._merging.staging.remove()
            return None
        rows = sum(piece.part.rows for of_bucket in found.values() for piece in of_bucket)
        made = StagedFiles(INSERT, (), self._joined(found, rows))
        self._merging.publish(output, [made if found else self._merging.staging.nothing(self._merging.state.table, ())])
        return rows

    def _kept(self, chosen: Sequence[Lane]) -> list[Piece]:
        """The files of lanes that stay as they are."""
        sizes = {file.path: file.size for directory in self._partition.state.data for file in directory.files}
        return pieces_of(
            [
                DataFilePath(files.join(self._partition.location, path), sizes[path])
                for lane in chosen
                for path in lane.kept
            ]
        )

    def _written(self, output: str, chosen: Sequence[Lane]) -> list[Piece]:
        """Read and write what is not kept of lanes."""
        rows = 0
        paths: list[DataFilePath] = []
        with configured(self._merging.spark, _FILE_BY_FILE):
            for number, together in enumerate(_jobs(chosen)):
                step = f"{output}-{number}"
                tasks = [task for lane in together for task in self._tasks(lane)]
                # The longest begin first, so that none is left alone in the end.
                tasks.sort(key=lambda task: task.size, reverse=True)
                frame = reduce(DataFrame.unionAll, (task.events for task in tasks))
                rows += self._merging.write(frame, (), INSERT, step)
                paths += self._merging.staging.paths(step)
                self._merging.report(Progress(rows, len(paths), sum(path.size for path in paths), "rows"))
        return pieces_of(paths)

    def _tasks(self, lane: Lane) -> list[_Task]:
        """The events of a lane by tasks: each a run, whose files are joined then.

        Where a file is copied to be joined, and where its metadata speak of its own rows, as few as can be.
        """
        tasks = []
        for runs in lane.written():
            parts = []
            for run in runs:
                of_run = replace(self._partition, state=restricted(self._partition.state, run.paths))
                events = self._merging.events(self._merging.read(of_run))
                in_order = events if run.in_order else events.coalesce(1).sortWithinPartitions(*KEY)
                parts.append(_Task(run.size, in_order.coalesce(1)))
            if self._merging.hive_3 or files.rename_is_copy(self._merging.job.staging):
                whole = reduce(DataFrame.unionAll, (part.events for part in parts))
                parts = [_Task(sum(part.size for part in parts), whole.coalesce(1))]
            tasks += parts
        return tasks

    def _joined(self, found: Mapping[int, Sequence[Piece]], rows: int) -> dict[int, str]:
        """One file for each bucket, by its path below the staging directory."""
        staging = self._merging.staging.location
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
                self._merging.report(Progress(rows, len(buckets), size, "joining"))
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
