"""The state machine of a compaction as a table, and its types (transactions.md §4.1)."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class CompactionState(enum.Enum):
    """States; the value is the letter that the database stores and the wire asks for."""

    INITIATED = "i"
    WORKING = "w"
    READY_FOR_CLEANING = "r"
    SUCCEEDED = "s"
    FAILED = "f"
    DID_NOT_INITIATE = "a"
    REFUSED = "c"
    ABORTED = "x"

    @property
    def words(self) -> str:
        """The state as clients show it."""
        return self.name.lower().replace("_", " ")

    @property
    def is_history(self) -> bool:
        """Whether nothing can happen to the compaction any more."""
        return not any(arrow.source is self is not arrow.target for arrow in ARROWS)


class CompactionType(enum.Enum):
    """Types; the value is the letter that the database stores."""

    MINOR = "i"
    MAJOR = "a"
    REBALANCE = "r"
    ABORT_TXN_CLEANUP = "c"


class Verb(enum.Enum):
    """What can happen to a compaction."""

    COMPACT = "compact"
    DO_NOT_INITIATE = "do not initiate"
    SUBMIT_FOR_CLEANUP = "submit for cleanup"
    FIND_NEXT = "find next"
    MARK_COMPACTED = "mark compacted"
    MARK_FAILED = "mark failed"
    MARK_REFUSED = "mark refused"
    ABORT = "abort"
    RELEASE = "release"
    RETRY = "try again later"
    RETRY_IN_VAIN = "try again for the last time"
    REQUEUE = "requeue"
    GIVE_UP = "give up a worker that disappears again and again"
    MARK_CLEANED = "mark cleaned"
    FAIL_CLEANING = "fail cleaning"
    SUBMIT_IN_VAIN = "the transaction that submitted it aborts"
    GIVE_UP_CLEANING = "fail cleaning for the last time"


@dataclass(frozen=True, slots=True)
class Arrow:
    """One arrow of the machine; None stands for a compaction that is not there."""

    source: CompactionState | None
    verb: Verb
    target: CompactionState | None


_S = CompactionState

ARROWS: tuple[Arrow, ...] = (
    Arrow(None, Verb.COMPACT, _S.INITIATED),
    Arrow(None, Verb.DO_NOT_INITIATE, _S.DID_NOT_INITIATE),
    Arrow(None, Verb.SUBMIT_FOR_CLEANUP, _S.READY_FOR_CLEANING),
    Arrow(_S.INITIATED, Verb.FIND_NEXT, _S.WORKING),
    Arrow(_S.INITIATED, Verb.ABORT, _S.ABORTED),
    Arrow(_S.INITIATED, Verb.MARK_FAILED, _S.FAILED),
    Arrow(_S.INITIATED, Verb.MARK_REFUSED, _S.REFUSED),
    Arrow(_S.WORKING, Verb.MARK_COMPACTED, _S.READY_FOR_CLEANING),
    Arrow(_S.WORKING, Verb.MARK_FAILED, _S.FAILED),
    Arrow(_S.WORKING, Verb.MARK_REFUSED, _S.REFUSED),
    Arrow(_S.WORKING, Verb.RELEASE, _S.INITIATED),
    Arrow(_S.WORKING, Verb.RETRY, _S.INITIATED),
    Arrow(_S.WORKING, Verb.RETRY_IN_VAIN, _S.FAILED),
    Arrow(_S.WORKING, Verb.REQUEUE, _S.INITIATED),
    Arrow(_S.WORKING, Verb.GIVE_UP, _S.FAILED),
    Arrow(_S.READY_FOR_CLEANING, Verb.MARK_COMPACTED, _S.READY_FOR_CLEANING),
    Arrow(_S.READY_FOR_CLEANING, Verb.MARK_FAILED, _S.FAILED),
    Arrow(_S.READY_FOR_CLEANING, Verb.MARK_REFUSED, _S.REFUSED),
    Arrow(_S.READY_FOR_CLEANING, Verb.REQUEUE, _S.INITIATED),
    Arrow(_S.READY_FOR_CLEANING, Verb.GIVE_UP, _S.FAILED),
    Arrow(_S.READY_FOR_CLEANING, Verb.SUBMIT_IN_VAIN, _S.REFUSED),
    Arrow(_S.READY_FOR_CLEANING, Verb.MARK_CLEANED, _S.SUCCEEDED),
    Arrow(_S.SUCCEEDED, Verb.MARK_CLEANED, _S.SUCCEEDED),
    Arrow(_S.READY_FOR_CLEANING, Verb.FAIL_CLEANING, _S.READY_FOR_CLEANING),
    Arrow(_S.READY_FOR_CLEANING, Verb.GIVE_UP_CLEANING, _S.FAILED),
)
"""Everything that may happen before the history is purged; other verbs are refused and change nothing.

READY_FOR_CLEANING can fail, be refused or go back to INITIATED only while its transaction has not committed.
"""
