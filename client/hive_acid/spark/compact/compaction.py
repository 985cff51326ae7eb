"""Compaction of one partition directory: the files of many writes become one file per bucket (acid-format.md §6.2).

A job says what to read and how the output is called; which directories those are is the metastore's decision. The
output appears below the job's staging directory, complete, and the metastore renames it into place.

Rows are written as cheaply as their number and their files allow: bucket by bucket without a shuffle and mostly without
a sort (`hive_acid.spark.compact.bucket_merge_plan`), by pyarrow if they are not many; a few in one task of Spark, or
after a shuffle by bucket. Files with large stripes, of which nothing is deleted, become part of the new ones as they
are. A few delete events are merged without Spark.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from hive_acid.compaction_job import (
    MINOR,
    REBALANCE,
    CompactionJob,
    CompactionResult,
    JobProgress,
    TellProgress,
    unheard,
)
from hive_acid.errors import FormatError
from hive_acid.filesystem import files
from hive_acid.format.rows import ID_COLUMNS, KEY
from hive_acid.format.state import DataDirectory
from hive_acid.spark.compact.bucket_merge import BucketMerge
from hive_acid.spark.compact.insert_only import compact_insert_only
from hive_acid.spark.compact.job import state_of
from hive_acid.spark.compact.merging import Merging
from hive_acid.spark.compact.rebalance import rebalanced
from hive_acid.spark.jvm.job_settings import configured
from hive_acid.spark.limits import DEFAULT, Limits
from hive_acid.spark.plans.choice import Choice
from hive_acid.spark.plans.compaction_plan import (
    DELETE_EVENTS,
    ROWS,
    CompactionPlan,
    MergedBy,
    MergedInsteadPlan,
    deletes_by,
    rebalanced_into,
    rows_by,
    sorted_by,
)
from hive_acid.spark.plans.telling import tell
from hive_acid.spark.read.deleted import merged_events
from hive_acid.spark.read.scan import ROW_COLUMN
from hive_acid.spark.read.table_frame import delete_events, has_pre_hive_3_updates
from hive_acid.spark.values.types import refuse_instants, row_type
from hive_acid.spark.write.events import BUCKET_COLUMN, FILE_OF_ROW
from hive_acid.write.staging import DELETE, INSERT

_NTH = "__acid_nth"


def compact(
    spark: SparkSession, job: CompactionJob, report: TellProgress = unheard, limits: Limits = DEFAULT
) -> CompactionResult:
    """Make the output of `job` below its staging directory; what an earlier attempt has left there is removed first.

    `report` hears of each phase. Raises FormatError or UnsupportedTableError for files that cannot be merged.
    """
    started = time.monotonic()
    files.remove(job.staging)
    report(JobProgress.at(0, 0, 0, "listing"))
    state = state_of(job, limits)
    found = state.partitions[0].state
    with configured(spark, job.settings):
        if job.insert_only:
            rows, deletes = compact_insert_only(spark, job, state, report), 0
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
    report(JobProgress.at(rows + deletes, len(written), size, "written"))
    return CompactionResult(
        rows=rows,
        deletes=deletes,
        size_bytes=size,
        directories=made,
        seconds=round(time.monotonic() - started, 3),
        files=len(written),
        input_bytes=sum(of.size for of in (*found.data, *found.delete_deltas))
        + sum(file.size for file in found.originals),
    )


class _Merge(Merging):
    """The compaction itself."""

    def run(self) -> tuple[int, int]:
        """Write all that the job asks for; the numbers of rows and of delete events."""
        job, found = self.job, self.partition.state
        rows = deletes = 0
        if job.insert_output:
            refuse_instants(self.state.table.columns)
            rows = self._rows(job.insert_output)
        if job.delete_output:
            deletes = self._deletes(job.delete_output, found.delete_deltas, rows)
        return rows, deletes

    def _deletes(self, output: str, deltas: Sequence[DataDirectory], rows: int) -> int:
        known, events = merged_events(self.partition, deltas, self.state.write_ids, self.state.limits)
        plan = self._plan(DELETE_EVENTS, deletes_by(known, self._sorted(deltas), self.state.limits), rows)
        if events is not None:
            assert plan.by.way is MergedBy.CLIENT
            self.publish(output, self.staging.deletes(self.state.table, {(): events}, self.job.compression))
            return len(events)
        found = delete_events(self.spark, self.partition.scan_directories(deltas), self.state.write_ids)
        nothing = F.lit(None).cast(row_type(self.state.table.columns)).alias(ROW_COLUMN)
        in_one = plan.by.way is MergedBy.ONE_TASK
        return self._placed(output, found.select(*ID_COLUMNS, nothing), DELETE, one_task=in_one)

    def _rows(self, output: str) -> int:
        job, partition = self.job, self.partition
        if job.type == MINOR:
            if has_pre_hive_3_updates(self.spark, partition):
                raise FormatError(
                    f"{partition.location} has updates among its inserts, as Hive before version 3 wrote them: they "
                    "are merged by a major compaction"
                )
            partition = replace(partition, state=replace(partition.state, delete_deltas=()))
        if job.type == REBALANCE:
            assert job.buckets is not None
            self._plan(ROWS, rebalanced_into(job.buckets))
            with rebalanced(self.spark, self.read(partition), job.buckets, job.order_by) as rows:
                return self._placed(output, self.events(rows), INSERT, one_task=job.buckets == 1)
        merge = BucketMerge(self, partition)
        facts, buckets = merge.looked_at()
        otherwise = self._sorted(partition.state.data, raw=bool(job.raw))
        plan = self._plan(ROWS, rows_by(facts, otherwise, self.state.limits), kept=facts.kept)
        if plan.by_bucket:
            written = merge.merge(output, buckets, facts)
            if written is not None:
                return written
            why = "what came out was not in the order of its keys"
            tell(MergedInsteadPlan(job.type, job.location, Choice(otherwise.way, why)))
        in_one = otherwise.way is MergedBy.ONE_TASK
        return self._placed(output, self.events(self.read(partition)), INSERT, one_task=in_one)

    def _plan(self, what: str, by: Choice[MergedBy], written: int = 0, *, kept: int = 0) -> CompactionPlan:
        """The plan of what is done now, which is told; so many rows are written before."""
        plan = CompactionPlan(self.job.type, self.job.location, what, by, kept)
        tell(plan)
        self.phase = plan.phase
        self.report(JobProgress.at(written, 0, 0, self.phase))
        return plan

    def _sorted(self, directories: Sequence[DataDirectory], *, raw: bool = False) -> Choice[MergedBy]:
        """How Spark sorts and writes what is in `directories`."""
        names = {file.path.rpartition("/")[2] for directory in directories for file in directory.files}
        return sorted_by(sum(of.size for of in directories), len(names), self.state.limits, raw=raw)

    # --- after a shuffle, or in one task -------------------------------------------------------

    def _placed(self, name: str, events: DataFrame, holds: str, *, one_task: bool) -> int:
        """Write `events` as the directory `name`, sorted, in one file per bucket; the number of events."""
        placed = events.withColumn(BUCKET_COLUMN, F.expr(f"coalesce({FILE_OF_ROW}, 0)"))
        placed = placed.coalesce(1) if one_task else placed.repartition(BUCKET_COLUMN)
        if holds == DELETE:
            # Hive 4 loses the events that follow a doubled one (acid-format.md §3.8).
            same_row = Window.partitionBy(BUCKET_COLUMN, *KEY).orderBy("currentTransaction")
            placed = placed.withColumn(_NTH, F.row_number().over(same_row)).where(F.col(_NTH) == 1)
        ordered = placed.sortWithinPartitions(BUCKET_COLUMN, *KEY)
        written = self.write(ordered.select(BUCKET_COLUMN, *events.columns), (BUCKET_COLUMN,), holds, name)
        found = self.staging.staged(0, step=name)
        if not written:
            # A directory has at least one file: engines that list files do not see it otherwise (acid-format.md §2.7).
            found = [self.staging.nothing(self.state.table, ())]
        self.publish(name, found)
        return written
