"""As what transactions are opened, and the calls that open them.

hive-acid's metastore begins a statement in one call: the transaction, its first locks, its snapshot and its write ids
(transactions.md §3.11). Another one is asked by Hive's calls, one after the other.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from hive_acid.errors import AccessDeniedError, HiveAcidError, NoSuchObjectError, UnknownMethodError
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.ids import TxnId, WriteId
from hive_acid.protocol import Question
from hive_acid.transactions.heartbeats import Heartbeats
from hive_acid.transactions.pressure import Pressure
from hive_acid.transactions.states import Isolation, TransactionKind
from hive_acid.wire import ttypes


class KnownAborted(NamedTuple):
    """The aborted transactions of a snapshot, and the number by which the metastore knows them."""

    version: int
    ids: tuple[int, ...]


class Owner(Protocol):
    """What a transaction needs of the connection that has begun it."""

    user: str
    heartbeats: Heartbeats
    pressure: Pressure
    begins_at_once: bool
    """Whether the metastore may be one that has hive_acid_begin."""
    known_aborted: KnownAborted | None
    """What hive_acid_begin has answered last of aborted transactions, so that it need not again."""

    def call(self, method: str, *args: Any) -> Any: ...

    def ask(self, *questions: Question) -> list[Any]: ...


@dataclass(frozen=True)
class Opening:
    """As what a transaction is opened."""

    kind: TransactionKind
    tables: frozenset[str]
    """The tables (``db.table``) that it uses, and no others; empty if it has not said."""
    may_begin_again: bool
    """Whether who runs it runs all of it anew on a SnapshotOutdatedError."""
    lock_timeout_ms: int
    agent_info: str
    isolation: Isolation = Isolation.SNAPSHOT
    only_adds: bool = False
    """Whether it neither reads rows nor changes any: it gets no snapshot."""

    def request(self, user: str, count: int = 1) -> Any:
        """The struct that asks for so many."""
        return ttypes.OpenTxnRequest(
            num_txns=count,
            user=user,
            hostname=socket.gethostname(),
            agentInfo=self.agent_info,
            txn_type=getattr(ttypes.TxnType, self.kind.value),
            tables=sorted(self.tables),
            mayBeginAgain=self.may_begin_again or self.only_adds,
        )


class Opened(NamedTuple):
    """A transaction that has been opened."""

    id: TxnId
    snapshot: ValidTxnList | None
    """None if it was opened to add rows only."""
    has_named: bool = True
    """Whether the metastore has heard which tables it uses."""


class Begun(NamedTuple):
    """What the one call has brought. Write ids are by the names of tables, beside the ids of those who had them."""

    opened: Opened
    lock: Any
    """The answer to its locks, which may wait; None if it asked for none."""
    behind: Any
    """The answer to what was asked behind it."""
    is_outdated: bool
    seen: dict[str, tuple[int | None, ValidWriteIdList]]
    written: dict[str, tuple[int | None, WriteId]]


def begin(
    owner: Owner,
    opening: Opening,
    components: Sequence[Any] = (),
    behind: Question | None = None,
    *,
    seen: Sequence[str] = (),
    written: Sequence[str] = (),
) -> Begun | None:
    """Open a transaction and ask for its locks; None where the metastore has no call for it, and nothing was done.

    `seen` are the tables (``db.table``) whose write ids it wants to know, `written` those of which it wants one.
    """
    if not owner.begins_at_once:
        return None
    known = owner.known_aborted
    request = ttypes.HiveAcidBeginRequest(
        open=opening.request(owner.user),
        component=list(components),
        seen=list(seen),
        written=list(written),
        knownAborted=None if known is None else known.version,
    )
    others = () if behind is None else (behind,)
    answer, *answers = owner.ask(Question("hive_acid_begin", (request,)), *others)
    if isinstance(answer, UnknownMethodError):
        owner.begins_at_once = False
        return None
    if isinstance(answer, AccessDeniedError):
        raise denied(answer, answers)
    if isinstance(answer, HiveAcidError):
        raise answer
    txn_id = TxnId(answer.txnid)
    try:
        snapshot, owner.known_aborted = _snapshot(answer, known)
        return Begun(
            Opened(txn_id, None if opening.only_adds else snapshot),
            answer.lock,
            answers[0] if answers else None,
            bool(answer.isOutdated),
            {one.writeIds.fullTableName: (one.tableId, valid_write_ids(one.writeIds)) for one in answer.seen or ()},
            {one.fullTableName: (one.tableId, WriteId(one.writeId)) for one in answer.written or ()},
        )
    except BaseException:  # an interrupt: it has locks
        abort(owner, [txn_id])
        raise


def open_many(owner: Owner, opening: Opening, count: int) -> list[Opened]:
    """Open `count` transactions by Hive's calls; each sees what had committed when all of them were open."""
    questions = [Question("open_txns", (opening.request(owner.user, count),))]
    if not opening.only_adds:
        questions.append(Question("get_open_txns", ()))
    opened, *answers = owner.ask(*questions)
    if isinstance(opened, HiveAcidError):
        raise opened
    txn_ids = [TxnId(txn_id) for txn_id in opened.txn_ids]
    try:
        answer = answers[0] if answers else None
        if isinstance(answer, HiveAcidError):
            raise answer
        has_named = bool(opened.tablesNamed) or not opening.tables
        return [Opened(one, None if answer is None else _hives_snapshot(answer, one), has_named) for one in txn_ids]
    except BaseException:
        abort(owner, txn_ids)
        raise


def open_one(owner: Owner, opening: Opening) -> Opened:
    """Open a transaction that asks for nothing else yet."""
    begun = begin(owner, opening)
    return open_many(owner, opening, 1)[0] if begun is None else begun.opened


def abort(owner: Owner, txn_ids: Sequence[TxnId]) -> None:
    """End transactions that nobody has got."""
    with suppress(HiveAcidError):
        owner.call("abort_txns", ttypes.AbortTxnsRequest(txn_ids=list(txn_ids)))


def denied(refusal: AccessDeniedError, behind: Sequence[Any]) -> HiveAcidError:
    """What to say of a refused lock: nobody has a right on what is not there, which is told to who may know."""
    return next((one for one in behind if isinstance(one, NoSuchObjectError)), refusal)


def valid_write_ids(found: Any) -> ValidWriteIdList:
    """What a metastore says of a table, as the list that it stands for."""
    return ValidWriteIdList.from_invalid(
        found.fullTableName,
        found.writeIdHighWaterMark,
        found.invalidWriteIds or [],
        found.abortedBits or b"",
        found.minOpenWriteId,
    )


def _snapshot(answer: Any, known: KnownAborted | None) -> tuple[ValidTxnList, KnownAborted]:
    """The snapshot of an answer, and all aborted transactions of it, which may be those known."""
    found, own = answer.snapshot, answer.txnid
    limit = min(found.highWaterMark, own)
    told = ValidTxnList.from_open_txns(found.highWaterMark, found.openTxns, found.abortedBits)
    aborted = told.aborted_ids
    if found.isBesideKnown and known is not None:
        aborted = tuple(sorted((*known.ids, *aborted))) if aborted else known.ids
    open_ids = tuple(txn_id for txn_id in told.open_ids if txn_id < own)
    return ValidTxnList(limit, open_ids, aborted), KnownAborted(answer.abortedVersion, aborted)


def _hives_snapshot(answer: Any, own: TxnId) -> ValidTxnList:
    return ValidTxnList.from_open_txns(answer.txn_high_water_mark, answer.open_txns, answer.abortedBits, own_txn_id=own)
