"""What a transaction may do, and where it stands."""

from __future__ import annotations

import enum


class TransactionKind(enum.Enum):
    """What the transaction may do; READ takes no write ids and commits without a trace."""

    WRITE = "DEFAULT"
    READ = "READ_ONLY"


class TransactionState(enum.Enum):
    """Where a transaction stands, as far as its client knows."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "of unknown outcome"
