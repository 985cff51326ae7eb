"""What a statement locks: the components of lock requests, and what a write does to rows (transactions.md §1.6, §3)."""

from __future__ import annotations

import copy
import datetime
import enum
from collections.abc import Sequence
from typing import Any, Protocol

from hive_acid.errors import HiveAcidError
from hive_acid.ids import TxnId
from hive_acid.wire import ttypes


class Operation(enum.Enum):
    """What a write does to existing rows; decides the commit-time conflict check (transactions.md §1.6)."""

    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


def read_component(database: str, table: str) -> Any:
    """The lock of a reader: it keeps the table from being dropped, and no writer waits for it."""
    return _component(ttypes.LockType.SHARED_READ, "SELECT", database, table)


def write_component(
    database: str,
    table: str,
    operation: Operation,
    *,
    also: Sequence[Operation] = (),
    partition: str | None = None,
    dynamic: bool = False,
    keys: bool = False,
) -> Any:
    """The lock of a writer: beside other writers (the first to commit wins), never beside a drop.

    `dynamic` says that the partitions are not known yet: they follow by `Transaction.add_dynamic_partitions`. `also`
    says what else is done to rows, for a server that enforces rights. An insert of rows whose `keys` nobody else may
    bring meanwhile is a change, as to conflicts.
    """
    insert = operation is Operation.INSERT and not keys
    kind = ttypes.LockType.SHARED_READ if insert else ttypes.LockType.SHARED_WRITE
    return _component(
        *(kind, operation.value, database, table, also),
        partitionname=partition,
        isDynamicPartitionWrite=dynamic,
        bringsKeys=keys or None,
    )


def overwrite_component(
    database: str,
    table: str,
    *,
    also: Sequence[Operation] = (),
    partition: str | None = None,
    dynamic: bool = False,
    beside_readers: bool = False,
) -> Any:
    """The lock of an overwrite: alone with the table or partition, and in conflict with who changed it meanwhile.

    With `beside_readers` those that read are not waited for: only for such as ignore a base that is not committed.
    """
    kind = ttypes.LockType.EXCL_WRITE if beside_readers else ttypes.LockType.EXCLUSIVE
    return _component(
        kind, Operation.DELETE.value, database, table, also, partitionname=partition, isDynamicPartitionWrite=dynamic
    )


def plain_component(database: str, table: str, *, partition: str | None = None, overwrites: bool = False) -> Any:
    """The lock of who writes files of a plain table: an overwrite is alone with them, and nobody waits for readers.

    What is written has no write id, and so is no part of the transaction.
    """
    kind = ttypes.LockType.EXCL_WRITE if overwrites else ttypes.LockType.SHARED_WRITE
    also = (Operation.INSERT, *((Operation.DELETE,) if overwrites else ()))
    component = _component(kind, "NO_TXN", database, table, also, partitionname=partition)
    component.isTransactional = False
    return component


def alone_with_rows(component: Any) -> Any:
    """What READ COMMITTED locks instead of `component`: nobody else changes these rows until its end."""
    if component.type != ttypes.LockType.SHARED_WRITE:
        return component
    alone = copy.copy(component)
    alone.type = ttypes.LockType.EXCL_WRITE
    return alone


class Calls(Protocol):
    """Whoever calls a metastore."""

    def call(self, method: str, *args: Any) -> Any: ...


def holder_of(calls: Calls, component: Any, lock_id: int) -> str:
    """Who is in the way of a request that waits for `component`, in words."""
    locks = _locks(calls, component.dbname, component.tablename)
    blockers = {lock.blockedByExtId for lock in locks if lock.lockid == lock_id}
    for lock in locks:
        if lock.lockid in blockers:
            if lock.state != ttypes.LockState.ACQUIRED:
                return f"{_who(lock)} asked for it before"
            since = datetime.datetime.fromtimestamp((lock.acquiredat or 0) / 1000).astimezone()
            return f"{_who(lock)} holds it since {since:%Y-%m-%d %H:%M:%S}"
    return "another transaction holds it"


def holders_of(calls: Calls, components: Sequence[Any], lock_id: int) -> set[TxnId]:
    """The transactions that have locks which a request for `components` waits for, as far as the metastore says."""
    tables = {(component.dbname, component.tablename) for component in components}
    locks = [lock for database, table in tables for lock in _locks(calls, database, table)]
    blockers = {lock.blockedByExtId for lock in locks if lock.lockid == lock_id}
    return {TxnId(lock.txnid) for lock in locks if lock.lockid in blockers and lock.state == ttypes.LockState.ACQUIRED}


def users_of(calls: Calls, database: str, table: str, own: TxnId) -> str:
    """Who else has locks on a table, in words."""
    return ", ".join(sorted({_who(lock) for lock in _locks(calls, database, table) if lock.txnid != own}))


def _locks(calls: Calls, database: str, table: str) -> list[Any]:
    try:
        return list(calls.call("show_locks", ttypes.ShowLocksRequest(dbname=database, tablename=table)).locks or ())
    except HiveAcidError:
        return []


def _who(lock: Any) -> str:
    what = f"transaction {lock.txnid}" if lock.txnid else f"lock {lock.lockid}"
    return f"{what} of {lock.user} at {lock.hostname} ({lock.agentInfo})"


def _of_hive(operation: str) -> int:
    number: int = getattr(ttypes.DataOperationType, operation)
    return number


def _component(
    kind: int, operation: str, database: str, table: str, also: Sequence[Operation] = (), **more: Any
) -> Any:
    return ttypes.LockComponent(
        type=kind,
        level=ttypes.LockLevel.PARTITION if more.get("partitionname") else ttypes.LockLevel.TABLE,
        dbname=database,
        tablename=table,
        operationType=_of_hive(operation),
        isTransactional=True,
        alsoOperations=[_of_hive(one.value) for one in also] or None,
        **more,
    )
