"""Names in files that Spark does not find in a session that minds case (``spark.sql.caseSensitive``).

The columns of Hive's tables have small letters. A file that others have written may have capitals; Spark would make
nulls of what stands there, without a word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import SparkSession
from pyspark.sql import types as t

from hive_acid.catalog.table import Table
from hive_acid.errors import UnsupportedTableError
from hive_acid.spark.jvm.session_settings import is_on
from hive_acid.spark.jvm.sources import reader_of

SETTING = "spark.sql.caseSensitive"


def minds_case(spark: SparkSession) -> bool:
    """Whether names are found in the session only as they are written."""
    return is_on(spark, SETTING)


def is_lower(name: str) -> bool:
    """Whether a name has no capitals."""
    return name == name.lower()


def refuse_capitals(spark: SparkSession, table: Table, kind: str, paths: Sequence[str]) -> None:
    """Raise UnsupportedTableError if the session minds case, and files have a column or field with capitals.

    `kind` is Spark's name of the files' format, `paths` are theirs or, unless it is Avro, those of their directories.
    """
    if not paths or not minds_case(spark):
        return
    columns = {column.name for column in table.all_columns}
    for schema in _schemas(spark, kind, paths):
        meant = [field for field in schema.fields if field.name.lower() in columns]
        if found := next((name for field in meant for name in _names(field) if not is_lower(name)), None):
            raise refused(f"{table.full_name} has files with the name {found}")


def refused(what: str) -> UnsupportedTableError:
    """The error for `what` there is."""
    return UnsupportedTableError(
        f"{what}, which others have written: Spark does not find it with {SETTING}=true. Read it without that setting"
    )


def _schemas(spark: SparkSession, kind: str, paths: Sequence[str]) -> Iterator[t.StructType]:
    if kind != "avro":
        try:
            yield reader_of(spark, kind).option("mergeSchema", True).load(list(paths)).schema
        except Exception:  # their types differ, which is no trouble to who reads them
            pass
        else:
            return
    for path in paths:
        yield reader_of(spark, kind).load(path).schema


def _names(field: t.StructField) -> Iterator[str]:
    yield field.name
    yield from _names_within(field.dataType)


def _names_within(kind: t.DataType) -> Iterator[str]:
    if isinstance(kind, t.StructType):
        for field in kind.fields:
            yield from _names(field)
    elif isinstance(kind, t.ArrayType):
        yield from _names_within(kind.elementType)
    elif isinstance(kind, t.MapType):
        yield from _names_within(kind.keyType)
        yield from _names_within(kind.valueType)
