"""RPC of our own: directories that no transaction can make visible any more, found and removed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from hive_acid.errors import MetaError
from hive_acid.wire import ttypes
from metastore.compaction.cleaner.orphans import Orphan, Orphans, Step, Sweep
from metastore.rpc.call import Call, Handler
from metastore.txn.names import stored_name

_MOST_TOLD = 10_000
"""Orphans in one answer."""
PAGE_S = 5.0
"""A call that has lasted so long ends, and the next one goes on from there; a listing of one table is not cut short."""


def handlers(orphans: Orphans) -> dict[str, Handler]:
    """The handlers by RPC name."""

    def hive_acid_orphans(call: Call, request: Any) -> Any:
        if request.olderThanMs < 0:
            raise MetaError(f"directories cannot be {request.olderThanMs} ms old: give an age from 0 on")
        if bool(request.dbname) != bool(request.tablename):
            raise MetaError("name a table with its database, or neither for what lies beside tables")
        sweep = Sweep(request.olderThanMs, bool(request.remove), bool(request.uncertain))
        after = request.after or ""
        if request.tablename:
            return _page(orphans.of_table(stored_name(request.dbname), stored_name(request.tablename), sweep, after))
        return _page(orphans.of_warehouse(sweep, after))

    return {"hive_acid_orphans": hive_acid_orphans}


def _page(steps: Iterator[Step]) -> Any:
    """As many steps as go into one answer."""
    found: list[Any] = []
    deadline = time.monotonic() + PAGE_S
    for step, orphan in steps:
        if orphan is not None:
            found.append(_orphan(orphan))
        if len(found) == _MOST_TOLD or time.monotonic() >= deadline:
            return ttypes.HiveAcidOrphansResponse(orphans=found, goOnAfter=step)
    return ttypes.HiveAcidOrphansResponse(orphans=found)


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
