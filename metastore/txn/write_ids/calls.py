"""The hot calls of write ids: what is asked, and what the rows that come back mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hive_acid.errors import MetastoreError
from hive_acid.format.snapshot import ValidTxnList
from hive_acid.ids import TxnId, WriteId
from metastore.store.hot.batcher import AGAIN, Again, HotCall
from metastore.store.hot.connection import Rows
from metastore.txn.calls import refusal
from metastore.txn.models import TableWriteIds
from metastore.txn.write_ids.aborted_ids import AbortedIds, TableName


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


class CurrentWriteIdsCall(HotCall[tuple[TableName, ...], list[TableWriteIds]]):
    """What tables show as of now (transactions.md §2.2). Aborted write ids are sent only when they have changed."""

    function = "current_write_ids"
    connections = 2

    def __init__(self, aborted_ids: AbortedIds) -> None:
        self._aborted_ids = aborted_ids

    def arguments(self, questions: Sequence[tuple[TableName, ...]]) -> list[object]:
        tables = _distinct(questions)
        known = [self._aborted_ids.version(table) for table in tables]
        return [[db for db, _ in tables], [table for _, table in tables], known]

    def answers(self, questions: Sequence[tuple[TableName, ...]], rows: Rows) -> Sequence[list[TableWriteIds] | Again]:
        found: dict[TableName, TableWriteIds | None] = {}
        for table, (_, last, open_ids, version, aborted, has_valid) in zip(_distinct(questions), rows, strict=True):
            kept = self._aborted_ids.at(table, version, aborted)
            found[table] = None if kept is None else kept.shown(table, last, open_ids, has_valid)
        return [_complete([found[table] for table in tables]) for tables in questions]


class PastWriteIds(NamedTuple):
    """A question for what tables show to a snapshot, or to the transaction that owns a write id of the first."""

    tables: tuple[TableName, ...]
    snapshot: ValidTxnList | None
    as_of: WriteId | None


class PastWriteIdsCall(HotCall[PastWriteIds, list[TableWriteIds] | None]):
    """What tables show to a snapshot that the caller names; each has lists of its own, so they go one by one."""

    function = "get_valid_write_ids"
    connections = 4
    max_batch = 1

    def __init__(self, aborted_ids: AbortedIds) -> None:
        self._aborted_ids = aborted_ids

    def arguments(self, questions: Sequence[PastWriteIds]) -> list[object]:
        tables, snapshot, as_of = questions[0]
        names: list[object] = [[db for db, _ in tables], [table for _, table in tables]]
        known = [self._aborted_ids.version(table) for table in tables]
        if snapshot is None:
            return [*names, None, None, None, as_of, known]
        last_is_aborted = snapshot.is_aborted(snapshot.high_water_mark)
        return [*names, snapshot.high_water_mark, list(snapshot.open_ids), last_is_aborted, None, known]

    def answers(self, questions: Sequence[PastWriteIds], rows: Rows) -> Sequence[list[TableWriteIds] | Again | None]:
        if rows[0][0] is None:
            return [None]
        found: list[TableWriteIds | None] = []
        for db, table, highest, not_ended, version, aborted, hidden, has_valid in rows:
            kept = self._aborted_ids.at((db, table), version, aborted)
            found.append(None if kept is None else kept.shown((db, table), highest, not_ended, has_valid, hidden))
        return [_complete(found)]


def _complete(found: Sequence[TableWriteIds | None]) -> list[TableWriteIds] | Again:
    """What was found, if it is all: else another batch has replaced some of it, and is to be asked again."""
    complete = [one for one in found if one is not None]
    return complete if len(complete) == len(found) else AGAIN


def _distinct(questions: Sequence[tuple[TableName, ...]]) -> list[TableName]:
    return list(dict.fromkeys(table for tables in questions for table in tables))
