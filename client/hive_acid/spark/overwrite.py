"""INSERT OVERWRITE: rows of a frame become a base, which replaces what a table or partition held (acid-format.md §4).

A base is the most dangerous thing to write, since other engines read it before it is committed (acid-format.md §0.11).
So it is put into place last, removed first when the transaction aborts, and the lock keeps readers away meanwhile, as
Hive does by default (transactions.md §3.10). Readers of hive-acid see no base before its commit, and hold their lock as
long as their frames live: for them nobody waits.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hive_acid.catalog import Table
from hive_acid.connection import Connection
from hive_acid.errors import ColumnError
from hive_acid.ids import TxnId
from hive_acid.locks import Operation, overwrite_component
from hive_acid.spark.statement import Context, Overwrite, Statement
from hive_acid.spark.types import spark_type
from hive_acid.spark.write import new_rows, stored
from hive_acid.transaction import AGENT_INFO, Transaction
from hive_acid.wire import ttypes


def overwrite(
    context: Context,
    transaction: Transaction,
    table: Table,
    frame: DataFrame,
    partition: Mapping[str, str | None] | None = None,
) -> int:
    """Replace rows by those of `frame`; their number.

    Of an unpartitioned table all rows are replaced, of a partitioned one those of each partition that rows of `frame`
    fall into. `partition` gives values of the first partition columns, which `frame` then has not: with all of them,
    that partition is replaced even if `frame` is empty.

    Raises ColumnError for columns, values or a `partition` that do not fit, UnsupportedTableError for a table CLUSTERED
    BY an older hash.
    """
    statement = Statement(context, transaction, table)
    statement.refuse_clustered("INSERT OVERWRITE")
    static = _static_values(table, partition or {})
    given = {name.lower() for name in frame.columns}
    if doubled := [key for key in static if key in given]:
        raise ColumnError(f"{', '.join(doubled)} of {table.full_name} is given by the partition and by the frame, too")
    constants = {key: F.lit(value).cast("string") for key, value in static.items()}
    values = stored(table, frame.select("*", *(value.alias(key) for key, value in constants.items())))
    whole = tuple(static.values()) if len(static) == len(table.partition_keys) else None
    beside = has_own_readers(context.connection, table, transaction.id)
    name = table.partition_name(whole) if whole else None
    dynamic = whole is None
    transaction.lock(
        overwrite_component(table.database, table.name, partition=name, dynamic=dynamic, beside_readers=beside)
    )
    write = statement.write()
    events = new_rows(context, table, values, write, in_one_directory=True)
    return statement.run(events, write, Operation.UPDATE, overwrite=Overwrite(whole)).inserts


def has_own_readers(connection: Connection, table: Table, own: TxnId | None = None) -> bool:
    """Whether frames of hive-acid read the table now, here or elsewhere, but for those of transaction `own`."""
    request = ttypes.ShowLocksRequest(dbname=table.database, tablename=table.name)
    return any(
        lock.type == ttypes.LockType.SHARED_READ and lock.agentInfo == AGENT_INFO and lock.txnid != own
        for lock in connection.call("show_locks", request).locks or ()
    )


def _static_values(table: Table, partition: Mapping[str, str | None]) -> dict[str, str | None]:
    """`partition` in the order of the table's keys, its values as texts of the keys' types."""
    given = {name.lower(): value for name, value in partition.items()}
    keys = [key.name for key in table.partition_keys]
    if set(given) != set(keys[: len(given)]):
        raise ColumnError(
            f"the partition to overwrite names {', '.join(given)}; of {table.full_name} it has to name the first of "
            f"its partition columns ({', '.join(keys) or 'it has none'})"
        )
    for key in table.partition_keys:
        spark_type(key.type)
    return {key: given[key] for key in keys if key in given}
