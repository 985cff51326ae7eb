"""Spark's sources of files, whatever the session's settings make of their names.

A name is looked up when a frame is made: ``orc`` may be Hive's reader (``spark.sql.orc.impl``) or one of version 2
(``spark.sql.sources.useV1SourceList``), neither of which reads the files of ACID tables. A class is itself. Avro has
its name, since its package may be missing. No row is missing because the session would leave out a file or a line: one
that is missing or broken is an error, and what a session has filters for is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, SparkSession

from hive_acid.errors import UnsupportedTableError
from hive_acid.spark.jvm.job_settings import configured
from hive_acid.spark.jvm.session_settings import word
from hive_acid.spark.jvm.texts import can_be_told, texts_in_jvm

_PACKAGE = "org.apache.spark.sql.execution.datasources"
_CLASSES = {
    "orc": f"{_PACKAGE}.orc.OrcFileFormat",
    "parquet": f"{_PACKAGE}.parquet.ParquetFileFormat",
    "json": f"{_PACKAGE}.json.JsonFileFormat",
    "text": f"{_PACKAGE}.text.TextFileFormat",
    "csv": f"{_PACKAGE}.csv.CSVFileFormat",
    "avro": "avro",
}
_AS_OF = "hive_acid.as_of"
_LASTS = "hive_acid.lasts"
_PARQUET_TIMES = "spark.sql.parquet.outputTimestampType"
_REBASED = (
    "spark.sql.parquet.datetimeRebaseModeInWrite",
    "spark.sql.parquet.int96RebaseModeInWrite",
    "spark.sql.avro.datetimeRebaseModeInWrite",
)
"""By LEGACY days that the older calendar has not, and times around them, become others."""

_NOTHING_LEFT_OUT = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "ignoredPathSegmentRegex": "^[._]",
}
"""What a session says otherwise of files: names of hidden ones are those that Spark takes for them by itself."""

_CALENDAR = {"orc.proleptic.gregorian": "false"}
_OF_ORC = {
    "orc.skip.corrupt.data": "false",
    "orc.force.positional.evolution": "false",
    "orc.sarg.to.filter": "false",
    "orc.filter.use.selected": "false",
    "orc.filter.plugin": "false",
    "orc.proleptic.gregorian.default": "false",
    **_CALENDAR,
}
"""Files are as they are: days before 1582 by the older calendar, as all other engines write them and read them. Each
row is at its place, and ORC leaves none out unless a scan says so: Spark does not look at its list of those chosen.
"""

_PATH_FILTER = "mapreduce.input.pathFilter.class"
"""By it files are left out. No option takes it back: what classes Spark has fail where many paths are listed."""

_NAMES = {"mapreduce.output.basename": "part"}

_ALL_LINES = {"mapreduce.input.linerecordreader.line.maxlength": str(2**31 - 1)}
"""Of text, JSON and CSV: Hadoop leaves out lines that are longer."""

_RECORDS = {"columnNameOfCorruptRecord": "__acid_corrupt_record", "maxStringLen": str(2**31 - 1)}
"""Of JSON and CSV: no column of a table takes a line that is not understood, and no text is too long to be."""


def reader_of(spark: SparkSession, kind: str) -> DataFrameReader:
    """A reader of files of this kind: orc, parquet, json, text, csv or avro.

    Raises UnsupportedTableError in a session that leaves out files by a class.
    """
    for setting in (_PATH_FILTER, f"spark.hadoop.{_PATH_FILTER}"):
        if spark.conf.get(setting, None):
            raise UnsupportedTableError(
                f"the session leaves out files of what it reads, by {setting}: unset it. Rows would be missing"
            )
    of_orc = _OF_ORC if kind == "orc" else {}
    lines = _ALL_LINES if kind in ("text", "json", "csv") else {}
    records = _RECORDS if kind in ("json", "csv") else {}
    return spark.read.format(_CLASSES[kind]).options(**_NOTHING_LEFT_OUT, **of_orc, **lines, **records)


def as_of(reader: DataFrameReader, stamp: int, *, lasts: bool = True) -> DataFrameReader:
    """`reader` for files as they are, by the `stamp` of their sizes and times; a snapshot keeps them if that `lasts`.

    Spark takes what a user has cached for all that is read from the same paths with the same options. But a table that
    was dropped and made anew has files of the same names, and so has one that was overwritten twice in a transaction.
    """
    return reader.options(**{_AS_OF: str(stamp), _LASTS: str(lasts)})


def is_of_snapshot(relation: Any) -> bool:
    """Whether the JVM's relation is of files that a snapshot keeps."""
    said = relation.options().get(_LASTS)
    return bool(said.isDefined()) and str(said.get()) == str(True)


def loaded(reader: DataFrameReader, paths: Sequence[str]) -> DataFrame:
    """As ``reader.load(paths)``, in few calls to the JVM however many paths there are."""
    of_jvm: Any = vars(reader).get("_jreader")
    if of_jvm is None or not can_be_told(paths):
        return reader.load(list(paths))
    spark: SparkSession = vars(reader)["_spark"]
    return DataFrame(of_jvm.load(texts_in_jvm(spark, of_jvm._gateway_client, paths)), spark)


def writer_of(frame: DataFrame, kind: str) -> DataFrameWriter:
    """A writer of files of this kind, ``part-00000-….kind`` whatever the session calls those that it writes."""
    calendar = _CALENDAR if kind == "orc" else {}
    return frame.write.format(_CLASSES[kind]).options(**_NAMES, **calendar)


@contextmanager
def exact_times(spark: SparkSession) -> Iterator[None]:
    """Within the block files hold days and times as they are, whatever the session would make of them: cut times to
    milliseconds, or count days by the older calendar.
    """
    settings = {name: "CORRECTED" for name in _REBASED if word(spark, name) == "LEGACY"}
    if word(spark, _PARQUET_TIMES) == "TIMESTAMP_MILLIS":
        settings[_PARQUET_TIMES] = "TIMESTAMP_MICROS"
    with configured(spark, settings):
        yield
