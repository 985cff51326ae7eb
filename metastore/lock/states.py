"""Lock types, lock states and which locks go together (transactions.md §3.3)."""

from __future__ import annotations

import enum


class LockType(enum.Enum):
    """Types; the value is the letter that the database stores."""

    SHARED_READ = "r"
    SHARED_WRITE = "w"
    EXCL_WRITE = "x"
    EXCLUSIVE = "e"


class LockState(enum.Enum):
    """States of a request on record; the value is the letter that the database stores."""

    ACQUIRED = "a"
    WAITING = "w"


class LockAnswer(enum.Enum):
    """What became of a request."""

    ACQUIRED = "acquired"
    WAITING = "waiting"
    NOT_ACQUIRED = "not_acquired"


BLOCKS: dict[LockType, frozenset[LockType]] = {
    LockType.SHARED_READ: frozenset({LockType.EXCLUSIVE}),
    LockType.SHARED_WRITE: frozenset({LockType.EXCL_WRITE, LockType.EXCLUSIVE}),
    LockType.EXCL_WRITE: frozenset({LockType.SHARED_WRITE, LockType.EXCL_WRITE, LockType.EXCLUSIVE}),
    LockType.EXCLUSIVE: frozenset(LockType),
}
"""By requested type, the earlier ones that it has to wait for on the same thing."""

LOCK_ARROWS: tuple[tuple[LockState | None, str, LockState | None], ...] = (
    (None, "lock, nothing in the way", LockState.ACQUIRED),
    (None, "lock, something in the way", LockState.WAITING),
    (LockState.WAITING, "check_lock, still in the way", LockState.WAITING),
    (LockState.WAITING, "check_lock, out of the way", LockState.ACQUIRED),
    (LockState.WAITING, "unlock", None),
    (LockState.ACQUIRED, "unlock outside of a transaction", None),
    (LockState.WAITING, "its transaction ends, or no heartbeat outside of one", None),
    (LockState.ACQUIRED, "its transaction ends, or no heartbeat outside of one", None),
)
"""Everything that may happen to a request: state, event, next state; None is a request not on record."""
