"""Compaction of one partition directory: the files of many writes become one file per bucket (acid-format.md §6.2).

A job says what to read and how the output is called; which directories those are is the metastore's decision. The
output appears below the job's staging directory, complete, and the metastore renames it into place.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F

from hive_acid import files
from hive_acid.catalog import Column, Table
from hive_acid.errors import FormatError
from hive_acid.format.names import is_for_hive_3, parse_directory
from hive_acid.format.rows import INSERT as INSERT_OPERATION
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.format.state import DataDirectory, directory_state
from hive_acid.spark.assign import quoted
from hive_acid.spark.events import BUCKET_COLUMN, DELETE, INSERT, KEY, Events, file_of_row
from hive_acid.spark.listing import UNPARTITIONED, PartitionState, TableState
from hive_acid.spark.read import KEY_COLUMNS, delete_events, has_old_shape, read_rows
from hive_acid.spark.scan import ID_COLUMNS, ROW_COLUMN
from hive_acid.spark.stage import Staging
from hive_acid.spark.types import refuse_instants, row_type

KINDS = ("minor", "major")
_EVENTS = "events"
_NTH = "__acid_nth"
_ALL_TXNS = ValidTxnList.parse(f"{2**63 - 1}:{2**63 - 1}::")
"""A job names directories that its compaction sees: whose transactions they are of has been looked at."""


@dataclass(frozen=True, slots=True)
class CompactionJob:
    """What to compact; `from_json` documents the fields."""

    kind: str
    location: str
    staging: str
    columns: tuple[Column, ...]
    write_ids: ValidWriteIdList
    data: tuple[str, ...]
    raw: tuple[str, ...]
    deletes: tuple[str, ...]
    insert_output: str | None
    delete_output: str | None
    compression: str
    parameters: Mapping[str, str]

    @classmethod
    def from_json(cls, job: Mapping[str, Any]) -> CompactionJob:
        """The job of a JSON object.

        ``type`` is minor or major; ``location`` the table's or partition's directory; ``staging`` a hidden directory
        for the output; ``schema`` the columns in the files as [name, Hive type]; ``write_ids`` the snapshot's text;
        ``data`` and ``deletes`` the directories to read, as [name, "all" or "some"] of their rows; ``raw`` the paths of
        files without ACID columns; ``insert_output`` and ``delete_output`` the names of the directories to make, or
        null; ``compression`` zlib or snappy; ``parameters`` those of the table that tell how its files are read.

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
                data=tuple(_name(*found) for found in job["data"]),
                raw=tuple(job.get("raw") or ()),
                deletes=tuple(_name(*found) for found in job["deletes"]),
                insert_output=job.get("insert_output"),
                delete_output=job.get("delete_output"),
                compression=job.get("compression") or "zlib",
                parameters=dict(job.get("parameters") or {}),
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
    state = _state(job)
    found = state.partitions[0].state
    rows = deletes = 0
    if job.insert_output:
        refuse_instants(job.columns)
        one_task = not job.raw and _has_one_bucket(found.data)
        rows = _write(job, job.insert_output, _rows(spark, state, job.kind), one_task=one_task)
    if job.delete_output:
        events = delete_events(spark, state.partitions[0].scan_directories(found.delete_deltas), job.write_ids)
        nothing = F.lit(None).cast(row_type(job.columns)).alias(ROW_COLUMN)
        one_task = _has_one_bucket(found.delete_deltas)
        deletes = _write(job, job.delete_output, events.select(*ID_COLUMNS, nothing), one_task=one_task, distinct=True)
    made = tuple(name for name in (job.insert_output, job.delete_output) if name)
    return CompactionResult(
        rows=rows,
        deletes=deletes,
        size=sum(entry.size for name in made for entry in files.list_tree(files.join(job.staging, name))),
        directories=made,
        seconds=round(time.monotonic() - started, 3),
    )


def _state(job: CompactionJob) -> TableState:
    """What the job is to merge, as the state of a table of which that is all: the reader makes rows of it."""
    chosen = (*job.data, *job.deletes)
    entries = [
        entry
        for entry in files.list_tree(job.location)
        if entry.path in job.raw or entry.path.partition("/")[0] in chosen
    ]
    found = directory_state(entries, job.write_ids, _ALL_TXNS, lambda path: files.read(files.join(job.location, path)))
    table = Table("", job.location, job.columns, parameters=dict(job.parameters), location=job.location)
    return TableState(table, job.write_ids, (PartitionState(UNPARTITIONED, job.location, found),))


def _rows(spark: SparkSession, state: TableState, kind: str) -> DataFrame:
    """The insert events of the output: all of them for a minor compaction, those not deleted for a major one."""
    (partition,) = state.partitions
    if kind == "minor":
        if has_old_shape(spark, partition):
            raise FormatError(
                f"{partition.location} has updates among its inserts, as Hive before version 3 wrote them: they are "
                "merged by a major compaction"
            )
        partition = replace(partition, state=replace(partition.state, delete_deltas=()))
    rows = read_rows(spark, replace(state, partitions=(partition,)))
    write_id, bucket, row_id = KEY_COLUMNS
    return rows.select(
        F.lit(INSERT_OPERATION).alias("operation"),
        F.col(write_id).alias("originalTransaction"),
        F.col(bucket).alias("bucket"),
        F.col(row_id).alias("rowId"),
        F.col(write_id).alias("currentTransaction"),
        F.struct(*(F.col(quoted(column.name)) for column in state.table.columns)).alias(ROW_COLUMN),
    )


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
    holds = DELETE if name == job.delete_output else INSERT
    hive_3 = is_for_hive_3(job.parameters)
    written = staging.write(Events(frame, (BUCKET_COLUMN,), counts, holds), job.compression, step=name, hive_3=hive_3)[
        _EVENTS
    ]
    if not written:
        # A directory has at least one file: engines that list files do not see it otherwise (acid-format.md §2.7).
        nothing = Observation()
        empty = frame.drop(BUCKET_COLUMN).limit(0).coalesce(1).observe(nothing, F.count(F.lit(1)).alias(_EVENTS))
        staging.write(Events(empty, (), nothing, holds), job.compression, step=f"{name}-empty", hive_3=hive_3)
        name_of_step = f"{name}-empty"
    else:
        name_of_step = name
    staging.publish(staging.staged(0, step=name_of_step), lambda _: (job.staging, name))
    return written


def _name(name: str, visible: str) -> str:
    if parse_directory(name) is None or visible not in ("all", "some"):
        raise ValueError(f"directory {name} ({visible})")
    return name


def _has_one_bucket(directories: Sequence[DataDirectory]) -> bool:
    """Whether all files have the same name: then one task reads and writes them, and nothing is shuffled."""
    return len({file.path.rpartition("/")[2] for directory in directories for file in directory.files}) <= 1
