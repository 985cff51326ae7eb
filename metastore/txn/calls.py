"""The hot calls of transactions and write ids: what is asked, and what the rows that come back mean."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hive_acid.errors import MetaError, MetastoreError, NoSuchTxnError, TxnAbortedError
from hive_acid.ids import LockId, TxnId, WriteId
from metastore.observe.meters import Meters
from metastore.store.hot import AGAIN, Again, HotCall
from metastore.store.link import Rows
from metastore.txn.models import UNDECLARED, Intent, OpenTxns, TableWriteIds, TxnOwner
from metastore.txn.states import CONFLICT_REASON, TxnType

LocksFreed = Callable[[Collection[LockId]], None]
"""Told the lock requests that were freed."""

COMMITTED, ABORTED = "total_num_committed_transactions", "total_num_aborted_transactions"
"""Hive's names of what is counted (transactions.md §4.12)."""


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
        uses = [(place, *table) for place, question in enumerate(each, 1) for table in question.intent.tables]
        return [
            [question.how_many for question in questions],
            [int(question.txn_type) for question in each],
            [question.owner.user for question in each],
            [question.owner.host for question in each],
            [question.owner.agent_info for question in each],
            [question.intent.may_begin_again for question in each],
            [place for place, _, _ in uses],
            [db for _, db, _ in uses],
            [table for _, _, table in uses],
            self._max_open,
        ]

    def answers(self, questions: Sequence[Opening], rows: Rows) -> Sequence[list[TxnId] | MetastoreError]:
        first, opened = rows[0]
        end = first + opened
        answers: list[list[TxnId] | MetastoreError] = []
        for question in questions:
            after = first + question.how_many
            if after <= end:
                answers.append([TxnId(txn_id) for txn_id in range(first, after)])
            else:
                answers.append(
                    MetaError(
                        "Maximum allowed number of open transactions has been reached. See hive.max.open.txns, which"
                        f" is {self._max_open}: end some transactions, or raise the limit"
                    )
                )
            first = after
        return answers


class SnapshotCall(HotCall[None, OpenTxns]):
    """The present snapshot; one look serves all who ask at the same time (transactions.md §1.4)."""

    function = "get_open_txns"

    def __init__(self, excluded: frozenset[TxnType]) -> None:
        self._excluded = sorted(int(txn_type) for txn_type in excluded)

    @property
    def lane(self) -> Hashable:
        return self.function, tuple(self._excluded)

    def arguments(self, questions: Sequence[None]) -> list[object]:
        return [self._excluded]

    def answers(self, questions: Sequence[None], rows: Rows) -> Sequence[OpenTxns]:
        return [OpenTxns(*rows[0])] * len(questions)


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
        for name, ends in ((COMMITTED, ("committed",)), (ABORTED, ("conflict", "lost"))):
            if number := sum(row[1] in ends for row in outcomes.values()):
                self._meters.count(name, number)
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


class Allocation(NamedTuple):
    """A request for the write ids of a table; `txn_ids` are distinct and ascending."""

    db: str
    table: str
    txn_ids: tuple[TxnId, ...]


class AllocateCall(HotCall[Allocation, list[tuple[TxnId, WriteId]]]):
    """Giving out write ids (transactions.md §2.1)."""

    function = "allocate_write_ids"

    def arguments(self, questions: Sequence[Allocation]) -> list[object]:
        numbers: list[int] = []
        dbs: list[str] = []
        tables: list[str] = []
        txn_ids: list[TxnId] = []
        for place, question in enumerate(questions):
            for txn_id in question.txn_ids:
                numbers.append(place)
                dbs.append(question.db)
                tables.append(question.table)
                txn_ids.append(txn_id)
        return [numbers, dbs, tables, txn_ids]

    def answers(
        self, questions: Sequence[Allocation], rows: Rows
    ) -> Sequence[list[tuple[TxnId, WriteId]] | MetastoreError]:
        found: list[list[tuple[TxnId, WriteId]] | MetastoreError] = [[] for _ in questions]
        for place, outcome, txn_id, write_id in rows:
            given = found[place]
            if outcome != "ok":
                found[place] = refusal(outcome, txn_id)
            elif isinstance(given, list):
                given.append((txn_id, write_id))
        for given in found:
            if isinstance(given, list):
                given.sort()
        return found


