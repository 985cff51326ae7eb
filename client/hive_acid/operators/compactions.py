"""Waiting for compactions that were asked for (transactions.md §4.2)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from hive_acid.connection import Connection
from hive_acid.display.status_line import status_line
from hive_acid.errors import CompactionFailedError
from hive_acid.operators.show import progress
from hive_acid.wire import ttypes

_MERGED = ("succeeded", "ready for cleaning")
_UNDER_WAY = ("initiated", "working")
_NOTHING_TO_DO = "nothing to do"
_POLL_S = 0.2


def wait(connection: Connection, ids: Sequence[int], timeout_ms: int) -> None:
    """Wait until the compactions have merged their files; what they replaced goes later.

    Of one that goes by rounds the last is waited for. A compaction that finds nothing to do is fine. Raises
    CompactionFailedError for one that fails or was aborted, or if they do not end in time: no worker may be running.
    """
    how = _HowItStands(len(ids))
    with status_line("compaction", how.told):
        _wait(connection, set(ids), timeout_ms, how)


@dataclass
class _HowItStands:
    """What the line of a terminal says: how many are left, and how far the one is that was looked at last."""

    left: int
    last: str = ""

    def told(self) -> str:
        return f"{self.left} to be waited for, {self.last}"


def _wait(connection: Connection, left: set[int], timeout_ms: int, how: _HowItStands) -> None:
    """See `wait`."""
    deadline = time.monotonic() + timeout_ms / 1000
    while left:
        left = {waited for compaction_id in left if (waited := _waited_for(connection, compaction_id, how)) is not None}
        how.left = len(left)
        if left and time.monotonic() >= deadline:
            raise CompactionFailedError(
                f"compaction {min(left)} did not end within {timeout_ms} ms; it goes on. Is a worker running? "
                "See hive.compactor.worker.threads"
            )
        if left:
            time.sleep(_POLL_S)


def _waited_for(connection: Connection, compaction_id: int, how: _HowItStands) -> int | None:
    """What is to be waited for after a look at a compaction: itself, its next round, or None if it has merged all."""
    found = connection.call("show_compact", ttypes.ShowCompactRequest(id=compaction_id)).compacts
    if not found:  # ended so long ago that the history has forgotten it
        return None
    one = found[0]
    how.last = f"{compaction_id} is {progress(one) or one.state}"
    state, message = one.state, one.errorMessage or ""
    if state in _MERGED:
        is_committed = one.commitTime is not None or one.round is None  # other metastores may not say
        next_id: int | None = one.nextId if is_committed else compaction_id
        return next_id
    if state == "refused" and _NOTHING_TO_DO in message:
        return None
    if state not in _UNDER_WAY:
        raise CompactionFailedError(f"compaction {compaction_id} is {state}: {message}")
    return compaction_id
