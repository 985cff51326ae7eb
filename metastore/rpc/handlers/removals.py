"""RPC of our own: directories of dropped objects that are still to be removed."""

from __future__ import annotations

from typing import Any

from hive_acid.wire import ttypes
from metastore.catalog.removal.removals import Removals, WaitingRemoval
from metastore.rpc.call import Call, Handler


def handlers(removals: Removals) -> dict[str, Handler]:
    """The handlers by RPC name."""

    def hive_acid_removals(call: Call, request: Any) -> Any:
        if request.forget is not None:
            removals.forget(request.forget)
        return ttypes.HiveAcidRemovalsResponse(removals=[_removal(one) for one in removals.waiting()])

    return {"hive_acid_removals": hive_acid_removals}


def _removal(removal: WaitingRemoval) -> Any:
    return ttypes.HiveAcidRemoval(
        id=removal.id,
        location=removal.location,
        trash=removal.trash,
        owner=removal.owner,
        since=removal.noted_ms,
        attempts=removal.attempts,
        nextAttempt=removal.next_ms or None,
        error=removal.error,
    )
