"""Compactions asked for, and waited for: CONCATENATE is one (acid-format.md §6)."""

from __future__ import annotations

import time
from collections.abc import Sequence

from hive_acid.catalog import Table
from hive_acid.connection import Connection
from hive_acid.errors import CompactionFailedError
from hive_acid.spark.specs import PartitionSpec, matching_names
from hive_acid.wire import ttypes

_MERGED = ("succeeded", "ready for cleaning")
_UNDER_WAY = ("initiated", "working")
_NOTHING_TO_DO = "nothing to do"
_POLL_S = 0.2


def request(connection: Connection, table: Table, kind: str, partition: PartitionSpec | None = None) -> list[int]:
    """Queue compactions, ``major`` or ``minor``, of the table or of the partitions that `partition` covers.

    Returns the ids of those queued: one that is queued or under way already is not queued again.
    """
    names: Sequence[str] = ()
    if table.partition_keys:
        names = list(connection.partitions(table))
        names = matching_names(table, partition, names) if partition else names
        if not names:
            return []
    return connection.compact(table.database, table.name, kind, names)


def wait(connection: Connection, ids: Sequence[int], timeout_ms: int) -> None:
    """Wait until the compactions have merged their files; what they replaced goes later.

    A compaction that finds nothing to do is fine. Raises CompactionFailedError for one that fails or was aborted, or if
    they do not end in time: no worker may be running.
    """
    deadline = time.monotonic() + timeout_ms / 1000
    left = set(ids)
    while left:
        for compaction_id in sorted(left):
            if _has_merged(connection, compaction_id):
                left.discard(compaction_id)
        if left and time.monotonic() >= deadline:
            raise CompactionFailedError(
                f"compaction {min(left)} did not end within {timeout_ms} ms; it goes on. Is a worker running? "
                "See hive.compactor.worker.threads"
            )
        if left:
            time.sleep(_POLL_S)


def _has_merged(connection: Connection, compaction_id: int) -> bool:
    found = connection.call("show_compact", ttypes.ShowCompactRequest(id=compaction_id)).compacts
    if not found:  # ended so long ago that the history has forgotten it
        return True
    state, message = found[0].state, found[0].errorMessage or ""
    if state in _MERGED or (state == "refused" and _NOTHING_TO_DO in message):
        return True
    if state not in _UNDER_WAY:
        raise CompactionFailedError(f"compaction {compaction_id} is {state}: {message}")
    return False
