"""Settings of locks."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.settings import duration


@dataclass(frozen=True)
class LockConfig:
    """How long a call for a lock may take."""

    poll_wait_ms: int = duration(
        "metastore.lock.poll.wait",
        "5000ms",
        "lock and check_lock answer WAITING only after waiting this long for the lock; well below the time that clients"
        " wait for an answer, 10 s for the least patient.",
    )
