"""EXPORT and IMPORT: the rows of one snapshot as plain ORC files, with a description that makes the table anew.

An export is a directory: ``data`` has all rows, partition columns among them, as files that anything reads;
``_export.json`` has the definition, the partitions, the snapshot, and the number of rows. The description is written
last, so an export without it has not ended. An import writes the rows anew, under write ids of its own: ids of rows
mean nothing in another table.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from hive_acid.catalog.references import TableReference
from hive_acid.catalog.table import Table
from hive_acid.connection import Connection
from hive_acid.errors import AlreadyExistsError, ColumnError, FilesInTheWayError, FormatError, NoSuchObjectError
from hive_acid.filesystem import files
from hive_acid.format.progress import PROGRESS_PREFIX
from hive_acid.format.properties import OF_ROWS
from hive_acid.spark.jvm.frames.observed import count_of
from hive_acid.spark.jvm.sources import reader_of, writer_of
from hive_acid.spark.read import insert_only
from hive_acid.spark.read.listing import TableState
from hive_acid.spark.read.table_frame import read_table
from hive_acid.spark.values.specs import PartitionSpec, matching_names
from hive_acid.spark.values.types import row_type
from hive_acid.spark.write.statement import Context
from hive_acid.transactions.transaction import Transaction
from hive_acid.wire import ttypes

DESCRIPTION = "_export.json"
DATA = "data"
_VERSION = 1
_OF_THIS_TABLE = OF_ROWS | {"EXTERNAL"}
"""Parameters that say something of one table's files, not of its kind; what streams have got to does so, too."""


@dataclass(frozen=True)
class Export:
    """What the description of an export says; types are Hive's, `write_ids` is the snapshot's text."""

    version: int
    table: str
    columns: dict[str, str]
    partition_keys: dict[str, str]
    bucket_columns: list[str]
    buckets: int
    parameters: dict[str, str]
    partitions: list[str]
    write_ids: str
    rows: int
    exported_s: int
    location: str

    def is_target(self, connection: Connection, database: str, name: str) -> bool:
        """Whether there is a table of this name, and the export may fill it; False if there is none.

        Raises ColumnError if its columns are others, AlreadyExistsError if rows have been written to it.
        """
        try:
            there = connection.table(database, name)
        except NoSuchObjectError:
            return False
        has = {column.name: column.type for column in there.all_columns}
        wants = {**self.columns, **self.partition_keys}
        if has != wants or [key.name for key in there.partition_keys] != list(self.partition_keys):
            raise ColumnError(
                f"{there.full_name} has other columns than the export: {_words(has)}, not {_words(wants)}"
            )
        request = ttypes.MaxAllocatedTableWriteIdRequest(dbName=database, tableName=name)
        if connection.call("get_max_allocated_table_write_id", request).maxWriteId > 0:
            raise AlreadyExistsError(f"{there.full_name} has been written to: import into a new table, or an empty one")
        return True

    def fill(
        self, spark: SparkSession, connection: Connection, table: Table, insert: Callable[[Table, DataFrame], int]
    ) -> int:
        """Write the rows into a table by `insert`, and add partitions that have none; the number of rows.

        Raises FormatError if the files have not as many rows as the description says.
        """
        schema = row_type(table.all_columns)
        rows = insert(table, reader_of(spark, "orc").schema(schema).load(files.join(self.location, DATA)))
        if rows != self.rows:
            raise FormatError(f"the export at {self.location} has {rows} rows, and says that it has {self.rows}")
        if self.partitions:
            connection.add_partitions(table, {name: files.join(table.location, name) for name in self.partitions})
        return rows


def export_table(
    context: Context,
    transaction: Transaction,
    meant: TableReference,
    location: str,
    partition: PartitionSpec | None = None,
) -> int:
    """Write what the transaction sees of the table, or of the partitions that `partition` covers; the number of rows.

    Raises FilesInTheWayError if `location` has an export already, or other files; ColumnError and NoSuchObjectError as
    `matching_names`.
    """
    _check_free(location)
    table = context.locked_for_reading(transaction, meant)
    state = context.state(transaction, table)
    names = [found.name for found in state.partitions] if table.partition_keys else []
    if partition is not None:
        names = matching_names(table, partition, names)
        state = replace(state, partitions=tuple(found for found in state.partitions if found.name in names))
    files.remove(files.join(location, DATA))
    counts = Observation()
    counted = _rows(context, state).observe(counts, F.count(F.lit(1)).alias("rows"))
    writer_of(counted, "orc").option("compression", context.compression).save(files.join(location, DATA))
    described = Export(
        version=_VERSION,
        table=table.full_name,
        columns={column.name: column.type for column in table.columns},
        partition_keys={key.name: key.type for key in table.partition_keys},
        bucket_columns=list(table.bucket_columns),
        buckets=table.buckets,
        parameters={key: value for key, value in table.parameters.items() if not _is_of_this_table(key)},
        partitions=names,
        write_ids=str(state.write_ids),
        rows=count_of(counts, "rows", "the export is not complete; run it again"),
        exported_s=int(time.time()),
        location=location,
    )
    said = {key: value for key, value in asdict(described).items() if key != "location"}
    files.write(files.join(location, DESCRIPTION), json.dumps(said, indent=1).encode())
    return described.rows


def read_export(location: str) -> Export:
    """The description of an export. Raises FormatError if there is none, or one that cannot be understood."""
    path = files.join(location, DESCRIPTION)
    if not files.exists(path):
        raise FormatError(f"{location} holds no export that has ended: there is no {DESCRIPTION} in it")
    try:
        said: dict[str, Any] = json.loads(files.read(path))
        found = Export(**said, location=location)
    except (ValueError, TypeError) as error:
        raise FormatError(f"{path} cannot be understood: {error}") from error
    if found.version != _VERSION:
        raise FormatError(f"{path} is of version {found.version}, and this is written for {_VERSION}")
    return found


def _check_free(location: str) -> None:
    """Whether nothing is there but what an export that failed has left."""
    for entry in files.list_tree(location, max_depth=1):
        if entry.path == DESCRIPTION or entry.path.rstrip("/") != DATA:
            raise FilesInTheWayError(f"{location} is in use ({entry.path}): export to a directory of its own")


def _rows(context: Context, state: TableState) -> DataFrame:
    if state.table.is_full_acid:
        return read_table(context.spark, state)
    return insert_only.read_table(context.spark, state)


def _words(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def _is_of_this_table(parameter: str) -> bool:
    return parameter in _OF_THIS_TABLE or parameter.startswith(PROGRESS_PREFIX)
