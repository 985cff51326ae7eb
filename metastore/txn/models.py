"""What the transaction service takes and gives."""

from __future__ import annotations

import secrets
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hive_acid.ids import TxnId, WriteId
from metastore.txn.states import TxnState, TxnType


class TxnOwner(NamedTuple):
    """Who opens a transaction or asks for a lock."""

    user: str
    host: str
    agent_info: str = "Unknown"


class Intent(NamedTuple):
    """What is said of transactions when they are opened.

    `tables` ``(db, table)``, distinct and as stored, are all that they use, none if they do not say; these alone are
    then kept from being cleaned for them. `may_begin_again`: whether rows that they are going to change may get other
    ids before they have locked them, since their client begins anew then; None if it has not said.
    """

    tables: tuple[tuple[str, str], ...] = ()
    may_begin_again: bool | None = None


UNDECLARED = Intent()


@dataclass(frozen=True, slots=True, eq=False)
class Aborted:
    """The aborted transactions of a snapshot: `ids`, ascending, which nobody changes.

    `number` stands for them, and for no others on any server: who names it later is told only those that are new.
    """

    ids: list[TxnId]
    number: int
    _learned: list[TxnId]
    """In the order in which they became known; what comes later is put behind."""

    @classmethod
    def only(cls, ids: Sequence[TxnId]) -> Aborted:
        """These, of which nobody has heard before."""
        return cls(list(ids), secrets.randbits(62) + len(ids), list(ids))

    def and_those(self, ids: Sequence[TxnId]) -> Aborted:
        """These and others, of which some may be these; only of the newest that was made so."""
        new = [txn_id for txn_id in ids if not _is_among(self.ids, txn_id)]
        if not new:
            return self
        self._learned.extend(new)
        return Aborted(sorted(self.ids + new), self.number + len(new), self._learned)

    def since(self, number: int | None) -> list[TxnId] | None:
        """Those that have come since the ones of a number, ascending; None if nothing is known of that."""
        first = len(self.ids) - (self.number - number) if number is not None else -1
        return sorted(self._learned[first : len(self.ids)]) if 0 <= first <= len(self.ids) else None


@dataclass(frozen=True, slots=True)
class OpenTxns:
    """A snapshot: all transactions up to the high-water mark are committed but these, ascending.

    `min_open` is the smallest open one of any type, excluded ones too; None if there is none.
    """

    high_water_mark: TxnId
    open_ids: list[TxnId]
    aborted: Aborted
    min_open: TxnId | None

    @property
    def aborted_ids(self) -> list[TxnId]:
        """The aborted ones; nobody changes the list."""
        return self.aborted.ids


class OtherChange(NamedTuple):
    """What a transaction has changed that another one has changed, too; a whole table without a partition.

    `write_id` is None where it is on record no more.
    """

    db: str
    table: str
    partition: str | None
    txn_id: TxnId
    write_id: WriteId | None


@dataclass(frozen=True, slots=True)
class TxnInfo:
    """An open or aborted transaction; times are epoch milliseconds."""

    txn_id: TxnId
    state: TxnState
    type: TxnType
    owner: TxnOwner
    heartbeat_count: int
    abort_reason: str | None
    started_ms: int
    heartbeat_ms: int


@dataclass(frozen=True, slots=True)
class HeartbeatRange:
    """What a heartbeat of a range did not find open."""

    aborted: set[TxnId]
    nosuch: set[TxnId]


@dataclass(frozen=True, slots=True)
class AbortedTxns:
    """What became of a list of transactions to abort."""

    aborted: list[TxnId] = field(default_factory=list)
    aborted_before: list[TxnId] = field(default_factory=list)
    committed: list[TxnId] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TableWriteIds:
    """The write ids of a table that a snapshot sees: all up to the high-water mark but the invalid ones, ascending.

    `min_open` is the smallest open one and may lie above the high-water mark (transactions.md §2.2).
    """

    db: str
    table: str
    high_water_mark: WriteId
    invalid: list[WriteId]
    aborted: list[WriteId]
    min_open: WriteId | None


def _is_among(ids: Sequence[TxnId], wanted: TxnId) -> bool:
    at = bisect_left(ids, wanted)
    return at < len(ids) and ids[at] == wanted
