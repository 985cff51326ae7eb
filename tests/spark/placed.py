"""Files put into a table's directory by hand, as other engines leave them there."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pyarrow
import pyarrow.orc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hive_acid.spark import AcidSession
from tests.spark.checker import location_of

BUCKET_0 = 536870912


def place(frame: DataFrame, path: Path, compression: str = "zlib", **options: str) -> None:
    """Write the rows of `frame`, in order, as the one ORC file at `path`."""
    staging = path.parent / f"_{path.name}"
    frame.coalesce(1).write.options(**options).option("compression", compression).orc(str(staging))
    (found,) = staging.glob("part-*")
    shutil.move(found, path)
    shutil.rmtree(staging)


def acid_shaped(
    rows: DataFrame, write_id: int, bucket: Column | int = BUCKET_0, operation: int = 0, row_id: Column | None = None
) -> DataFrame:
    """`rows` as events of one write, numbered from 0."""
    return rows.coalesce(1).select(
        F.lit(operation).alias("operation"),
        F.lit(write_id).cast("bigint").alias("originalTransaction"),
        (F.lit(bucket) if isinstance(bucket, int) else bucket).alias("bucket"),
        (F.monotonically_increasing_id() if row_id is None else row_id).alias("rowId"),
        F.lit(write_id).cast("bigint").alias("currentTransaction"),
        F.struct(*rows.columns).alias("row"),
    )


def commit_writes(acid: AcidSession, table: str, number: int, aborted: Iterable[int] = ()) -> Path:
    """Give out the first `number` write ids of a table, `aborted` ones among them; returns the table's directory."""
    database, _, name = table.partition(".")
    for write_id in range(1, number + 1):
        transaction = acid.connection.begin()
        assert transaction.write_id(database, name) == write_id
        if write_id in aborted:
            transaction.abort()
        else:
            transaction.commit()
    return location_of(acid, table)


def write_events(path: Path, events: Iterable[tuple[int, int, int, int, int, object]], row: pyarrow.DataType) -> None:
    """Write events, rows as dicts or None, as the file at `path`; without a type for `row`, without that column."""
    names = ["operation", "originalTransaction", "bucket", "rowId", "currentTransaction", "row"]
    kinds = [pyarrow.int32(), pyarrow.int64(), pyarrow.int32(), pyarrow.int64(), pyarrow.int64(), row]
    columns = list(zip(*events, strict=True))
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {name: pyarrow.array(column, kind) for name, column, kind in zip(names, columns, kinds, strict=False)}
    pyarrow.orc.write_table(pyarrow.table(arrays), path)
