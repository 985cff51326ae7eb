"""INSERT OVERWRITE: rows of a frame become a base, which replaces what a table or partition held (acid-format.md §4.3).

A base is the most dangerous thing to write, since other engines read it before it is committed (acid-format.md §4.3).
So it is put into place last, removed first when the transaction aborts, and the lock keeps readers away meanwhile, as
Hive does by default (transactions.md §3.10). Readers of hive-acid see no base before its commit, and hold their lock as
long as their frames live: for them nobody waits.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from hive_acid.catalog.references import TableReference
from hive_acid.catalog.table import Table
from hive_acid.connection import Connection
from hive_acid.errors import ColumnError
from hive_acid.format.partitions import parse_partition_name
from hive_acid.ids import TxnId
from hive_acid.spark.values.specs import PartitionSpec, spec_values, with_constants
from hive_acid.spark.write.insert import new_rows, plan_of, stored
from hive_acid.spark.write.planned import Planned
from hive_acid.spark.write.statement import Context, Overwrite, Statement
from hive_acid.transactions.locks import Operation
from hive_acid.transactions.transaction import AGENT_INFO, Transaction
from hive_acid.wire import ttypes
from hive_acid.write.same_partitions import name_there
from hive_acid.write.table_write import Intent, TableWrite


def overwriting(
    connection: Connection,
    transaction: Transaction,
    meant: TableReference,
    spec: PartitionSpec,
    *,
    with_rows: bool = True,
) -> Intent:
    """What an overwrite is about to do: replace the one partition that `spec` names, or those into which rows fall."""
    names: dict[int, str] = {}

    def partition(table: Table) -> str | None:
        if not table.partition_keys or {name.lower() for name in spec} != {key.name for key in table.partition_keys}:
            return None
        if table.id not in names:
            names[table.id] = name_there(connection, table, spec_values(table, spec))
        return names[table.id]

    own = transaction.id if transaction.is_opened else None  # it is opened with its lock
    beside = has_own_readers(connection, meant, own)
    also = (Operation.INSERT,) if with_rows else ()
    return Intent(Operation.DELETE, also, overwrites=True, beside_readers=beside, partition=partition)


def overwrite(
    context: Context,
    begun: TableWrite,
    frame: DataFrame,
    partition: PartitionSpec | None = None,
    *,
    everything: bool = False,
) -> Planned[int]:
    """Replace rows by those of `frame`; gives their number.

    Of an unpartitioned table all rows are replaced, of a partitioned one those of each partition that rows of `frame`
    fall into, or `everything`. `partition` gives values of the first partition columns, which `frame` then need not
    have, and no other ones: with all of them, that partition is replaced even if `frame` is empty.

    Raises ColumnError for columns, values or a `partition` that do not fit, UnsupportedTableError for a table CLUSTERED
    BY an older hash.
    """
    statement, table = Statement(context, begun), begun.table
    statement.refuse_clustered("INSERT OVERWRITE")
    given, whole = with_constants(table, frame, partition)
    values = stored(table, given)
    plan = plan_of(context, "INSERT OVERWRITE of", table, values, in_one_directory=True)

    def run() -> int:
        write = statement.write()
        replaced = [] if whole is None else [whole]
        if everything and table.partition_keys:
            names = context.connection.partition_names(table)
            replaced = [tuple(value for _, value in parse_partition_name(name)) for name in names]
        return statement.run(new_rows(table, values, write, plan), write, overwrite=Overwrite(replaced)).inserts

    return Planned(plan, run, 0)


def is_there(connection: Connection, begun: TableWrite) -> bool:
    """Whether the one partition that is to be replaced is there. Raises ColumnError if it is not one."""
    name = begun.intent.partition(begun.table)
    if name is None:
        raise ColumnError(f"if_not_exists is of one partition: give each key of {begun.table.full_name} a value")
    return bool(connection.partitions_named(begun.table, [name]))


def has_own_readers(connection: Connection, table: TableReference, own: TxnId | None = None) -> bool:
    """Whether frames of hive-acid read the table now, here or elsewhere, but for those of transaction `own`."""
    request = ttypes.ShowLocksRequest(dbname=table.database, tablename=table.name)
    return any(
        lock.type == ttypes.LockType.SHARED_READ and (lock.agentInfo or "").startswith(AGENT_INFO) and lock.txnid != own
        for lock in connection.call("show_locks", request).locks or ()
    )
