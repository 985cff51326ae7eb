"""Spark's sources of files, whatever the session's settings make of their names.

A name is looked up when a frame is made: ``orc`` may be Hive's reader (``spark.sql.orc.impl``) or one of version 2
(``spark.sql.sources.useV1SourceList``), neither of which reads the files of ACID tables. A class is itself. Avro has
its name, since its package may be missing. No row is missing because the session would leave out a file or a line: one
that is missing or broken is an error, and what a session has filters for is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, SparkSession

from hive_acid.spark.jvm.job_settings import configured
from hive_acid.spark.jvm.session_settings import word

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
_PARQUET_TIMES = "spark.sql.parquet.outputTimestampType"
_NOTHING_LEFT_OUT = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    "orc.skip.corrupt.data": "false",
    "ignoredPathSegmentRegex": "^[._]",
    "mapreduce.input.pathFilter.class": "org.apache.parquet.hadoop.util.HiddenFileFilter",
}
"""What a session says otherwise of files: names of hidden ones are those that Spark takes for them by itself."""

_ALL_LINES = {"mapreduce.input.linerecordreader.line.maxlength": str(2**31 - 1)}
"""Of text, JSON and CSV: Hadoop leaves out lines that are longer."""

_RECORDS = {"columnNameOfCorruptRecord": "__acid_corrupt_record", "maxStringLen": str(2**31 - 1)}
"""Of JSON and CSV: no column of a table takes a line that is not understood, and no text is too long to be."""


def reader_of(spark: SparkSession, kind: str) -> DataFrameReader:
    """A reader of files of this kind: orc, parquet, json, text, csv or avro."""
    lines = _ALL_LINES if kind in ("text", "json", "csv") else {}
    records = _RECORDS if kind in ("json", "csv") else {}
    return spark.read.format(_CLASSES[kind]).options(**_NOTHING_LEFT_OUT, **lines, **records)


def as_of(reader: DataFrameReader, stamp: int) -> DataFrameReader:
    """`reader` for files as they are, by the `stamp` of their sizes and times.

    Spark takes what a user has cached for all that is read from the same paths with the same options. But a table that
    was dropped and made anew has files of the same names, and so has one that was overwritten twice in a transaction.
    """
    return reader.option(_AS_OF, str(stamp))


def writer_of(frame: DataFrame, kind: str) -> DataFrameWriter:
    """A writer of files of this kind."""
    return frame.write.format(_CLASSES[kind])


@contextmanager
def exact_times(spark: SparkSession) -> Iterator[None]:
    """Within the block files hold times by the microsecond, also where the session would cut them to milliseconds."""
    cut = word(spark, _PARQUET_TIMES) == "TIMESTAMP_MILLIS"
    with configured(spark, {_PARQUET_TIMES: "TIMESTAMP_MICROS"} if cut else {}):
        yield
