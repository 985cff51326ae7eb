"""The state machine of a transaction as a table, its types and its operations (transactions.md §1.1)."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class TxnState(enum.Enum):
    """States; the value is the letter that the database stores."""

    OPEN = "o"
    ABORTED = "a"
    COMMITTED = "c"


class TxnType(enum.IntEnum):
    """What a transaction is for; the numbers are those of the Thrift interface."""

    DEFAULT = 0
    REPL_CREATED = 1
    READ_ONLY = 2
    COMPACTION = 3
    MATER_VIEW_REBUILD = 4
    SOFT_DELETE = 5
    REBALANCE_COMPACTION = 6


class Operation(enum.Enum):
    """What a transaction does to a table or partition; the value is the letter that the database stores."""

    INSERT = "i"
    UPDATE = "u"
    DELETE = "d"
    COMPACT = "c"

    @property
    def conflicts(self) -> bool:
        """Whether two of this sort on the same data conflict (transactions.md §1.6)."""
        return self in (Operation.UPDATE, Operation.DELETE)


class Verb(enum.Enum):
    """What can happen to a transaction."""

    OPEN = "open"
    HEARTBEAT = "heartbeat"
    WRITE = "write"
    COMMIT = "commit"
    COMMIT_IN_CONFLICT = "commit in conflict"
    COMMIT_LOST = "commit after a crash of the database"
    ABORT = "abort"
    TIME_OUT = "time out"
    PURGE = "purge"


@dataclass(frozen=True, slots=True)
class Arrow:
    """One arrow of the machine; None stands for a transaction that is not there."""

    source: TxnState | None
    verb: Verb
    target: TxnState | None


ARROWS: tuple[Arrow, ...] = (
    Arrow(None, Verb.OPEN, TxnState.OPEN),
    Arrow(TxnState.OPEN, Verb.HEARTBEAT, TxnState.OPEN),
    Arrow(TxnState.OPEN, Verb.WRITE, TxnState.OPEN),
    Arrow(TxnState.OPEN, Verb.COMMIT, TxnState.COMMITTED),
    Arrow(TxnState.OPEN, Verb.COMMIT_IN_CONFLICT, TxnState.ABORTED),
    Arrow(TxnState.OPEN, Verb.COMMIT_LOST, TxnState.ABORTED),
    Arrow(TxnState.OPEN, Verb.ABORT, TxnState.ABORTED),
    Arrow(TxnState.OPEN, Verb.TIME_OUT, TxnState.ABORTED),
    Arrow(TxnState.COMMITTED, Verb.COMMIT, TxnState.COMMITTED),
    Arrow(TxnState.ABORTED, Verb.ABORT, TxnState.ABORTED),
    Arrow(TxnState.COMMITTED, Verb.PURGE, None),
    Arrow(TxnState.ABORTED, Verb.PURGE, None),
)
"""Everything that may happen; a verb without an arrow from the present state is refused and changes nothing."""


def next_state(state: TxnState, verb: Verb) -> TxnState | None:
    """Where `verb` leads from `state`.

    Raises KeyError if it is refused there.
    """
    for arrow in ARROWS:
        if arrow.source is state and arrow.verb is verb:
            return arrow.target
    raise KeyError(f"{verb.value} of a transaction that is {state.name.lower()}")


ABORT_REASONS: dict[int, str] = {
    50001: "aborted by a query's ABORT TRANSACTIONS",
    50002: "a concurrent transaction committed",
    50003: "write conflicts",
    50004: "heartbeat time-out",
    50005: "rolled back",
    50006: "compaction aborted",
    50007: "MSCK aborted",
    50008: "migration of managed tables aborted",
    51000: "replication: source transaction aborted",
    51001: "replication: dump failed",
    51002: "replication: load failed",
    51003: "replication: rolled back",
    51004: "replication: time-out",
    51005: "replication: other",
}
"""Abort reason by error code (transactions.md §1.7); any other code says nothing."""

NO_REASON = "none"
CONFLICT_REASON = ABORT_REASONS[50003]
TIMEOUT_REASON = ABORT_REASONS[50004]
