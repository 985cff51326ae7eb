"""Changes of existing rows as events: what UPDATE, DELETE and MERGE write, in one shuffle of the changed rows.

A change is a row of its kind (insert or delete), its partition's keys, the identity of the row that is deleted, and the
new row. `hive_acid.spark.events` has the names of these columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.format import rows
from hive_acid.spark.events import (
    BUCKET_COLUMN,
    DELETE,
    INSERT,
    KEY,
    KIND_COLUMN,
    Events,
    Write,
    file_of_row,
    key_column,
    key_texts,
    own_bucket,
    own_row_id,
)
from hive_acid.spark.scan import ID_COLUMNS, ROW_COLUMN

_SPREAD = "__acid_spread"


def deletions(target: DataFrame, keys: Sequence[Column], identity: Sequence[Column], row: t.StructType) -> DataFrame:
    """The rows of `target` as changes that `change_events` takes: each one is deleted.

    `keys` are the texts of their partition keys, `identity` their (write id, bucket property, row id).
    """
    no_row = F.lit(None).cast(row).alias(ROW_COLUMN)
    key = (value.alias(name) for value, name in zip(identity, KEY, strict=True))
    return target.select(F.lit(DELETE).alias(KIND_COLUMN), *key_texts(keys), *key, no_row)


def additions(values: DataFrame, keys: Sequence[Column], row: Sequence[Column]) -> DataFrame:
    """The rows of `values` as changes that `change_events` takes: each one is a new row."""
    no_key = (F.lit(None).cast(type_).alias(name) for name, type_ in zip(KEY, ("bigint", "int", "bigint"), strict=True))
    return values.select(F.lit(INSERT).alias(KIND_COLUMN), *key_texts(keys), *no_key, F.struct(*row).alias(ROW_COLUMN))


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
    return twice.select(KIND_COLUMN, *key_texts(keys), *key, new_row)


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
        F.when(is_new, own_bucket(write)).otherwise(F.col("bucket")).alias("bucket"),
        F.when(is_new, own_row_id()).otherwise(F.col("rowId")).alias("rowId"),
        write_id.alias("currentTransaction"),
        ROW_COLUMN,
    )
    divided_by = (KIND_COLUMN, *names, BUCKET_COLUMN)
    return Events(frame.select(*divided_by, *ID_COLUMNS, ROW_COLUMN), divided_by, counts)
