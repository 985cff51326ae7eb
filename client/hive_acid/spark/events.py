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
from hive_acid.spark.scan import ROW_COLUMN

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
        *key_texts(keys), F.struct(*row).alias(ROW_COLUMN), F.monotonically_increasing_id().alias(_ORDER)
    )
    placed = (
        _rebalanced(shaped, names).observe(counts, F.count(F.lit(1)).alias(INSERT)).sortWithinPartitions(*names, _ORDER)
    )
    write_id = F.lit(write.write_id).cast("bigint")
    frame = placed.select(
        *names,
        F.lit(rows.INSERT).alias("operation"),
        write_id.alias("originalTransaction"),
        own_bucket(write).alias("bucket"),
        own_row_id().alias("rowId"),
        write_id.alias("currentTransaction"),
        ROW_COLUMN,
    )
    return Events(frame, tuple(names), counts)


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


def key_texts(keys: Sequence[Column]) -> list[Column]:
    """Partition keys under their names for the writer.

    They are never null: of a nullable text Spark makes a new column before it writes, does not see any more that the
    rows are sorted by it, and sorts again, by the directories alone; the order within a file would be left to chance.
    """
    return [
        F.coalesce(F.nullif(key, F.lit("")), F.lit(DEFAULT_PARTITION)).alias(name)
        for key, name in zip(keys, _names(keys), strict=True)
    ]


def own_bucket(write: Write) -> Column:
    """The bucket property of rows that this task writes."""
    return F.spark_partition_id() * F.lit(1 << 16) + F.lit(rows.encode_bucket(0, write.statement_id))


def own_row_id() -> Column:
    """0, 1, 2, … in this task."""
    return F.monotonically_increasing_id() - F.shiftleft(F.spark_partition_id().cast("bigint"), 33)
