"""Blocking work that is begun anew when its connection to the database was lost, if nothing was done by then.

What a thread has done since `repeated` began it is known from the commits that were sent and from calls that may not be
repeated. Without any, nothing was done. Of a commit in which the connection was lost the database is asked
(`outcomes`); if it cannot say, the client is told that the outcome is not known.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from hive_acid.errors import MetaError
from metastore.store.connections.failures import cause_of, is_loss

T = TypeVar("T")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.02, 0.5


class _Done(threading.local):
    """What this thread has done, and until when it waits once it has lost a connection (monotonic clock)."""

    has_committed = False
    deadline = float("inf")


_DONE = _Done()


def commit_is_sent() -> bool:
    """This thread commits, or has done what must not be done again; whether it has before."""
    before, _DONE.has_committed = _DONE.has_committed, True
    return before


def commit_is_undone(had_committed: bool) -> None:
    """The commit that this thread has sent came to nothing; `had_committed` is what `commit_is_sent` said."""
    _DONE.has_committed = had_committed


def deadline(patience_s: float) -> float:
    """Until when this thread waits for the database: not longer than its undertaking as a whole may."""
    return min(_DONE.deadline, time.monotonic() + patience_s)


def repeated(patience_s: float, work: Callable[..., T], *args: object) -> T:
    """The outcome of `work`, begun anew for as long as the patience lasts when a connection was lost before any commit.

    Raises MetaError, which says whether nothing was done or whether that is not known.
    """
    _DONE.deadline = float("inf")
    pause_s = _FIRST_PAUSE_S
    try:
        while True:
            _DONE.has_committed = False
            try:
                return work(*args)
            except Exception as error:
                if not is_loss(error):
                    raise
                _DONE.deadline = deadline(patience_s)
                if _DONE.has_committed:
                    words = "the database connection was lost, the outcome is unknown"
                    raise MetaError(f"{words}: {cause_of(error)}") from error
                if time.monotonic() > _DONE.deadline:
                    raise MetaError(f"the database does not answer, nothing was done: {cause_of(error)}") from error
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    finally:
        _DONE.deadline = float("inf")
