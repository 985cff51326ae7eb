"""What an INSERT OVERWRITE is about to do, and who reads what it replaces (acid-format.md §4.3).

A base is the most dangerous thing to write, since other engines read it before it is committed (acid-format.md §4.3).
So it is put into place last, removed first when the transaction aborts, and the lock keeps readers away meanwhile, as
Hive does by default (transactions.md §3.10). Readers of hive-acid see no base before its commit, and hold their lock as
long as their frames live: for them nobody waits.
"""

from __future__ import annotations

from hive_acid.catalog.references import TableReference
from hive_acid.catalog.table import Table
from hive_acid.connection import Connection
from hive_acid.errors import ColumnError
from hive_acid.ids import TxnId
from hive_acid.spark.values.specs import PartitionSpec, spec_values
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
