"""How a statement begins in one round trip: its transaction, its locks, its snapshot and its write ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hive_acid.errors import MetaError, MetastoreError
from hive_acid.ids import LockId, TxnId, WriteId
from metastore.lock.calls import component_arrays
from metastore.lock.models import LockComponent, LockRequest, LockResult
from metastore.lock.service import stored_request
from metastore.lock.states import LockAnswer
from metastore.store.database import Database
from metastore.store.hot.batcher import HotCall
from metastore.store.hot.connection import Rows
from metastore.txn.calls import KnownAborts, Opening, no_room, opening_arrays
from metastore.txn.models import OpenTxns, TableWriteIds
from metastore.txn.service import TxnService
from metastore.txn.states import TxnType
from metastore.txn.write_ids.aborted_ids import AbortedIds, TableName


class Beginning(NamedTuple):
    """What a statement asks for at once; names are as they are stored.

    `components` are what to lock; `seen` are the tables whose write ids it is told, and `written` those of which it
    gets one. Of each there may be none.
    """

    opening: Opening
    components: tuple[LockComponent, ...] = ()
    seen: tuple[TableName, ...] = ()
    written: tuple[TableName, ...] = ()


class Seen(NamedTuple):
    """What a statement sees of a table; `table_id` is that of the one which had the name then, None if none had."""

    write_ids: TableWriteIds
    table_id: int | None


class Written(NamedTuple):
    """A statement's write id of a table; `table_id` as in `Seen`."""

    table: TableName
    write_id: WriteId
    table_id: int | None


class Begun(NamedTuple):
    """A statement that has begun.

    `lock` is None if nothing was to be locked. If it waits, there are neither `seen` nor `written`: they are to be
    asked for when it has been granted. Either may be missing by itself, `seen` where somebody else has read the aborted
    write ids of a table at the same time, `written` where somebody drops a table. `is_outdated`: what it is to change
    was changed before it had its locks.
    """

    txn_id: TxnId
    snapshot: OpenTxns
    lock: LockResult | None
    is_outdated: bool
    seen: list[Seen] | None
    written: list[Written]


class BeginCall(HotCall[Beginning, Begun]):
    """Beginning (transactions.md §3.11)."""

    function = "begin_statements"
    max_batch = 64
    """As of requests for locks."""

    def __init__(self, max_open: int, aborted_ids: AbortedIds) -> None:
        self._max_open = max_open
        self._aborted_ids = aborted_ids
        self._known_aborts = KnownAborts()

    def arguments(self, questions: Sequence[Beginning]) -> list[object]:
        written = [(place, *table) for place, question in enumerate(questions, 1) for table in question.written]
        seen = _seen(questions)
        return [
            *opening_arrays([question.opening for question in questions]),
            self._max_open,
            *component_arrays([question.components for question in questions]),
            [place for place, _, _ in written],
            [db for _, db, _ in written],
            [table for _, _, table in written],
            [db for db, _ in seen],
            [table for _, table in seen],
            [self._aborted_ids.version(table) for table in seen],
            self._known_aborts.version,
        ]

    def answers(self, questions: Sequence[Beginning], rows: Rows) -> Sequence[Begun | MetastoreError]:
        first, opened = rows[0][3:5]
        locks: dict[int, tuple[str, int, int | None]] = {}
        outdated: list[int] = []
        snapshot: OpenTxns | None = None
        tables: dict[TableName, Seen | None] = {}
        given: dict[int, int] = {}
        named: dict[int, int] = {}
        asked = _seen(questions)
        for kind, place, outcome, number, other, ids, more_ids, has_valid, table_id in rows[1:]:
            if kind == "lock":
                locks[place] = outcome, number, other
            elif kind == "outdated":
                outdated = ids
            elif kind == "snapshot":
                snapshot = OpenTxns(number, ids, self._known_aborts.at(outcome, more_ids), other)
            elif kind == "table":
                table = asked[other - 1]
                kept = self._aborted_ids.at(table, place, more_ids)
                tables[table] = None if kept is None else Seen(kept.shown(table, number, ids, has_valid), table_id)
            elif kind == "written":
                given[place] = number
            else:
                named[place] = table_id
        answers: list[Begun | MetastoreError] = []
        entry = 0
        for place, question in enumerate(questions, 1):
            written = [
                Written(table, WriteId(given[at]), named.get(at))
                for at, table in enumerate(question.written, entry + 1)
                if at in given
            ]
            entry += len(question.written)
            if place > opened:
                answers.append(no_room(self._max_open))
                continue
            assert snapshot is not None
            txn_id = TxnId(first + place - 1)
            lock = _lock(txn_id, *locks[place]) if question.components else None
            seen = [tables.get(table) for table in question.seen]
            has_locks = lock is None or lock.answer is LockAnswer.ACQUIRED
            answers.append(
                Begun(
                    txn_id,
                    snapshot,
                    lock,
                    place in outdated,
                    [one for one in seen if one is not None] if has_locks and None not in seen else None,
                    written,
                )
            )
        return answers

    def is_repeatable(self, question: Beginning) -> bool:
        """A second one would wait for the locks of the first, which nobody ends."""
        return not question.components


class Beginnings:
    """Statements that begin."""

    def __init__(self, db: Database, txns: TxnService, max_open: int, aborted_ids: AbortedIds) -> None:
        self._db = db
        self._txns = txns
        self._call = BeginCall(max_open, aborted_ids)

    async def begin_soon(self, beginning: Beginning) -> Begun:
        """Begin a statement. Nothing is waited for: see `Begun.lock`.

        Raises MetaError when the limit of open transactions would be passed, for names that make no sense, and for
        writes of a transaction that only reads.
        """
        opening = beginning.opening
        if opening.how_many != 1:
            raise MetaError(f"a statement has one transaction, not {opening.how_many}")
        if opening.txn_type is TxnType.READ_ONLY and (
            beginning.written or any(component.operation for component in beginning.components)
        ):
            raise MetaError("a transaction that is read-only may not write")
        self._txns.check_opening(opening)
        if beginning.components:
            request = stored_request(LockRequest(beginning.components, opening.owner))
            beginning = beginning._replace(components=request.components)
        begun = await self._db.ask_soon(self._call, beginning)
        self._txns.keeping.opened([begun.txn_id])
        return begun


def _lock(txn_id: TxnId, outcome: str, lock_id: int, blocker: int | None) -> LockResult:
    return LockResult(LockId(lock_id), LockAnswer(outcome), txn_id, LockId(blocker) if blocker is not None else None)


def _seen(questions: Sequence[Beginning]) -> list[TableName]:
    return list(dict.fromkeys(table for question in questions for table in question.seen))
