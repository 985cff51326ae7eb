"""What the model is made of: transactions, writes, lock requests, snapshots of tables; and the two ways to say no."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from metastore.lock.states import BLOCKS, LockState, LockType
from metastore.txn.states import Operation, TxnState, TxnType


class Refusal(Exception):  # noqa: N818 - an answer, not a failure
    """The call must end with an error of one of these kinds whose message has these words in it."""

    def __init__(self, *kinds: str, words: Sequence[object] = ()) -> None:
        super().__init__(f"{' or '.join(kinds)} with {', '.join(map(str, words)) or 'any message'}")
        self.kinds = kinds
        self.words = [str(word) for word in words]


class Mismatch(Exception):  # noqa: N818 - what the walk is after
    """An answer that no rule allows."""


class Write(NamedTuple):
    """A claim of a transaction on a table, or on a partition of it."""

    table: str
    partition: str | None
    operation: Operation

    def meets(self, other: Write) -> bool:
        """Whether the two conflict (transactions.md §1.6; table and partition level meet in ours)."""
        same_place = self.partition == other.partition or None in (self.partition, other.partition)
        return self.table == other.table and same_place and self.operation.conflicts and other.operation.conflicts


class Change(NamedTuple):
    """A committed update or delete."""

    txn_id: int
    write: Write


@dataclass(frozen=True, slots=True)
class Txn:
    """A transaction; its rivals are kept as long as it is open."""

    type: TxnType = TxnType.DEFAULT
    state: TxnState = TxnState.OPEN
    writes: frozenset[Write] = frozenset()
    rivals: frozenset[Change] = frozenset()


class Component(NamedTuple):
    """One thing asked for: a database, a table in it, a partition of that."""

    type: LockType
    db: str
    table: str | None
    partition: str | None

    def __str__(self) -> str:
        return f"{self.type.value} {'/'.join(filter(None, self[1:]))}"

    def waits_for(self, held: Component) -> bool:
        """Whether an earlier lock of somebody else is in the way (transactions.md §3.3)."""
        if held.db != self.db or (held.table and self.table and held.table != self.table):
            return False
        if held.partition and self.partition and held.partition != self.partition:
            return False
        # DDL reads a database only to keep it from being dropped
        if self.type is LockType.SHARED_READ and not self.table and held.type is LockType.EXCLUSIVE and held.table:
            return False
        if self.type is LockType.EXCLUSIVE and self.table and held.type is LockType.SHARED_READ and not held.table:
            return False
        return held.type in BLOCKS[self.type]


@dataclass(frozen=True, slots=True)
class Request:
    """A lock request on record; `blockers` are those of its components when it was last looked at."""

    txn_id: int
    components: tuple[Component, ...]
    state: LockState = LockState.WAITING
    blockers: tuple[frozenset[tuple[int, int]], ...] = ()


@dataclass(frozen=True, slots=True)
class WriteIds:
    """What a snapshot sees of a table."""

    high_water_mark: int
    invalid: tuple[int, ...]
    aborted: frozenset[int]
    min_open: int | None

    def __str__(self) -> str:
        listed = ",".join(f"{n}a" if n in self.aborted else f"{n}" for n in self.invalid)
        return f"{self.high_water_mark} but {listed or 'none'}, min open {self.min_open}"

    def is_valid(self, write_id: int) -> bool:
        return write_id <= self.high_water_mark and write_id not in self.invalid
