"""The hot calls of transactions: what is asked, and what the rows that come back mean."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import NamedTuple

from hive_acid.errors import MetaError, MetastoreError, NoSuchTxnError, TxnAbortedError
from hive_acid.ids import LockId, TxnId
from metastore.observe.meters import Meters
from metastore.store.hot.batcher import AGAIN, Again, HotCall
from metastore.store.hot.connection import Rows
from metastore.txn.models import UNDECLARED, Aborted, Intent, OpenTxns, TxnOwner
from metastore.txn.states import CONFLICT_REASON, TxnType

LocksFreed = Callable[[Collection[LockId]], None]
"""Told the lock requests that were freed."""


class Opening(NamedTuple):
    """A request for `how_many` transactions."""

    how_many: int
    owner: TxnOwner
    txn_type: TxnType
    intent: Intent = UNDECLARED


class OpenCall(HotCall[Opening, list[TxnId]]):
    """Opening (transactions.md §1.2)."""

    function = "open_txns"

    def __init__(self, max_open: int) -> None:
        self._max_open = max_open

    def arguments(self, questions: Sequence[Opening]) -> list[object]:
        each = [question for question in questions for _ in range(question.how_many)]
        return [[question.how_many for question in questions], *opening_arrays(each), self._max_open]

    def answers(self, questions: Sequence[Opening], rows: Rows) -> Sequence[list[TxnId] | MetastoreError]:
        first, opened = rows[0]
        end = first + opened
        answers: list[list[TxnId] | MetastoreError] = []
        for question in questions:
            after = first + question.how_many
            if after <= end:
                answers.append([TxnId(txn_id) for txn_id in range(first, after)])
            else:
                answers.append(no_room(self._max_open))
            first = after
        return answers


def opening_arrays(each: Sequence[Opening]) -> list[object]:
    """What a function is told of transactions that it opens, one for each opening."""
    uses = [(place, *table) for place, question in enumerate(each, 1) for table in question.intent.tables]
    return [
        [int(question.txn_type) for question in each],
        [question.owner.user for question in each],
        [question.owner.host for question in each],
        [question.owner.agent_info for question in each],
        [question.intent.may_begin_again for question in each],
        [place for place, _, _ in uses],
        [db for _, db, _ in uses],
        [table for _, _, table in uses],
    ]


def no_room(max_open: int) -> MetaError:
    """Why a transaction was not opened."""
    return MetaError(
        "Maximum allowed number of open transactions has been reached. See hive.max.open.txns, which"
        f" is {max_open}: end some transactions, or raise the limit"
    )


class KnownAborts:
    """The aborted transactions of the last snapshot that one kind of call has read, one call at a time.

    `version` is what `get_open_txns` is told of them, None for nothing.
    """

    def __init__(self) -> None:
        self.version: str | None = None
        self._aborted = Aborted.only([])

    def at(self, version: str, named: Sequence[TxnId]) -> Aborted:
        """All of them at the version that `get_open_txns` has answered with; `named` are those that it names.

        The same object as before if they are the same.
        """
        if self.version is None or _era(self.version) != _era(version):
            self._aborted = Aborted.only(named)
        else:
            self._aborted = self._aborted.and_those(named)
        self.version = version
        return self._aborted


class SnapshotCall(HotCall[None, OpenTxns]):
    """The present snapshot; one look serves all who ask at the same time (transactions.md §1.4)."""

    function = "get_open_txns"

    def __init__(self, excluded: frozenset[TxnType]) -> None:
        self._excluded = sorted(int(txn_type) for txn_type in excluded)
        self._aborted = KnownAborts()

    @property
    def queue(self) -> Hashable:
        return self.function, tuple(self._excluded)

    def arguments(self, questions: Sequence[None]) -> list[object]:
        return [self._excluded, self._aborted.version]

    def answers(self, questions: Sequence[None], rows: Rows) -> Sequence[OpenTxns]:
        high_water_mark, open_ids, named, min_open, version = rows[0]
        return [OpenTxns(high_water_mark, open_ids, self._aborted.at(version, named), min_open)] * len(questions)


class StateCall(HotCall[TxnId, str | None]):
    """The letter of a transaction's state, None for one that is not there."""

    function = "txn_states"
    connections = 2

    def arguments(self, questions: Sequence[TxnId]) -> list[object]:
        return [list(dict.fromkeys(questions))]

    def answers(self, questions: Sequence[TxnId], rows: Rows) -> Sequence[str | None]:
        states: dict[int, str | None] = dict(rows)
        return [states[txn_id] for txn_id in questions]


class Commit(NamedTuple):
    """A commit; `skips_check` trusts the client's own locks against conflicts."""

    txn_id: TxnId
    skips_check: bool


class CommitCall(HotCall[Commit, None]):
    """Committing (transactions.md §1.5, §1.6)."""

    function = "commit_txns"
    connections = 2

    def __init__(self, locks_freed: LocksFreed, meters: Meters) -> None:
        self._locks_freed = locks_freed
        self._meters = meters

    def arguments(self, questions: Sequence[Commit]) -> list[object]:
        skips: dict[TxnId, bool] = {}
        for question in questions:
            skips[question.txn_id] = skips.get(question.txn_id, True) and question.skips_check
        return [list(skips), list(skips.values()), CONFLICT_REASON]

    def answers(self, questions: Sequence[Commit], rows: Rows) -> Sequence[MetastoreError | Again | None]:
        outcomes = {row[0]: row for row in rows}
        if None in outcomes:
            self._locks_freed(outcomes[None][2])
        for counter, ends in ((self._meters.committed, ("committed",)), (self._meters.aborted, ("conflict", "lost"))):
            if number := sum(row[1] in ends for row in outcomes.values()):
                counter.inc(number)
        return [_commit_answer(outcomes[question.txn_id]) for question in questions]


def _commit_answer(row: tuple[object, ...]) -> MetastoreError | Again | None:
    txn_id, outcome, _, db, table, partition, operation, commit_id, other, other_commit_id, other_operation = row
    if outcome in ("committed", "committed_before"):
        return None
    if outcome == "again":
        return AGAIN
    if outcome == "conflict":
        target = "/".join(str(part) for part in (db, table, partition) if part)
        return TxnAbortedError(
            f"Aborting [txnid:{txn_id},{commit_id}] due to a write conflict on {target}"
            f" committed by [txnid:{other},{other_commit_id}] {operation}/{other_operation}"
        )
    if outcome == "lost":
        return TxnAbortedError(
            f"Transaction txnid:{txn_id} aborted: the metastore's database crashed right after it was opened, and may"
            " have forgotten locks or write ids of it: begin it anew"
        )
    return refusal("txn_aborted" if outcome == "aborted_before" else "txn_unknown", txn_id)


def refusal(outcome: object, txn_id: object) -> MetastoreError:
    """The error that an outcome of a stored function stands for."""
    if outcome == "txn_aborted":
        return TxnAbortedError(f"Transaction txnid:{txn_id} already aborted")
    if outcome == "txn_committed":
        return NoSuchTxnError(f"Transaction txnid:{txn_id} is already committed.")
    if outcome == "txn_read_only":
        return MetaError(f"transaction {txn_id} is read-only: it may not write")
    return NoSuchTxnError(f"No such transaction txnid:{txn_id}")


def _era(version: str) -> str:
    return version.partition(" ")[0]
