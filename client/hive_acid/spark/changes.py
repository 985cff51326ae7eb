"""Changes of existing rows as events: what UPDATE, DELETE and MERGE write, in one shuffle of the changed rows.

A change is a row of its kind (insert or delete), its partition's keys, the identity of the row that is deleted, and the
new row. `hive_acid.spark.events` has the names of these columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.catalog import Table
from hive_acid.format import rows
from hive_acid.spark.events import (
    BUCKET_COLUMN,
    DELETE,
    INSERT,
    KEY,
    KIND_COLUMN,
    Events,
    file_of_row,
    key_column,
    key_texts,
    own_row_id,
)
from hive_acid.spark.hashing import bucket_of
from hive_acid.spark.layout import Write
from hive_acid.spark.scan import ID_COLUMNS, ROW_COLUMN

UPDATES = "updates"
"""The count of events that are new versions of rows: a row that is moved or changed, not one that is new."""

REPEATED = "repeated"
"""The count of rows that are deleted more than once, where `change_events` was asked for it."""

_SPREAD = "__acid_spread"
_TURN = "__acid_turn"


def deletions(target: DataFrame, keys: Sequence[Column], identity: Sequence[Column], row: t.StructType) -> DataFrame:
    """The rows of `target` as changes that `change_events` takes: each one is deleted.

    `keys` are the texts of their partition keys, `identity` their (write id, bucket property, row id).
    """
    no_row = F.lit(None).cast(row).alias(ROW_COLUMN)
    key = (value.alias(name) for value, name in zip(identity, KEY, strict=True))
    return target.select(F.lit(DELETE).alias(KIND_COLUMN), *key_texts(keys), *key, no_row)


def replacements(
    target: DataFrame,
    kinds: Column,
    keys: Sequence[Column],
    new_keys: Sequence[Column],
    identity: Sequence[Column],
    row: Column,
) -> DataFrame:
    """The rows of `target` as changes that `change_events` takes: one of each kind in the array `kinds`.

    A row is deleted from the partition of `keys` and inserted as `row` into that of `new_keys`. New rows are in the
    order of `identity`; one that replaces no row has no write id there.
    """
    twice = target.select("*", F.explode(kinds).alias(KIND_COLUMN))
    is_new = F.col(KIND_COLUMN) == INSERT
    placed = [
        old if new is old else F.when(is_new, new).otherwise(old) for old, new in zip(keys, new_keys, strict=True)
    ]
    key = [value.alias(name) for value, name in zip(identity, KEY, strict=True)]
    return twice.select(KIND_COLUMN, *key_texts(placed), *key, F.when(is_new, row).alias(ROW_COLUMN))


def change_events(
    changes: DataFrame, table: Table, write: Write, *, deletes_only: bool = False, once: bool = False
) -> Events:
    """Changes as events in the order and in the tasks in which they are written: one shuffle, of changed rows only.

    Delete events meet in one task per partition and bucket, which makes their one file, and so do new rows of a
    CLUSTERED table; other new rows are spread as they came and take the writing task's number for bucket.

    `deletes_only` says that there are no new rows, which would need a known hash in a CLUSTERED table. With `once`,
    rows are counted that are deleted more than once (`REPEATED`): such events may not be committed.
    """
    names = [key_column(position) for position in range(len(table.partition_keys))]
    is_new = F.col(KIND_COLUMN) == INSERT
    hashed = bool(table.bucket_columns) and not deletes_only
    origin = _bucket(table) if hashed else F.spark_partition_id()
    task = F.col(_SPREAD) if hashed else F.spark_partition_id()
    # Coalesced, so that Spark knows it is never null: else it would sort again before it writes.
    file = F.coalesce(F.when(is_new, task).otherwise(F.col(_SPREAD)), F.lit(0))
    order = [KIND_COLUMN, *names, BUCKET_COLUMN, _SPREAD, *KEY]
    placed = (
        changes.withColumn(_SPREAD, F.when(is_new, origin).otherwise(file_of_row()))
        .repartition(KIND_COLUMN, *names, _SPREAD)
        .withColumn(BUCKET_COLUMN, file)
        .sortWithinPartitions(*order)
    )
    counted = {
        INSERT: is_new,
        DELETE: ~is_new,
        UPDATES: is_new & F.col("originalTransaction").isNotNull(),
    }
    if once:
        # The rows are in this order already, and where the shuffle has put them: the window moves and sorts nothing.
        placed = placed.withColumn(_TURN, F.row_number().over(Window.partitionBy(*order).orderBy(KEY[-1])))
        counted[REPEATED] = ~is_new & (F.col(_TURN) == 2)
    counts = Observation()
    placed = placed.observe(counts, *(F.count_if(which).alias(name) for name, which in counted.items()))
    write_id = F.lit(write.write_id).cast("bigint")
    bucket = write.bucket_property(F.col(BUCKET_COLUMN))
    frame = placed.select(
        KIND_COLUMN,
        *names,
        BUCKET_COLUMN,
        F.when(is_new, rows.INSERT).otherwise(rows.DELETE).alias("operation"),
        F.when(is_new, write_id).otherwise(F.col("originalTransaction")).alias("originalTransaction"),
        F.when(is_new, bucket).otherwise(F.col("bucket")).alias("bucket"),
        F.when(is_new, own_row_id()).otherwise(F.col("rowId")).alias("rowId"),
        write_id.alias("currentTransaction"),
        ROW_COLUMN,
    )
    divided_by = (KIND_COLUMN, *names, BUCKET_COLUMN)
    return Events(frame.select(*divided_by, *ID_COLUMNS, ROW_COLUMN), divided_by, counts)


def _bucket(table: Table) -> Column:
    """The bucket of a new row of a CLUSTERED table, by Hive's hash."""
    return bucket_of(table, {name: F.col(ROW_COLUMN).getField(name) for name in table.bucket_columns})
