"""Compaction of an insert-only table: the files of whole directories become few in its format (acid-format.md §6.2).

Text is taken line by line, whatever SerDe makes rows of it, so nothing of a line is lost. Values of ORC files, and of
Parquet files without dates and timestamps, are read and written. What a date or a timestamp of a Parquet or Avro file
means is told by properties of the file, which Spark does not write: such files, and all of Avro, whose blocks are small
anyway, are joined by their bytes (`hive_acid.filesystem.joining`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from hive_acid.catalog.table import Table
from hive_acid.compaction_job import CompactionJob, JobProgress, TellProgress
from hive_acid.errors import UnsupportedTableError
from hive_acid.filesystem import files
from hive_acid.filesystem.footers import DataFilePath
from hive_acid.filesystem.joining import join_files
from hive_acid.format.orc.bloom_filters import options_with_filters
from hive_acid.spark.compact.job import columns_of
from hive_acid.spark.jvm.frames.observed import count_of
from hive_acid.spark.jvm.sources import reader_of, writer_of
from hive_acid.spark.plans.compaction_plan import ROWS, CompactionPlan, MergedBy, directories_by
from hive_acid.spark.plans.telling import tell
from hive_acid.spark.read.insert_only import data_files, read_table, refuse_header
from hive_acid.spark.read.listing import TableState
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.timezone import refuse_zone_with_gaps
from hive_acid.spark.values.types import has_date_or_timestamp, refuse_instants, row_type
from hive_acid.spark.write.distribution import TARGET_FILE_SIZE_BYTES
from hive_acid.spark.write.stage import left_by_job, task_of

_ROWS = "rows"
_TEXT = "TextInputFormat"
_KINDS = {
    "OrcInputFormat": "orc",
    "MapredParquetInputFormat": "parquet",
    "AvroContainerInputFormat": "avro",
}
_COMPRESSED = {".gz": "gzip", ".bz2": "bzip2", ".deflate": "deflate", ".snappy": "snappy", ".lz4": "lz4"}


def compact_insert_only(spark: SparkSession, job: CompactionJob, state: TableState, report: TellProgress) -> int:
    """Write the job's one directory; the number of rows.

    Raises UnsupportedTableError for a format that is not read and written here, and for files that would not be the
    same afterwards; FormatError for files that are not what their table says.
    """
    assert job.insert_output
    place = files.join(job.staging, job.insert_output)
    kind = _format(state.table)
    by = directories_by(kind, has_times=has_date_or_timestamp(row_type(columns_of(job))))
    plan = CompactionPlan(job.type, job.location, ROWS, by)
    tell(plan)
    report(JobProgress.at(0, 0, 0, plan.phase))

    def report_files(rows: int, number: int, size: int) -> None:
        report(JobProgress.at(rows, number, size, plan.phase))

    paths = [at for partition in state.partitions for at in data_files(spark, partition, state.write_ids)]
    if by.way is MergedBy.JOINED:
        return join_files(kind, _sizes(state), place, TARGET_FILE_SIZE_BYTES, report_files)
    if kind == "text":
        frame, extension = _lines(spark, state.table, paths)
    else:
        frame, extension = _values(spark, state), ""
    counts = Observation()
    size = sum(directory.size for directory in state.partitions[0].state.data)
    parts = max(1, -(-size // TARGET_FILE_SIZE_BYTES))
    placed = frame.coalesce(parts).observe(counts, F.count(F.lit(1)).alias(_ROWS))
    output = writer_of(placed, kind).option("maxRecordsPerFile", 0)
    if kind == "orc":
        options = options_with_filters(job.options, {column.name: column.name for column in state.table.columns})
        output = output.options(compression=job.compression, **options)
    elif extension:
        output = output.option("compression", _COMPRESSED[extension])
    written = files.join(job.staging, "written")
    output.save(written)
    files.make_directory(place)
    for entry in left_by_job(written):
        files.rename(files.join(written, entry.path), files.join(place, f"{task_of(entry):06d}_0{extension}"))
    files.remove(written)
    return count_of(counts, _ROWS, "nothing was changed")


def _sizes(state: TableState) -> list[DataFilePath]:
    """All files with rows."""
    return [
        DataFilePath(files.join(partition.location, file.path), file.size)
        for partition in state.partitions
        for directory in partition.state.data
        for file in directory.files
    ]


def _format(table: Table) -> str:
    kind = table.input_format.rpartition(".")[2]
    if kind == _TEXT:
        return "text"
    if kind not in _KINDS:
        raise UnsupportedTableError(
            f"an insert-only table with input format {table.input_format or '(none)'} is not compacted: ORC, Parquet, "
            "Avro and text are"
        )
    return _KINDS[kind]


def _lines(spark: SparkSession, table: Table, paths: Sequence[str]) -> tuple[DataFrame, str]:
    """The lines of text files, and by which extension the new ones are compressed."""
    refuse_header(table)
    extensions = {path[path.rindex(".") :] for path in paths if "." in path.rpartition("/")[2]} & _COMPRESSED.keys()
    if not paths:
        return spark.sql("SELECT '' AS value WHERE false"), ""
    return reader_of(spark, "text").load(list(paths)), min(extensions, default="")


def _values(spark: SparkSession, state: TableState) -> DataFrame:
    table = state.table
    if _format(table) == "orc":
        refuse_instants(table.columns)
        refuse_zone_with_gaps(spark, table.columns)
    return read_table(spark, state).select(*(F.col(quoted(column.name)) for column in table.columns))