class CurrentWriteIdsCall(HotCall[tuple[tuple[str, str], ...], list[TableWriteIds]]):
    """What tables ``(db, table)`` show as of now (transactions.md §2.2).

    Aborted write ids change seldom and may be many: they are kept here, and sent again only when they have changed.
    """

    function = "current_write_ids"
    connections = 2

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], _Kept] = {}

    def arguments(self, questions: Sequence[tuple[tuple[str, str], ...]]) -> list[object]:
        tables = _distinct(questions)
        known = [kept.version if (kept := self._kept.get(table)) else None for table in tables]
        return [[db for db, _ in tables], [table for _, table in tables], known]

    def answers(
        self, questions: Sequence[tuple[tuple[str, str], ...]], rows: Rows
    ) -> Sequence[list[TableWriteIds] | Again]:
        found: dict[tuple[str, str], TableWriteIds | None] = {}
        for table, (last, open_ids, version, aborted, has_valid) in zip(_distinct(questions), rows, strict=True):
            if aborted is None:
                kept = self._kept.get(table)
                if kept is None or kept.version != version:  # another batch has replaced it meanwhile
                    found[table] = None
                    continue
            else:
                kept = self._keep(table, _Kept(version, aborted))
            found[table] = kept.shown(table, last, open_ids, has_valid)
        answers: list[list[TableWriteIds] | Again] = []
        for tables in questions:
            shown = [found[table] for table in tables]
            complete = [one for one in shown if one is not None]
            answers.append(complete if len(complete) == len(shown) else AGAIN)
        return answers

    def _keep(self, table: tuple[str, str], kept: _Kept) -> _Kept:
        self._kept.pop(table, None)
        self._kept[table] = kept
        total = sum(len(one.aborted) for one in self._kept.values()) if len(kept.aborted) > 1000 else 0
        while len(self._kept) > MAX_KEPT_TABLES or (total > MAX_KEPT_IDS and len(self._kept) > 1):
            oldest = next(iter(self._kept))
            total -= len(self._kept.pop(oldest).aborted)
        return kept


MAX_KEPT_TABLES = 10_000
MAX_KEPT_IDS = 1_000_000


@dataclass(slots=True)
class _Kept:
    """The aborted write ids of a table at a version of theirs, and what was last made of them."""

    version: int
    aborted: list[WriteId]
    last: tuple[object, ...] | None = None
    last_shown: TableWriteIds | None = None

    def shown(self, table: tuple[str, str], last: WriteId, open_ids: list[WriteId], has_valid: bool) -> TableWriteIds:
        state = (last, tuple(open_ids), has_valid)
        if self.last_shown is None or state != self.last:
            self.last, self.last_shown = state, self._made(table, last, open_ids, has_valid)
        return self.last_shown

    def _made(self, table: tuple[str, str], last: WriteId, open_ids: list[WriteId], has_valid: bool) -> TableWriteIds:
        aborted = self.aborted
        invalid = sorted(open_ids + aborted) if open_ids else aborted
        min_open = open_ids[0] if open_ids else None
        if invalid and not has_valid:  # without any valid write everything from the lowest invalid one on is left out
            last = invalid[0]
            aborted = [last] if aborted and aborted[0] == last else []
            invalid = [last]
        return TableWriteIds(*table, last, invalid, aborted, min_open)


def _distinct(questions: Sequence[tuple[tuple[str, str], ...]]) -> list[tuple[str, str]]:
    return list(dict.fromkeys(table for tables in questions for table in tables))


def refusal(outcome: object, txn_id: object) -> MetastoreError:
    """The error that an outcome of a stored function stands for."""
    if outcome == "txn_aborted":
        return TxnAbortedError(f"Transaction txnid:{txn_id} already aborted")
    if outcome == "txn_committed":
        return NoSuchTxnError(f"Transaction txnid:{txn_id} is already committed.")
    if outcome == "txn_read_only":
        return MetaError(f"transaction {txn_id} is read-only: it may not write")
    return NoSuchTxnError(f"No such transaction txnid:{txn_id}")
