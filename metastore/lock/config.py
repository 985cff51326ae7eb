"""Settings of locks."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.settings import boolean, duration


@dataclass(frozen=True)
class LockConfig:
    """How long a call for a lock may take."""

    poll_wait_ms: int = duration(
        "metastore.lock.poll.wait",
        "5000ms",
        "lock and check_lock answer WAITING only after waiting this long for the lock; well below the time that clients"
        " wait for an answer, 10 s for the least patient.",
    )
    refuses_trino: bool = boolean(
        "metastore.lock.refuse.trino",
        "true",
        "Whether Trino may not change tables with rows in buckets above 0, where it would lose its deletes.",
    )
