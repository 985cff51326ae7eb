"""What a compaction reads and writes, whichever way it goes: rows as events, files below its staging directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from hive_acid.compaction_job import CompactionJob, TellProgress
from hive_acid.format.names import is_for_hive_3
from hive_acid.format.rows import INSERT as INSERT_OPERATION
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.read.listing import PartitionState, TableState
from hive_acid.spark.read.table_frame import KEY_COLUMNS, read_rows
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.write.events import Events, row_columns
from hive_acid.spark.write.stage import SparkStaging
from hive_acid.write.staging import INSERT, StagedFiles


@dataclass
class Merging:
    """The compaction of files with ACID columns; `hive_3` says that Apache Hive 3.1 is to read the new ones."""

    spark: SparkSession
    job: CompactionJob
    state: TableState
    report: TellProgress
    staging: SparkStaging = field(init=False)
    hive_3: bool = field(init=False)
    phase: str = field(default="", init=False)
    """What is done now, and how: it is told with the progress."""
    _apart: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.staging = SparkStaging(self.job.staging)
        self.hive_3 = is_for_hive_3(self.job.parameters)
        names = tuple(column.name for column in self.state.table.columns)
        self._apart = names if self.staging.keeps_apart(self.job.compression) else ()

    @property
    def partition(self) -> PartitionState:
        """What there is to merge."""
        (only,) = self.state.partitions
        return only

    def read(self, partition: PartitionState) -> DataFrame:
        """The rows of `partition`, with `KEY_COLUMNS`."""
        return read_rows(self.spark, replace(self.state, partitions=(partition,)))

    def events(self, rows: DataFrame) -> DataFrame:
        """Rows with `KEY_COLUMNS` as insert events, ready for the writer: nothing is left to be done after a union."""
        write_id, bucket, row_id = KEY_COLUMNS
        names = [column.name for column in self.state.table.columns]
        return projected(
            rows,
            f"{INSERT_OPERATION} AS operation",
            f"{write_id} AS originalTransaction",
            f"{bucket} AS bucket",
            f"{row_id} AS rowId",
            f"{write_id} AS currentTransaction",
            *row_columns([quoted(name) for name in names], names, apart=bool(self._apart)),
        )

    def write(self, frame: DataFrame, divided_by: tuple[str, ...], holds: str, step: str) -> int:
        """Write events below the staging directory, as what `step` has written; their number."""
        events = Events(frame, divided_by, holds, apart=self._apart if holds == INSERT else ())
        written = self.staging.write(
            events, self.job.compression, step=step, hive_3=self.hive_3, options=self.job.options
        )
        return written[holds]

    def publish(self, name: str, found: Sequence[StagedFiles]) -> None:
        """Make the output directory `name` of files below the staging directory."""
        self.staging.publish(found, lambda _: (self.job.staging, name))
