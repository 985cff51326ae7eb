"""What a transaction may do, and where it stands."""

from __future__ import annotations

import enum


class TransactionKind(enum.Enum):
    """What the transaction may do; READ takes no write ids and commits without a trace."""

    WRITE = "DEFAULT"
    READ = "READ_ONLY"


class Isolation(enum.Enum):
    """What the statements of a transaction see, and what becomes of two that change the same rows."""

    SNAPSHOT = "snapshot"
    """All of them what had committed when it began; the first to commit wins, and the other one fails."""
    READ_COMMITTED = "read committed"
    """Each of them what had committed when it began, or had its lock; who changes rows waits for others that do."""


def isolation_of(name: str) -> Isolation:
    """The isolation that has this name, in any case of letters. Raises ValueError for another."""
    for isolation in Isolation:
        if isolation.value == name.lower():
            return isolation
    raise ValueError(f"there is no isolation {name!r}: it is 'snapshot' or 'read committed'")


class TransactionState(enum.Enum):
    """Where a transaction stands, as far as its client knows."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "of unknown outcome"
