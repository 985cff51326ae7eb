"""From a table's state to a DataFrame: data files less the rows that visible delete events name.

A delete event is matched by its whole key over all delete files of its partition, whatever file it lies in
(acid-format.md §2.8). The join is by one long that mixes the key, since Spark's hash tables are fastest for that, and
the columns of the key are compared behind it: keys that mix to the same long cost time and never rows. Directories
that no visible delete event can reach are read without a join.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.catalog import Table
from hive_acid.format.names import Directory
from hive_acid.format.rows import DELETE
from hive_acid.format.snapshot import ValidWriteIdList
from hive_acid.spark.assign import quoted
from hive_acid.spark.events import KEY
from hive_acid.spark.listing import TableState
from hive_acid.spark.scan import PATH_COLUMN, ScanDirectory, partition_path, partition_texts, row_fields, scan
from hive_acid.spark.types import row_type, spark_type

ROW_ID = "ROW__ID"
"""The name under which Hive shows a row's identity."""

KEY_COLUMNS = ("__acid_write_id", "__acid_bucket", "__acid_row_id")
"""A row's identity within its partition, in the order in which files are sorted."""

BROADCAST_LIMIT_BYTES = 64 * 1024 * 1024
"""Up to this size of delete files their keys are broadcast: some twenty million events (data-path.md §2)."""


def partition_columns(table: Table) -> list[str]:
    """The hidden columns that hold the text of each partition key, as it stands in the partition's name."""
    return [f"__acid_part_{position}" for position in range(len(table.partition_keys))]


def read_table(spark: SparkSession, state: TableState, *, row_id: bool = False) -> DataFrame:
    """The rows that the snapshot sees: the table's columns, then its partition columns.

    With `row_id`, a first column `ROW_ID` as Hive has it: ``struct<writeId, bucketId, rowId>``.
    """
    rows = read_rows(spark, state)
    shown = [F.col(quoted(column.name)) for column in (*state.table.columns, *state.table.partition_keys)]
    if row_id:
        names = ("writeId", "bucketId", "rowId")
        shown.insert(0, F.struct(*map(lambda k, n: F.col(k).alias(n), KEY_COLUMNS, names)).alias(ROW_ID))
    return rows.select(*shown)


def read_rows(spark: SparkSession, state: TableState) -> DataFrame:
    """As `read_table`, with the hidden columns that a change needs: `KEY_COLUMNS` and `partition_columns`."""
    table = state.table
    untouched, touched, deletes = _split(state)
    depth = len(table.partition_keys)
    row, with_path = row_type(table.columns), depth > 0
    parts: list[DataFrame] = []
    if untouched or not touched:
        parts.append(scan(spark, row, untouched, state.write_ids, with_path=with_path))
    if touched:
        several = len({directory.path.rpartition("/")[0] for directory in deletes}) > 1
        parts.append(
            anti_join(
                scan(spark, row, touched, state.write_ids, with_path=with_path),
                delete_events(spark, deletes, state.write_ids, with_path=with_path),
                depth,
                several=several,
                broadcast=_delete_bytes(state) <= BROADCAST_LIMIT_BYTES,
            )
        )
    events = parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])
    texts = partition_texts(depth, (partition.name for partition in state.partitions))
    return events.select(
        *(F.col(name).alias(hidden) for name, hidden in zip(KEY, KEY_COLUMNS, strict=True)),
        *(text.alias(name) for text, name in zip(texts, partition_columns(table), strict=True)),
        *row_fields(column.name for column in table.columns),
        *(
            text.try_cast(spark_type(key.type)).alias(key.name)
            for text, key in zip(texts, table.partition_keys, strict=True)
        ),
    )


def delete_events(
    spark: SparkSession, directories: Sequence[ScanDirectory], write_ids: ValidWriteIdList, *, with_path: bool = False
) -> DataFrame:
    """The visible delete events in `directories`.

    They are found by a comparison: of an equation Spark would conclude that the scan's own filter, which names
    `operation`, is always true, and drop it.
    """
    events = scan(spark, t.StructType([]), directories, write_ids, with_path=with_path)
    return events.where(F.col("operation") >= DELETE)


def _split(state: TableState) -> tuple[list[ScanDirectory], list[ScanDirectory], list[ScanDirectory]]:
    """Data without reachable deletes, data with them, and those deletes."""
    untouched: list[ScanDirectory] = []
    touched: list[ScanDirectory] = []
    deletes: list[ScanDirectory] = []
    for partition in state.partitions:
        events = partition.scan_directories(partition.state.delete_deltas)
        data = partition.scan_directories(partition.state.data)
        reached = [found for found in data if any(_reaches(event.directory, found.directory) for event in events)]
        untouched += [found for found in data if found not in reached]
        touched += reached
        if reached:
            deletes += events
    return untouched, touched, deletes


def _reaches(deletes: Directory, data: Directory) -> bool:
    """Whether delete events may name rows of `data`: rows of its write or of an earlier one (acid-format.md §3.3).

    A statement deletes no row that itself inserts.
    """
    if data.min_write_id == deletes.max_write_id and None not in (data.statement_id, deletes.statement_id):
        return (data.statement_id or 0) < (deletes.statement_id or 0)
    return data.min_write_id <= deletes.max_write_id


def _delete_bytes(state: TableState) -> int:
    return sum(found.size for partition in state.partitions for found in partition.state.delete_deltas)


def anti_join(
    data: DataFrame, deletes: DataFrame, depth: int = 0, *, several: bool = False, broadcast: bool = True
) -> DataFrame:
    """The events of `data` that no event of `deletes` names, all of one partition or of `several`, of `depth` keys."""
    mixed = _mixed_key(depth if several else 0)
    keys = deletes.select(
        mixed.alias("__acid_deleted"),
        *(F.col(name).alias(f"__acid_deleted_{name}") for name in KEY),
        *([partition_path(depth).alias("__acid_deleted_in")] if depth else []),
    )
    # Differences compared with zero, since Spark would make join keys of plain equations.
    same: Column = mixed == F.col("__acid_deleted")
    for name in KEY:
        same &= (F.col(name) - F.col(f"__acid_deleted_{name}")) == 0
    if depth:
        same &= F.startswith(
            F.substring_index(PATH_COLUMN, "/", -depth - 2), F.concat(F.col("__acid_deleted_in"), F.lit("/"))
        )
    return data.join(F.broadcast(keys) if broadcast else keys, same, "left_anti")


def _mixed_key(depth: int) -> Column:
    """One long that tells most rows apart: row id, statement, bucket and write id side by side, and the partition."""
    key = F.expr(
        "rowId ^ shiftleft(cast(bucket & 4095 AS bigint), 30)"
        " ^ shiftleft(cast(shiftright(bucket, 16) & 4095 AS bigint), 34) ^ shiftleft(originalTransaction, 46)"
    )
    return key.bitwiseXOR(F.xxhash64(partition_path(depth))) if depth else key
