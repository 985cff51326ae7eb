"""INSERT and INSERT OVERWRITE of insert-only and plain tables: Spark's own files, in their format, under any names.

A write of the former is a directory, whole or not at all (acid-format.md §2.4); files of the latter are moved among
the others when all are there. Text is written so that Hive's SerDe, and our reader,
read the very same values; a value that the delimiters would cut in two fails the statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pyspark.sql import Column, DataFrame, DataFrameWriter, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.catalog.table import Table
from hive_acid.errors import UnsupportedTableError
from hive_acid.filesystem import files
from hive_acid.format.names import is_hidden
from hive_acid.format.orc.bloom_filters import asked_filters, options_with_filters
from hive_acid.format.orc.compression import compression_of
from hive_acid.format.partitions import parse_partition_name
from hive_acid.spark.jvm.frames.observed import count_of
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.jvm.sources import exact_times, writer_of
from hive_acid.spark.plans.change_plan import DirectoryInsertPlan
from hive_acid.spark.read.insert_only import Delimiters, by_format, delimiters, refuse_header
from hive_acid.spark.values import json_values
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.specs import PartitionSpec, with_constants
from hive_acid.spark.values.types import spark_type
from hive_acid.spark.values.wall_clock import wall_clock
from hive_acid.spark.write.events import directory_keys, key_column
from hive_acid.spark.write.insert import stored
from hive_acid.spark.write.placement import Placement
from hive_acid.spark.write.planned import Planned
from hive_acid.spark.write.statement import Context, column_errors
from hive_acid.write.staging import Values
from hive_acid.write.table_write import TableWrite

_ROWS = "rows"
_LINE = "value"
_MARK = "\ufeff"
"""Readers leave it out where a file begins with it."""

_Writer = Callable[[Context, Table, DataFrame, Sequence[str]], DataFrameWriter]
"""How rows of a table, and the partition keys of these names, in quotes, beside them, are written."""


def insert(context: Context, begun: TableWrite, frame: DataFrame) -> Planned[int]:
    """Add the rows of `frame`, whose columns meet the table's by name; gives their number.

    Raises ColumnError for columns or values that do not fit, UnsupportedTableError for a CLUSTERED table and for a
    format that Spark does not write.
    """
    values = stored(begun.table, frame)
    return Planned(_plan("INSERT into", begun.table), lambda: _write(Placement(context, begun), values, None), 0)


def overwrite(
    context: Context,
    begun: TableWrite,
    frame: DataFrame,
    partition: PartitionSpec | None = None,
    *,
    emptied: Iterable[Values] = (),
) -> Planned[int]:
    """Replace rows by those of `frame`, as `hive_acid.spark.change.insert` does in full-ACID tables.

    In a plain one those of the partitions `emptied` go as well.
    """
    given, whole = with_constants(begun.table, frame, partition)
    values = stored(begun.table, given)
    plan = _plan("INSERT OVERWRITE of", begun.table)
    return Planned(plan, lambda: _write(Placement(context, begun), values, whole, emptied), 0)


def _plan(verb: str, table: Table) -> DirectoryInsertPlan:
    return DirectoryInsertPlan(verb, table.full_name, "plain" if table.is_plain else "insert-only")


def _write(placement: Placement, values: DataFrame, whole: Values | None, emptied: Iterable[Values] = ()) -> int:
    """Write rows of `stored`; `whole` is a partition that is replaced even if there are none."""
    table, depth = placement.table, len(placement.table.partition_keys)
    if table.bucket_columns:
        raise UnsupportedTableError(f"{table.full_name} is CLUSTERED BY: rows of an insert-only one are not placed")
    refuse_unwritten(table)
    context = placement.context
    counts = Observation()
    shaped = projected(
        values,
        *directory_keys(table.partition_keys),
        *(f"{quoted(column.name)} AS {quoted(column.name)}" for column in table.columns),
    ).observe(counts, F.count(F.lit(1)).alias(_ROWS))
    names = [key_column(position) for position in range(depth)]
    location = files.join(placement.location, "written")
    with column_errors(table), exact_times(placement.context.spark):
        writer_for(context, table, shaped, names).partitionBy(*names).save(location)
    rows = count_of(counts, _ROWS, "nothing was changed; run the statement again")
    if table.is_plain:
        directories = _directories(location, depth) if rows else {}
        placement.publish(directories, emptied if whole is None else [whole])
    elif rows:
        placement.publish(_directories(location, depth))
    elif whole is not None:
        empty = files.join(placement.location, "nothing")
        nothing = shaped.drop(*names).limit(0).coalesce(1)
        writer_for(context, table, nothing).save(empty)
        placement.publish({whole: empty})
    else:
        placement.publish({})
    return rows


def refuse_unwritten(table: Table) -> None:
    """Raise UnsupportedTableError for a format that `writer_for` does not write."""
    by_format(table, _WRITERS, _WRITTEN)


def writer_for(context: Context, table: Table, frame: DataFrame, keys: Sequence[str] = ()) -> DataFrameWriter:
    """What writes the rows of `frame` as files of a table, into directories by `keys`, names in quotes.

    Raises UnsupportedTableError.
    """
    return by_format(table, _WRITERS, _WRITTEN)(context, table, frame, keys).option("maxRecordsPerFile", 0)


def _directories(location: str, depth: int) -> dict[Values, str]:
    """The directories that Spark has written, by the values of the partition; without what only Spark looks at.

    That is a mark of success, and what a task that was started twice still writes.
    """
    entries = files.list_tree(location, max_depth=max(depth, 1))
    for entry in entries:
        if is_hidden(entry.path) and "/" not in entry.path.rstrip("/"):
            files.remove(files.join(location, entry.path))
    if not depth:
        return {(): location}
    found: dict[Values, str] = {}
    for entry in entries:
        path = entry.path.rstrip("/")
        if entry.is_directory and not is_hidden(path) and path.count("/") == depth - 1:
            found[tuple(value for _, value in parse_partition_name(path))] = files.join(location, path)
    return found


def _by_spark(kind: str) -> _Writer:
    return lambda context, table, frame, keys: writer_of(frame, kind)


def _orc(context: Context, table: Table, frame: DataFrame, keys: Sequence[str]) -> DataFrameWriter:
    names = {column.name: column.name for column in table.columns}
    output = writer_of(frame, "orc").options(**options_with_filters(asked_filters(table.parameters), names))
    return output.option("compression", compression_of(table.parameters, context.compression))


def _json(context: Context, table: Table, frame: DataFrame, keys: Sequence[str]) -> DataFrameWriter:
    values = (f"{json_values.written(table, column)} AS {quoted(column.name)}" for column in table.columns)
    return writer_of(projected(frame, *keys, *values), "json").option("ignoreNullFields", "false")


def _delimited(context: Context, table: Table, frame: DataFrame, keys: Sequence[str]) -> DataFrameWriter:
    """Lines of Hive's LazySimpleSerDe."""
    refuse_header(table)
    between = delimiters(table)
    nested = [one.name for one in table.columns if isinstance(spark_type(one.type), _NESTED)]
    if nested:
        raise UnsupportedTableError(f"{table.full_name}: nested columns ({', '.join(nested)}) are not written to text")
    fields = [
        F.coalesce(_text(table, column.name, spark_type(column.type), between), F.lit(between.null))
        for column in table.columns
    ]
    fields[:1] = [_without_mark(table, field) for field in fields[:1]]
    line = F.concat_ws(between.field, *fields).alias(_LINE)
    return writer_of(frame.select(*keys, line), "text")


