"""Hears which locks other servers on the same database have freed.

Whoever frees a lock that somebody waits for sends a notification (``tell_freed.sql``). It is heard from the first call
that waits on this server on; a server where nobody ever waits needs no connection for it. What is told while there is
none is found by looking again.
"""

from __future__ import annotations

from hive_acid.ids import LockId
from metastore.lock.waiters import LockWaiters
from metastore.store.database import Database
from metastore.store.listener import Listener

CHANNEL = "hive_acid_locks"


def lock_listener(db: Database, waiters: LockWaiters) -> Listener:
    """Wakes who waits for what is freed."""

    def told(payload: str) -> None:
        if payload:
            waiters.wake([LockId(int(lock_id)) for lock_id in payload.split(",")])
        else:
            waiters.wake_all()

    def listens(is_told: bool) -> None:
        if is_told:
            waiters.wake_all()

    return Listener(db, CHANNEL, told, listens)
