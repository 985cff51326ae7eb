"""Compaction of one partition directory: the files of many writes become one file per bucket (acid-format.md §6.2).

A job says what to read and how the output is called; which directories those are is the metastore's decision. The
output appears below the job's staging directory, complete, and the metastore renames it into place.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid import files
from hive_acid.catalog import Column
from hive_acid.errors import FormatError
from hive_acid.format.names import is_hidden, parse_directory
from hive_acid.format.rows import INSERT as INSERT_OPERATION
from hive_acid.format.snapshot import ValidWriteIdList
from hive_acid.spark.events import BUCKET_COLUMN, KEY, Events, file_of_row
from hive_acid.spark.read import BROADCAST_LIMIT_BYTES, anti_join, delete_events
from hive_acid.spark.scan import ID_COLUMNS, ROW_COLUMN, ScanDirectory, row_fields, scan
from hive_acid.spark.stage import Staging
from hive_acid.spark.types import row_type

KINDS = ("minor", "major")
_EVENTS = "events"
_NTH = "__acid_nth"


@dataclass(frozen=True, slots=True)
class CompactionJob:
    """What to compact; `from_json` documents the fields."""

    kind: str
    location: str
    staging: str
    columns: tuple[Column, ...]
    write_ids: ValidWriteIdList
    data: tuple[ScanDirectory, ...]
    deletes: tuple[ScanDirectory, ...]
    insert_output: str | None
    delete_output: str | None
    compression: str

    @classmethod
    def from_json(cls, job: Mapping[str, Any]) -> CompactionJob:
        """The job of a JSON object.

        ``type`` is minor or major; ``location`` the table's or partition's directory; ``staging`` a hidden directory
        for the output; ``schema`` the columns in the files as [name, Hive type]; ``write_ids`` the snapshot's text;
        ``data`` and ``deletes`` the directories to read, as [name, "all" or "some"] of their rows; ``insert_output``
        and ``delete_output`` the names of the directories to make, or null; ``compression`` zlib or snappy.

        Raises FormatError for a job that cannot be understood.
        """
        try:
            kind, location = job["type"], job["location"]
            parsed = cls(
                kind=kind,
                location=location,
                staging=job["staging"],
                columns=tuple(Column(name, type_) for name, type_ in job["schema"]),
                write_ids=ValidWriteIdList.parse(job["write_ids"]),
                data=tuple(_directory(location, *found) for found in job["data"]),
                deletes=tuple(_directory(location, *found) for found in job["deletes"]),
                insert_output=job.get("insert_output"),
                delete_output=job.get("delete_output"),
                compression=job.get("compression") or "zlib",
            )
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"the compaction job lacks or misstates {error}") from error
        if kind not in KINDS:
            raise FormatError(f"a compaction is {' or '.join(KINDS)}, not '{kind}'")
        if kind == "major" and (parsed.delete_output or not parsed.insert_output):
            raise FormatError("a major compaction makes one base, and no delete delta")
        return parsed


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What a compaction has made; `size` in bytes, `directories` by name."""

    rows: int
    deletes: int
    size: int
    directories: tuple[str, ...]
    seconds: float


def compact(spark: SparkSession, job: CompactionJob) -> CompactionResult:
    """Make the output of `job` below its staging directory; what an earlier attempt has left there is removed first."""
    started = time.monotonic()
    files.remove(job.staging)
    row = row_type(job.columns)
    rows = deletes = 0
    if job.insert_output:
        rows = _write(job, job.insert_output, _rows(spark, row, job), one_task=_has_one_bucket(job.data))
    if job.delete_output:
        found = delete_events(spark, job.deletes, job.write_ids)
        events = found.select(*ID_COLUMNS, F.lit(None).cast(row).alias(ROW_COLUMN))
        deletes = _write(job, job.delete_output, events, one_task=_has_one_bucket(job.deletes), distinct=True)
    made = tuple(name for name in (job.insert_output, job.delete_output) if name)
    return CompactionResult(
        rows=rows,
        deletes=deletes,
        size=sum(entry.size for name in made for entry in files.list_tree(files.join(job.staging, name))),
        directories=made,
        seconds=round(time.monotonic() - started, 3),
    )


def _rows(spark: SparkSession, row: t.StructType, job: CompactionJob) -> DataFrame:
    """The insert events of the output: all of them for a minor compaction, those not deleted for a major one."""
    events = scan(spark, row, job.data, job.write_ids)
    if job.kind == "major":
        if job.deletes:
            broadcast = sum(map(_size, job.deletes)) <= BROADCAST_LIMIT_BYTES
            events = anti_join(events, delete_events(spark, job.deletes, job.write_ids), broadcast=broadcast)
        events = events.withColumns(
            {"operation": F.lit(INSERT_OPERATION), "currentTransaction": F.col("originalTransaction")}
        )
    return events.select(*ID_COLUMNS, F.struct(*row_fields(row.names)).alias(ROW_COLUMN))


def _write(job: CompactionJob, name: str, events: DataFrame, *, one_task: bool, distinct: bool = False) -> int:
    """Write `events` as the directory `name`, sorted, in one file per bucket; the number of events."""
    placed = events.withColumn(BUCKET_COLUMN, F.coalesce(file_of_row(), F.lit(0)))
    placed = placed.coalesce(1) if one_task else placed.repartition(BUCKET_COLUMN)
    if distinct:
        # Hive 4 loses the events that follow a doubled one (acid-format.md §0.9).
        same_row = Window.partitionBy(BUCKET_COLUMN, *KEY).orderBy("currentTransaction")
        placed = placed.withColumn(_NTH, F.row_number().over(same_row)).where(F.col(_NTH) == 1)
    counts = Observation()
    ordered = placed.observe(counts, F.count(F.lit(1)).alias(_EVENTS)).sortWithinPartitions(BUCKET_COLUMN, *KEY)
    frame = ordered.select(BUCKET_COLUMN, *ID_COLUMNS, ROW_COLUMN)
    staging = Staging(job.staging)
    written = staging.write(Events(frame, (BUCKET_COLUMN,), counts), job.compression, step=name)[_EVENTS]
    if not written:
        # A directory has at least one file: engines that list files do not see it otherwise (acid-format.md §2.7).
        nothing = Observation()
        empty = frame.drop(BUCKET_COLUMN).limit(0).coalesce(1).observe(nothing, F.count(F.lit(1)).alias(_EVENTS))
        staging.write(Events(empty, (), nothing), job.compression, step=f"{name}-empty")
        name_of_step = f"{name}-empty"
    else:
        name_of_step = name
    staging.publish(staging.staged(0, step=name_of_step), lambda _: (job.staging, name))
    return written


def _directory(location: str, name: str, visible: str) -> ScanDirectory:
    directory = parse_directory(name)
    if directory is None or visible not in ("all", "some"):
        raise ValueError(f"directory {name} ({visible})")
    return ScanDirectory(files.join(location, name), directory, visible == "all")


def _size(directory: ScanDirectory) -> int:
    return sum(entry.size for entry in files.list_tree(directory.path))


def _has_one_bucket(directories: Sequence[ScanDirectory]) -> bool:
    """Whether all files have the same name: then one task reads and writes them, and nothing is shuffled."""
    names = (entry.path for found in directories for entry in files.list_tree(found.path, max_depth=1))
    return len({name for name in names if not is_hidden(name)}) <= 1