def _text(table: Table, name: str, kind: t.DataType, between: Delimiters) -> Column:
    # A delimiter may be in values of all types: a minus in dates and numbers, a slash in base64.
    if isinstance(kind, t.BinaryType):
        whole = F.replace(F.base64(F.col(quoted(name))), F.lit("\r\n"), F.lit(""))  # Spark breaks long ones into lines
    elif isinstance(kind, t.TimestampType):
        whole = F.expr(wall_clock(quoted(name), f"{table.full_name}.{name}"))
    else:
        whole = F.col(quoted(name)).cast("string")
    text, breaks = whole, whole.contains("\n") | whole.contains("\r")
    if between.escape is None:
        breaks |= whole.contains(between.field)
    else:
        special = f"([{_in_class(between.escape)}{_in_class(between.field)}])"
        text = F.regexp_replace(whole, special, _in_replacement(between.escape) + "$1")
    breaks |= text == F.lit(between.null)
    message = f"the text of a value of {table.full_name}.{name} has a delimiter of the table's files in it: "
    return F.when(breaks, F.raise_error(F.concat(F.lit(message), whole))).otherwise(text)


def _without_mark(table: Table, field: Column) -> Column:
    """The first field of a line, which may be the first of a file. One that begins as no reader has it fails."""
    message = f"a value of {table.full_name}.{table.columns[0].name} begins with U+FEFF, which readers leave out where "
    message += "a file begins with it"
    return F.when(field.startswith(_MARK), F.raise_error(F.lit(message))).otherwise(field)


def _in_class(character: str) -> str:
    return "\\" + character if not character.isalnum() and ord(character) > 31 else character


def _in_replacement(character: str) -> str:
    return "\\" + character if character in "\\$" else character


_WRITTEN = "which is not written: ORC, Parquet, Avro (with Spark's package spark-avro), JSON and delimited text are"

_NESTED = t.ArrayType | t.MapType | t.StructType

_WRITERS: dict[str, _Writer] = {
    "OrcInputFormat": _orc,
    "MapredParquetInputFormat": _by_spark("parquet"),
    "AvroContainerInputFormat": _by_spark("avro"),
    "JsonSerDe": _json,
    "LazySimpleSerDe": _delimited,
}
"""By the last part of the input format's name, or, of text files, of the SerDe's."""
