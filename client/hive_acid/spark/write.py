"""INSERT: rows of a frame become a delta of the table, in as few files as their size allows."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hive_acid.catalog import Table
from hive_acid.spark.assign import assigned, match_columns, quoted
from hive_acid.spark.events import insert_events
from hive_acid.spark.statement import Context, Statement
from hive_acid.transaction import Operation, Transaction


def insert(context: Context, transaction: Transaction, table: Table, frame: DataFrame) -> int:
    """Insert the rows of `frame`, whose columns meet the table's by name, in any case and order.

    The partition of each row comes from its partition columns; new partitions are registered. Raises ColumnError for
    columns or values that do not fit, UnsupportedTableError for a CLUSTERED table. Returns the number of rows.
    """
    statement = Statement(context, transaction, table)
    statement.refuse_clustered("INSERT")
    names = match_columns(table, frame.columns)
    row = assigned(table, table.columns, frame, names)
    keys = assigned(table, table.partition_keys, frame, names)
    statement.lock(Operation.INSERT)
    write = statement.write()
    values = frame.select(*row, *keys)
    events = insert_events(
        values,
        [F.col(quoted(column.name)) for column in table.columns],
        [F.col(quoted(key.name)).cast("string") for key in table.partition_keys],
        write,
    )
    return statement.run(events, write, Operation.INSERT).inserts
