"""Rows merged bucket by bucket: without a shuffle, mostly without a sort, and those of files that stay without a look.

Each bucket is written by tasks of its own, of this process (`hive_acid.spark.compact.arrow_merge`) or of Spark, and a
bucket's segments become one file; that they follow each other is not believed but looked at.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import NamedTuple

from pyspark.sql import DataFrame

from hive_acid.compaction_job import JobProgress
from hive_acid.errors import FormatError
from hive_acid.filesystem import files
from hive_acid.filesystem.footers import DataFilePath
from hive_acid.format.deletion_bitmap import DeletionBitmap, RowSource
from hive_acid.format.names import bucket_file_name
from hive_acid.format.orc.file import empty_acid_file
from hive_acid.format.orc.tail import OrcType, Tail, read_tail
from hive_acid.format.rows import KEY
from hive_acid.format.snapshot import RangeValidity
from hive_acid.format.state import DataDirectory
from hive_acid.spark.compact import arrow_merge
from hive_acid.spark.compact.arrow_merge import ArrowMerge
from hive_acid.spark.compact.bucket_merge_plan import (
    BucketMergePlan,
    Unfit,
    bucket_merge_plans,
    has_rows_of,
    restricted,
)
from hive_acid.spark.compact.file_order import can_look
from hive_acid.spark.compact.merging import Merging
from hive_acid.spark.compact.stripe_concatenation import Segment, by_bucket, concatenate, mixed, segments_of
from hive_acid.spark.jvm.job_settings import configured
from hive_acid.spark.limits import Limits
from hive_acid.spark.plans.choice import Choice
from hive_acid.spark.plans.compaction_plan import (
    MergedBy,
    MergedInsteadPlan,
    MergeFacts,
    is_taken_over,
    stripes_stay,
    why_not_by_arrow,
    why_not_by_bucket,
)
from hive_acid.spark.plans.telling import tell
from hive_acid.spark.read.deleted import deleted_rows
from hive_acid.spark.read.listing import PartitionState
from hive_acid.spark.read.table_frame import has_pre_hive_3_updates
from hive_acid.write.staging import INSERT, StagedFiles

LOG = logging.getLogger(__name__)

_FILE_BY_FILE = {
    # A union of frames with one part each has a part for each of them.
    "spark.sql.unionOutputPartitioning": "false",
    # Files are read from their beginning to their end, each in one piece.
    "spark.sql.files.maxPartitionBytes": str(1 << 40),
    "spark.sql.files.minPartitionNum": "1",
}
_JOINED = "joined"
_WRITTEN = "merged"


class _Task(NamedTuple):
    """What one task reads, in bytes, and the events that it writes."""

    size: int
    events: DataFrame


@dataclass
class BucketMerge:
    """The merge of a partition's rows by a plan for each bucket."""

    _merging: Merging
    _partition: PartitionState

    @property
    def _limits(self) -> Limits:
        return self._merging.state.limits

    @cached_property
    def _types(self) -> tuple[OrcType, ...]:
        """Those of the files that are written now."""
        columns = list(self._merging.job.schema)
        return read_tail(empty_acid_file(columns)).types

    @cached_property
    def _deleted(self) -> Mapping[RowSource, DeletionBitmap] | None:
        """The rows that go, None if that is not known here."""
        deletes = self._partition.state.delete_deltas
        rows = deleted_rows([(self._partition, deletes)], self._merging.state.write_ids, self._limits).rows
        return None if rows is None else rows[0]

    def looked_at(self) -> tuple[MergeFacts, list[BucketMergePlan]]:
        """What is known of the files, as far as it decides how they are merged, and the plans of its buckets."""
        state = self._partition.state
        facts = MergeFacts(
            sum(directory.size for directory in state.data),
            sum(directory.size for directory in state.delete_deltas),
            checkable=can_look(),
        )
        if why_not_by_bucket(facts, self._limits):
            return facts, []
        facts = replace(facts, pre_hive_3=has_pre_hive_3_updates(self._merging.spark, self._partition))
        if why_not_by_bucket(facts, self._limits):
            return facts, []
        found = bucket_merge_plans(self._partition, self._keeps, self._is_plain, self._limits)
        if isinstance(found, Unfit):
            return replace(facts, unfit=found.why), []
        return _with_plans(facts, found), found

    def _is_new(self, tail: Tail) -> bool:
        """Whether a file is such as would be written now.

        What the user wants written otherwise than by its compression Spark writes, and so what needs a user metadata
        of its own.
        """
        job = self._merging.job
        if job.options or self._merging.hive_3 or self._deleted is None:
            return False
        return tail.types == self._types

    def _is_plain(self, tail: Tail) -> bool:
        """Whether a file's rows are pyarrow's to read and write."""
        return self._is_new(tail) and arrow_merge.is_plain(tail, self._limits)

    def _keeps(self, directory: DataDirectory, tail: Tail) -> bool:
        """Whether a file becomes part of the new one as it is: nothing of it is left out or changed."""
        return (
            self._is_new(tail)
            and directory.validity is RangeValidity.ALL
            and tail.compression == self._merging.job.compression
            and stripes_stay(len(tail.stripes), sum(stripe.length for stripe in tail.stripes), self._limits)
            and not has_rows_of(tail, self._deleted or ())
        )

    def merge(self, output: str, chosen: Sequence[BucketMergePlan], facts: MergeFacts) -> int | None:
        """Write each bucket without a shuffle; the number of rows, None if what came out is not as it must be."""
        try:
            kept = self._kept(chosen)
        except FormatError as error:
            LOG.info("%s: all is written again: %s", self._merging.job.location, error)
            kept, chosen = [], [plan.keeping() for plan in chosen]
        chosen = self._of_one_writer(chosen, kept, facts)
        stays = {files.join(self._partition.location, path) for plan in chosen for path in plan.kept}
        if len(stays) < len(kept):
            LOG.info(
                "%s: %d files of another writer are not copied", self._merging.job.location, len(kept) - len(stays)
            )
        kept = [segment for segment in kept if segment.path.path in stays]
        of_others = {segment.bucket for segment in kept if not segment.part.is_of_cpp}
        by_spark = [plan for plan in chosen if plan.bucket in of_others and plan.written()]
        by_arrow = [plan for plan in chosen if plan.bucket not in of_others]
        written: list[Segment] | None = []
        if (
            any(plan.written() for plan in by_arrow)
            and (written := self._by_arrow(output, by_arrow, kept, facts)) is None
        ):
            by_spark = list(chosen)
        if by_spark:
            if written is not None and why_not_by_arrow(facts, self._limits) is None:
                self._tell_instead("a file that is copied is of another writer")
            written = [*(written or ()), *self._by_spark(output, by_spark)]
            if unlike := mixed([*kept, *written]):
                # Files of another writer, or of another version of it, are not joined with ours.
                again = [plan.of_kept() for plan in chosen if plan.bucket in unlike]
                written += self._by_spark(f"{output}-again", again)
                kept = [segment for segment in kept if segment.bucket not in unlike]
        written = written or []
        found = by_bucket([*kept, *written])
        if found is None:
            LOG.warning("%s: merged once more, with a sort", self._merging.job.location)
            self._merging.staging.remove()
            return None
        rows = sum(segment.part.rows for of_bucket in found.values() for segment in of_bucket)
        made = StagedFiles(INSERT, (), self._joined(found, rows))
        self._merging.publish(output, [made if found else self._merging.staging.nothing(self._merging.state.table, ())])
        return rows

    def _kept(self, chosen: Sequence[BucketMergePlan]) -> list[Segment]:
        """The files of buckets that stay as they are."""
        sizes = {file.path: file.size for directory in self._partition.state.data for file in directory.files}
        return segments_of(
            [
                DataFilePath(files.join(self._partition.location, path), sizes[path])
                for plan in chosen
                for path in plan.kept
            ]
        )

    def _of_one_writer(
        self, chosen: Sequence[BucketMergePlan], kept: Sequence[Segment], facts: MergeFacts
    ) -> list[BucketMergePlan]:
        """The plans with files kept in each bucket that one writer has written, as what is written beside them will be.

        Those are pyarrow's. Of a bucket with files of others either nothing is kept, if pyarrow may write it all, or
        the files of whoever has written most of it.
        """
        of_bucket: dict[int | None, list[Segment]] = {}
        for segment in kept:
            of_bucket.setdefault(segment.bucket, []).append(segment)
        taken_over, most = [], []
        for plan in chosen:
            sizes: Counter[Hashable] = Counter()
            for segment in (segments := of_bucket.get(plan.bucket, [])):
                sizes[segment.part.kind] += segment.path.size
            fits = len(sizes) <= 1 and (all(one.part.is_of_cpp for one in segments) or not plan.written())
            kind = max(sizes, key=lambda kind: sizes[kind], default=None)
            paths = {one.path.path for one in segments if one.part.kind == kind}
            here = {path for path in plan.kept if files.join(self._partition.location, path) in paths}
            most.append(plan.keeping(here))
            may = plan.plain and is_taken_over(plan.size, self._limits)
            taken_over.append(plan.keeping() if may and not fits else most[-1])
        return most if why_not_by_arrow(_with_plans(facts, taken_over), self._limits) else taken_over

    def _by_arrow(
        self, output: str, chosen: Sequence[BucketMergePlan], kept: Sequence[Segment], facts: MergeFacts
    ) -> list[Segment] | None:
        """Have pyarrow write what is not kept of buckets; None if that is Spark's to do.

        What is kept may be of another version of pyarrow: then all of it is written by Spark.
        """
        if why_not_by_arrow(facts, self._limits):
            return None  # as it was planned
        if why := why_not_by_arrow(_with_plans(facts, chosen), self._limits):
            self._tell_instead(why)  # now that what was to be kept is written
            return None
        job = self._merging.job
        directory = files.join(job.staging, _WRITTEN, output)
        merge = ArrowMerge(
            self._partition.location,
            self._types,
            job.compression,
            self._merging.state.write_ids,
            self._partly_visible,
            self._deleted or {},
            self._tell,
            self._limits,
        )
        paths = merge.written(chosen, directory)
        if paths is None:
            self._tell_instead("pyarrow could not read or write a file")
            return None
        written = segments_of(paths)
        if mixed([*kept, *written]):
            files.remove(directory)
            self._tell_instead("a file that is copied is of another version of pyarrow")
            return None
        return written

    def _tell_instead(self, why: str) -> None:
        """Say that Spark does what pyarrow was to do."""
        job = self._merging.job
        tell(MergedInsteadPlan(job.type, job.location, Choice(MergedBy.BUCKETS, why)))

    @property
    def _partly_visible(self) -> frozenset[str]:
        """The names of the directories of which not all rows are visible, or not all writes are known to be."""
        data = self._partition.state.data
        return frozenset(found.name for found in data if found.validity is not RangeValidity.ALL)

    def _tell(self, rows: int, made: int, size: int) -> None:
        self._merging.report(JobProgress.at(rows, made, size, self._merging.phase))

    def _by_spark(self, output: str, chosen: Sequence[BucketMergePlan]) -> list[Segment]:
        """Have Spark read and write what is not kept of buckets."""
        rows = 0
        paths: list[DataFilePath] = []
        with configured(self._merging.spark, _FILE_BY_FILE):
            for number, together in enumerate(_jobs(chosen, self._limits.runs_per_job)):
                step = f"{output}-{number}"
                tasks = [task for plan in together for task in self._tasks(plan)]
                # The longest begin first, so that none is left alone in the end.
                tasks.sort(key=lambda task: task.size, reverse=True)
                frame = reduce(DataFrame.unionAll, (task.events for task in tasks))
                rows += self._merging.write(frame, (), INSERT, step)
                paths += self._merging.staging.paths(step)
                self._tell(rows, len(paths), sum(path.size for path in paths))
        return segments_of(paths)

    def _tasks(self, plan: BucketMergePlan) -> list[_Task]:
        """The events of a bucket by tasks: each a run, whose files are joined then.

        Where a file is copied to be joined, and where its metadata speak of its own rows, as few as can be.
        """
        tasks = []
        for runs in plan.written():
            parts = []
            for run in runs:
                of_run = replace(self._partition, state=restricted(self._partition.state, run.paths))
                events = self._merging.events(self._merging.read(of_run))
                in_order = events if run.in_order else events.coalesce(1).sortWithinPartitions(*KEY)
                parts.append(_Task(run.size, in_order.coalesce(1)))
            if self._merging.hive_3 or self._merging.staging.is_bypassed:
                whole = reduce(DataFrame.unionAll, (part.events for part in parts))
                parts = [_Task(sum(part.size for part in parts), whole.coalesce(1))]
            tasks += parts
        return tasks

    def _joined(self, found: Mapping[int, Sequence[Segment]], rows: int) -> dict[int, str]:
        """One file for each bucket, by its path below the staging directory."""
        staging = self._merging.staging.location
        buckets: dict[int, str] = {}
        size = 0
        for bucket, segments in found.items():
            path = segments[0].path.path
            if len(segments) == 1 and files.is_below(path, staging):
                buckets[bucket] = path.removeprefix(staging).lstrip("/")
                continue
            buckets[bucket] = files.join(_JOINED, bucket_file_name(bucket))
            for length in concatenate(segments, files.join(staging, buckets[bucket])):
                size += length
                self._merging.report(JobProgress.at(rows, len(buckets), size, "joining"))
        return buckets


def _with_plans(facts: MergeFacts, found: Sequence[BucketMergePlan]) -> MergeFacts:
    """What is known by the plans of buckets as well."""
    runs = [run for plan in found for together in plan.written() for run in together]
    return replace(
        facts,
        buckets=len(found),
        kept=sum(len(plan.kept) for plan in found),
        plain=all(plan.plain for plan in found),
        written_bytes=sum(run.size for run in runs),
        sorted_bytes=max((run.size for run in runs if run.overlap), default=0),
    )


def _jobs(chosen: Sequence[BucketMergePlan], most_runs: int) -> list[list[BucketMergePlan]]:
    """Buckets that are written together."""
    jobs: list[list[BucketMergePlan]] = []
    left = 0
    for plan in chosen:
        runs = sum(map(len, plan.written()))
        if not runs:
            continue
        if not jobs or runs > left:
            jobs.append([])
            left = most_runs
        jobs[-1].append(plan)
        left -= runs
    return jobs
