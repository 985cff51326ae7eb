"""What the transaction service takes and gives."""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class OpenTxns:
    """A snapshot: all transactions up to the high-water mark are committed but these, ascending.

    `min_open` is the smallest open one of any type, excluded ones too; None if there is none.
    """

    high_water_mark: TxnId
    open_ids: list[TxnId]
    aborted_ids: list[TxnId]
    min_open: TxnId | None


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
