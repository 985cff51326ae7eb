"""Rows as events: the six columns in which inserts and deletes are written (acid-format.md §3.1).

Buckets and row ids are given in the task that writes the file, after the last shuffle and sort, so a retried task
gives its own and only the committed attempt's file counts (data-path.md §3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.format import rows
from hive_acid.format.partitions import DEFAULT_PARTITION
from hive_acid.ids import WriteId
from hive_acid.spark.scan import ID_COLUMNS, ROW_COLUMN

KEY = ("originalTransaction", "bucket", "rowId")
"""The columns that identify a row within its partition, in the order by which files are sorted."""

INSERT, DELETE = "insert", "delete"
KIND_COLUMN = "kind"
BUCKET_COLUMN = "file"

_SPREAD = "__acid_spread"
_ORDER = "__acid_order"


class Write(NamedTuple):
    """The write id and the statement id under which events are written."""

    write_id: WriteId
    statement_id: int


@dataclass(frozen=True, slots=True)
class Events:
    """Events ready to be written: `frame` has the columns of `divided_by`, which become directories, and the six.

    `counts` knows the number of events per kind once they are written.
    """

    frame: DataFrame
    divided_by: tuple[str, ...]
    counts: Observation


def key_column(position: int) -> str:
    """The column by which output is divided by partition key `position`; no name of the six ACID columns."""
    return f"key{position}"


def insert_events(values: DataFrame, row: Sequence[Column], keys: Sequence[Column], write: Write) -> Events:
    """Rows of `values` as insert events; `row` are their columns, `keys` the texts of their partition keys.

    Spark chooses the number of files by size: a small insert is one task, hence bucket 0. Within a file rows keep the
    order they came in.
    """
    names = _names(keys)
    counts = Observation()
    shaped = values.select(
        *_texts(keys), F.struct(*row).alias(ROW_COLUMN), F.monotonically_increasing_id().alias(_ORDER)
    )
    placed = (
        _rebalanced(shaped, names).observe(counts, F.count(F.lit(1)).alias(INSERT)).sortWithinPartitions(*names, _ORDER)
    )
    write_id = F.lit(write.write_id).cast("bigint")
    frame = placed.select(
        *names,
        F.lit(rows.INSERT).alias("operation"),
        write_id.alias("originalTransaction"),
        _own_bucket(write).alias("bucket"),
        _own_row_id().alias("rowId"),
        write_id.alias("currentTransaction"),
        ROW_COLUMN,
    )
    return Events(frame, tuple(names), counts)


def deletions(target: DataFrame, keys: Sequence[Column], identity: Sequence[Column], row: t.StructType) -> DataFrame:
    """The rows of `target` as changes that `change_events` takes: each one is deleted.

    `keys` are the texts of their partition keys, `identity` their (write id, bucket property, row id).
    """
    no_row = F.lit(None).cast(row).alias(ROW_COLUMN)
    key = (value.alias(name) for value, name in zip(identity, KEY, strict=True))
    return target.select(F.lit(DELETE).alias(KIND_COLUMN), *_texts(keys), *key, no_row)


def additions(values: DataFrame, keys: Sequence[Column], row: Sequence[Column]) -> DataFrame:
    """The rows of `values` as changes that `change_events` takes: each one is a new row."""
    no_key = (F.lit(None).cast(type_).alias(name) for name, type_ in zip(KEY, ("bigint", "int", "bigint"), strict=True))
    return values.select(F.lit(INSERT).alias(KIND_COLUMN), *_texts(keys), *no_key, F.struct(*row).alias(ROW_COLUMN))


def replacements(
    target: DataFrame, keys: Sequence[Column], identity: Sequence[Column], row: Sequence[Column]
) -> DataFrame:
    """The rows of `target` as changes that `change_events` takes: each one is deleted, and inserted as `row`.

    New rows keep the order of the old ones.
    """
    kinds = F.explode(F.array(F.lit(DELETE), F.lit(INSERT))).alias(KIND_COLUMN)
    key = [value.alias(name) for value, name in zip(identity, KEY, strict=True)]
    twice = target.select("*", kinds)
    new_row = F.when(F.col(KIND_COLUMN) == INSERT, F.struct(*row)).alias(ROW_COLUMN)
    return twice.select(KIND_COLUMN, *_texts(keys), *key, new_row)


def change_events(changes: DataFrame, keys: int, write: Write) -> Events:
    """Changes as events in the order and in the tasks in which they are written: one shuffle, of changed rows only.

    Delete events meet in one task per partition and bucket, which makes their one file; new rows are spread as they
    came and take the writing task's number for bucket.
    """
    names = [key_column(position) for position in range(keys)]
    is_new = F.col(KIND_COLUMN) == INSERT
    counts = Observation()
    file = F.coalesce(F.when(is_new, F.spark_partition_id()).otherwise(F.col(_SPREAD)), F.lit(0))
    placed = (
        changes.withColumn(_SPREAD, F.when(is_new, F.spark_partition_id()).otherwise(file_of_row()))
        .repartition(KIND_COLUMN, *names, _SPREAD)
        .observe(counts, *(F.count_if(F.col(KIND_COLUMN) == kind).alias(kind) for kind in (INSERT, DELETE)))
        .withColumn(BUCKET_COLUMN, file)
        .sortWithinPartitions(KIND_COLUMN, *names, BUCKET_COLUMN, *KEY)
    )
    write_id = F.lit(write.write_id).cast("bigint")
    frame = placed.select(
        KIND_COLUMN,
        *names,
        BUCKET_COLUMN,
        F.when(is_new, rows.INSERT).otherwise(rows.DELETE).alias("operation"),
        F.when(is_new, write_id).otherwise(F.col("originalTransaction")).alias("originalTransaction"),
        F.when(is_new, _own_bucket(write)).otherwise(F.col("bucket")).alias("bucket"),
        F.when(is_new, _own_row_id()).otherwise(F.col("rowId")).alias("rowId"),
        write_id.alias("currentTransaction"),
        ROW_COLUMN,
    )
    divided_by = (KIND_COLUMN, *names, BUCKET_COLUMN)
    return Events(frame.select(*divided_by, *ID_COLUMNS, ROW_COLUMN), divided_by, counts)


def file_of_row() -> Column:
    """The number of the file to which an event belongs, decoded from its bucket property (acid-format.md §3.2)."""
    return F.expr("CASE WHEN shiftright(bucket, 29) = 0 THEN bucket ELSE shiftright(bucket, 16) & 4095 END")


def _rebalanced(shaped: DataFrame, names: Sequence[str]) -> DataFrame:
    """Rows spread over tasks of a good size, those of a partition together.

    Without columns to spread by, Spark sorts all rows by their hash first, which takes twice the time and leaves an
    order that compresses badly. So rows are spread by their content; a task that is run again sends each row where it
    went before.
    """
    if names:
        return shaped.hint("rebalance", *names)
    row = shaped.schema[ROW_COLUMN].dataType
    assert isinstance(row, t.StructType)
    hashed = [F.col(ROW_COLUMN).getField(field.name) for field in row.fields if _is_hashable(field.dataType)]
    if not hashed:
        return shaped.hint("rebalance")
    return shaped.withColumn(_SPREAD, F.xxhash64(*hashed)).hint("rebalance", _SPREAD)


def _is_hashable(type_: t.DataType) -> bool:
    """Whether Spark computes hashes of such values: of all that hold no maps."""
    if isinstance(type_, t.StructType):
        return all(_is_hashable(field.dataType) for field in type_.fields)
    if isinstance(type_, t.ArrayType):
        return _is_hashable(type_.elementType)
    return not isinstance(type_, t.MapType)


def _names(keys: Sequence[Column]) -> list[str]:
    return [key_column(position) for position in range(len(keys))]


def _texts(keys: Sequence[Column]) -> list[Column]:
    """Partition keys under their names for the writer.

    They are never null: of a nullable text Spark makes a new column before it writes, does not see any more that the
    rows are sorted by it, and sorts again, by the directories alone; the order within a file would be left to chance.
    """
    return [
        F.coalesce(F.nullif(key, F.lit("")), F.lit(DEFAULT_PARTITION)).alias(name)
        for key, name in zip(keys, _names(keys), strict=True)
    ]


def _own_bucket(write: Write) -> Column:
    """The bucket property of rows that this task writes."""
    return F.spark_partition_id() * F.lit(1 << 16) + F.lit(rows.encode_bucket(0, write.statement_id))


def _own_row_id() -> Column:
    """0, 1, 2, … in this task."""
    return F.monotonically_increasing_id() - F.shiftleft(F.spark_partition_id().cast("bigint"), 33)
