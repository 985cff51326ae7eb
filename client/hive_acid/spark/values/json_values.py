"""Values in lines of JSON: what JSON has no type for is text there, in the words of Hive's SerDe. All as SQL.

Spark's own writer and reader cut times to milliseconds, and follow settings of the session; keys of maps that are no
texts it writes as its memory has them, and does not read.
"""

from __future__ import annotations

from pyspark.sql import types as t

from hive_acid.catalog.table import Column, Table
from hive_acid.errors import UnsupportedTableError
from hive_acid.spark.values.assign import sql_type
from hive_acid.spark.values.leaves import changed
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.types import spark_type
from hive_acid.spark.values.wall_clock import dated, wall_clock

_IN_WORDS = t.NumericType | t.BooleanType | t.DateType | t.TimestampType


def type_of_lines(of: t.DataType) -> t.DataType:
    """The type by which values of the type `of` are read."""
    if isinstance(of, t.DateType | t.TimestampType):
        return t.StringType()
    if isinstance(of, t.ArrayType):
        return t.ArrayType(type_of_lines(of.elementType))
    if isinstance(of, t.MapType):
        return t.MapType(t.StringType(), type_of_lines(of.valueType))
    if isinstance(of, t.StructType):
        return t.StructType([t.StructField(field.name, type_of_lines(field.dataType)) for field in of.fields])
    return of


def read(column: Column) -> str:
    """The value of a column, out of what is read by `type_of_lines`."""

    def typed(kind: str, found: str) -> str | None:
        of = spark_type(kind)
        return None if of == type_of_lines(of) else f"try_cast({dated(found)} AS {sql_type(of)})"

    def key(kind: str, found: str) -> str | None:
        of = spark_type(kind)
        return None if isinstance(of, t.StringType) else f"CAST({found} AS {sql_type(of)})"

    return changed(column.type, quoted(column.name), typed, key) or quoted(column.name)


def written(table: Table, column: Column) -> str:
    """What stands for the value of a column. Raises UnsupportedTableError for keys of maps that have no text."""
    where = f"{table.full_name}.{column.name}"

    def text(kind: str, found: str) -> str | None:
        of = spark_type(kind)
        if isinstance(of, t.TimestampType):
            return wall_clock(found, where)
        return f"CAST({found} AS string)" if isinstance(of, t.DateType) else None

    def key(kind: str, found: str) -> str | None:
        of = spark_type(kind)
        if isinstance(of, t.StringType):
            return None
        if not isinstance(of, _IN_WORDS):
            raise UnsupportedTableError(
                f"{where} is {column.type}: a key of a map in JSON is a text, and {kind} is none"
            )
        return text(kind, found) or f"CAST({found} AS string)"

    return changed(column.type, quoted(column.name), text, key) or quoted(column.name)
