"""RPCs that keep two from rebuilding the same materialised view (transactions.md §3.10)."""

from __future__ import annotations

from typing import Any

from hive_acid.errors import InvalidInputError
from hive_acid.ids import TxnId
from hive_acid.wire import ttypes
from metastore.rpc.call import Call, Handler
from metastore.txn.rebuild import RebuildLocks


def handlers(rebuilds: RebuildLocks) -> dict[str, Handler]:
    """The handlers by RPC name."""

    def get_lock_materialization_rebuild(call: Call, database: str | None, view: str | None, txn_id: int | None) -> Any:
        database, view, txn_id = _named(database, view, txn_id)
        acquired = rebuilds.lock(database, view, TxnId(txn_id))
        state = ttypes.LockState.ACQUIRED if acquired else ttypes.LockState.NOT_ACQUIRED
        return ttypes.LockResponse(lockid=txn_id, state=state)

    def heartbeat_lock_materialization_rebuild(
        call: Call, database: str | None, view: str | None, txn_id: int | None
    ) -> bool:
        database, view, txn_id = _named(database, view, txn_id)
        return rebuilds.heartbeat(database, view, TxnId(txn_id))

    served = (get_lock_materialization_rebuild, heartbeat_lock_materialization_rebuild)
    return {handler.__name__: handler for handler in served}


def _named(database: str | None, view: str | None, txn_id: int | None) -> tuple[str, str, int]:
    if not database or not view or txn_id is None:
        raise InvalidInputError("the rebuild of a view is of a database, a view and a transaction: one is missing")
    return database, view, txn_id
