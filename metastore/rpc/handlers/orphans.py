"""RPC of our own: directories that no transaction can make visible any more, found and removed."""

from __future__ import annotations

from typing import Any

from hive_acid.errors import MetaError
from hive_acid.wire import ttypes
from metastore.compaction.cleaner.orphans import Orphan, Orphans, Sweep
from metastore.rpc.call import Call, Handler
from metastore.txn.names import stored_name

_MOST_TOLD = 10_000
"""Orphans in one answer; what there is more is only counted."""


def handlers(orphans: Orphans) -> dict[str, Handler]:
    """The handlers by RPC name."""

    def hive_acid_orphans(call: Call, request: Any) -> Any:
        if request.olderThanMs < 0:
            raise MetaError(f"directories cannot be {request.olderThanMs} ms old: give an age from 0 on")
        if bool(request.dbname) != bool(request.tablename):
            raise MetaError("name a table with its database, or neither for what lies beside tables")
        sweep = Sweep(request.olderThanMs, bool(request.remove), bool(request.uncertain))
        if request.tablename:
            found = orphans.of_table(stored_name(request.dbname), stored_name(request.tablename), sweep)
        else:
            found = orphans.of_warehouse(sweep)
        return ttypes.HiveAcidOrphansResponse(
            orphans=[_orphan(one) for one in found[:_MOST_TOLD]], more=max(0, len(found) - _MOST_TOLD)
        )

    return {"hive_acid_orphans": hive_acid_orphans}


def _orphan(orphan: Orphan) -> Any:
    return ttypes.HiveAcidOrphan(
        location=orphan.location,
        size=orphan.size,
        files=orphan.files,
        modified=orphan.modified_ms,
        reason=orphan.reason.value,
        why=orphan.why,
        isCertain=orphan.is_certain,
        isRemoved=orphan.is_removed,
    )
