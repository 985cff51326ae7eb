"""RPCs of locks (transactions.md §3, §11); lock and check_lock wait a while for a lock that is not free."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hive_acid.errors import MetaError, TxnAbortedError
from hive_acid.ids import LockId, TxnId
from hive_acid.wire import ttypes
from metastore.compaction.trino import TrinoGuard, is_trino
from metastore.lock.models import LockComponent, LockInfo, LockRequest, LockResult
from metastore.lock.polling import LockPolling
from metastore.lock.service import LockService
from metastore.lock.states import LockAnswer, LockState, LockType
from metastore.rpc.call import Call, Handler
from metastore.txn.models import TxnOwner
from metastore.txn.names import stored_name
from metastore.txn.states import Operation

_TYPES = {
    ttypes.LockType.SHARED_READ: LockType.SHARED_READ,
    ttypes.LockType.SHARED_WRITE: LockType.SHARED_WRITE,
    ttypes.LockType.EXCLUSIVE: LockType.EXCLUSIVE,
    ttypes.LockType.EXCL_WRITE: LockType.EXCL_WRITE,
}
_WIRE_TYPES = {ours: wire for wire, ours in _TYPES.items()}
_ELDER_WIRE_TYPES = {**_WIRE_TYPES, LockType.EXCL_WRITE: ttypes.LockType.EXCLUSIVE}
"""For clients before Hive 4: they read a value they do not know as an absent one, and fail (wire.md §1.3)."""
_WIRE_STATES = {LockState.ACQUIRED: ttypes.LockState.ACQUIRED, LockState.WAITING: ttypes.LockState.WAITING}
_ANSWERS = {
    LockAnswer.ACQUIRED: ttypes.LockState.ACQUIRED,
    LockAnswer.WAITING: ttypes.LockState.WAITING,
    LockAnswer.NOT_ACQUIRED: ttypes.LockState.NOT_ACQUIRED,
}
_WRITES = {
    ttypes.DataOperationType.INSERT: Operation.INSERT,
    ttypes.DataOperationType.UPDATE: Operation.UPDATE,
    ttypes.DataOperationType.DELETE: Operation.DELETE,
}
_CHANGES = (ttypes.DataOperationType.UPDATE, ttypes.DataOperationType.DELETE)
_WRITES_NOTHING = (ttypes.DataOperationType.SELECT, ttypes.DataOperationType.NO_TXN)


def handlers(
    locks: LockService, polling: LockPolling, guard: TrinoGuard | None, abort: Callable[[TxnId], object]
) -> dict[str, Handler]:
    """The handlers by RPC name; `guard` is asked where Trino changes rows, and `abort` ends what it refuses."""

    async def lock(call: Call, request: Any) -> Any:
        if guard is not None and is_trino(request.agentInfo):
            try:
                await call.run(_check_changes, guard, request)
            except MetaError as error:
                # Trino goes on heartbeating it after its query has failed, and it would hold back what helps.
                if not (txn_id := _txn_id(request)):
                    raise
                await call.run(abort, txn_id)
                # After any other error it asks again, for half a minute.
                raise TxnAbortedError(str(error)) from error
        return lock_response(await polling.lock(_lock_request(request)))

    async def check_lock(call: Call, request: Any) -> Any:
        return lock_response(await polling.check_lock(LockId(request.lockid), _txn_id(request)))

    async def unlock(call: Call, request: Any) -> None:
        await locks.unlock_soon(LockId(request.lockid))

    def show_locks(call: Call, request: Any) -> Any:
        database, table = _narrowed_to(request)
        found = locks.show_locks(database, table, request.partname, _txn_id(request))
        is_hive_4 = call.session.is_hive_4 or request.txnid is not None
        types = _WIRE_TYPES if is_hive_4 else _ELDER_WIRE_TYPES
        return ttypes.ShowLocksResponse(locks=[_element(info, types) for info in found])

    served: tuple[Handler, ...] = (lock, check_lock, unlock, show_locks)
    return {handler.__name__: handler for handler in served}


def _check_changes(guard: TrinoGuard, request: Any) -> None:
    """Raise MetaError if a component is a change that the guard refuses."""
    for component in request.component or ():
        if component.operationType in _CHANGES and component.dbname and component.tablename:
            guard.check(stored_name(component.dbname), stored_name(component.tablename))


def _txn_id(request: Any) -> TxnId | None:
    """The transaction of a request; absent and 0 both mean none."""
    return TxnId(request.txnid) if request.txnid else None


def _narrowed_to(request: Any) -> tuple[str | None, str | None]:
    """Database and table that locks are shown of.

    For ``SHOW LOCKS db.t`` Hive sends ``db.t`` as the table's name, beside the session's current database.
    """
    above, dot, table = (request.tablename or "").rpartition(".")
    return (above.rpartition(".")[2], table) if dot else (request.dbname, request.tablename)


def _lock_request(request: Any) -> LockRequest:
    txn_id = _txn_id(request)
    return LockRequest(
        components=tuple(
            lock_component(component, in_transaction=txn_id is not None) for component in request.component or ()
        ),
        owner=TxnOwner(request.user or "", request.hostname or "", request.agentInfo or "Unknown"),
        txn_id=txn_id,
        reader_waits=not request.zeroWaitReadEnabled,
        exclusive_ctas=bool(request.exclusiveCTAS),
    )


def lock_component(component: Any, *, in_transaction: bool) -> LockComponent:
    """The model of a component. Raises MetaError for one that makes no sense."""
    if component.type not in _TYPES:
        raise MetaError(f"there is no lock type {component.type}")
    return LockComponent(
        type=_TYPES[component.type],
        db=component.dbname or "",
        table=component.tablename or None,
        partition=component.partitionname or None,
        operation=_operation(component, in_transaction=in_transaction),
        dynamic=bool(component.isDynamicPartitionWrite),
    )


def _operation(component: Any, *, in_transaction: bool) -> Operation | None:
    """What the component is going to write; absence of isTransactional means transactional (transactions.md §3.2)."""
    if not in_transaction or component.isTransactional is False or component.operationType in _WRITES_NOTHING:
        return None
    if component.operationType not in _WRITES:
        raise MetaError("a lock component in a transaction needs its operationType: SELECT, INSERT, UPDATE, ...")
    operation = _WRITES[component.operationType]
    return Operation.UPDATE if component.bringsKeys and operation is Operation.INSERT else operation


def lock_response(result: LockResult) -> Any:
    """The answer to a request."""
    return ttypes.LockResponse(lockid=result.lock_id, state=_ANSWERS[result.answer], errorMessage=result.message)


def _element(info: LockInfo, types: Mapping[LockType, int]) -> Any:
    return ttypes.ShowLocksResponseElement(
        lockid=info.lock_id,
        dbname=info.db,
        tablename=info.table,
        partname=info.partition,
        state=_WIRE_STATES[info.state],
        type=types[info.type],
        txnid=info.txn_id,
        lastheartbeat=info.heartbeat_ms or 0,
        acquiredat=info.acquired_ms,
        user=info.owner.user,
        hostname=info.owner.host,
        heartbeatCount=0,
        agentInfo=info.owner.agent_info,
        blockedByExtId=info.blocker_lock,
        blockedByIntId=info.blocker_component,
        lockIdInternal=info.component,
    )
