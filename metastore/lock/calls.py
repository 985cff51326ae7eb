"""The hot calls of locks: what is asked, and what the rows that come back mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hive_acid.errors import MetastoreError, NoSuchLockError, TxnAbortedError
from hive_acid.ids import LockId, TxnId
from metastore.lock.models import LockComponent, LockRequest, LockResult
from metastore.lock.states import LockAnswer, LockState, LockType
from metastore.store.hot.batcher import AGAIN, Again, HotCall
from metastore.store.hot.connection import Rows
from metastore.txn.calls import LocksFreed, refusal

DEADLOCK = "deadlock: "
"""How the abort reason of a deadlock's victim begins."""


class RequestCall(HotCall[LockRequest, LockResult]):
    """Asking for locks (transactions.md §3.2); the names of the components are as they are stored."""

    function = "request_locks"
    # Strong locks of one batch are compared with each other.
    max_batch = 64

    def arguments(self, questions: Sequence[LockRequest]) -> list[object]:
        return [
            [question.txn_id or 0 for question in questions],
            [question.owner.user for question in questions],
            [question.owner.host for question in questions],
            [question.owner.agent_info for question in questions],
            [question.reader_waits for question in questions],
            [question.exclusive_ctas for question in questions],
            *component_arrays([question.components for question in questions]),
        ]

    def answers(self, questions: Sequence[LockRequest], rows: Rows) -> Sequence[LockResult | MetastoreError | Again]:
        return [_request_answer(question, *row) for question, row in zip(questions, rows, strict=True)]

    def is_repeatable(self, question: LockRequest) -> bool:
        """Outside of a transaction a repeated request would wait for the one whose answer was lost."""
        return question.txn_id is not None


def component_arrays(requests: Sequence[Sequence[LockComponent]]) -> list[object]:
    """What a function is told of the components of requests: of which each is, its number there, and the rest."""
    components = [
        (place, number, component)
        for place, request in enumerate(requests, 1)
        for number, component in enumerate(request, 1)
    ]
    return [
        [place for place, _, _ in components],
        [number for _, number, _ in components],
        [component.type.value for _, _, component in components],
        [component.db for _, _, component in components],
        [component.table or "" for _, _, component in components],
        [component.partition or "" for _, _, component in components],
        [component.operation.value if component.operation else None for _, _, component in components],
        [component.dynamic for _, _, component in components],
    ]


def _request_answer(
    request: LockRequest,
    outcome: str,
    lock_id: int,
    blocked_component: int | None,
    blocker_lock: int | None,
    blocker_component: int | None,
    blocker_type: str | None,
    blocker_state: str | None,
    blocker_txn: int | None,
) -> LockResult | MetastoreError | Again:
    if outcome == "again":
        return AGAIN
    if outcome.startswith("txn_"):
        return refusal(outcome, request.txn_id)
    answer = LockAnswer(outcome)
    if answer is not LockAnswer.NOT_ACQUIRED:
        blocker = LockId(blocker_lock) if blocker_lock is not None else None
        return LockResult(LockId(lock_id), answer, request.txn_id, blocker)
    assert blocked_component is not None
    blocked = request.components[blocked_component - 1]
    target = "/".join(part for part in (blocked.db, blocked.table, blocked.partition) if part)
    held = "held" if blocker_state == LockState.ACQUIRED.value else "asked for"
    holder = f"by transaction {blocker_txn}" if blocker_txn else "outside of transactions"
    words = f"lock {blocker_lock}, {LockType(blocker_type).name} {held} {holder}"
    if request.exclusive_ctas:
        message = f"another CREATE TABLE AS SELECT works on the same table {target}: {words}"
    else:
        message = f"no read lock on {target} without waiting: {words}"
    return LockResult(LockId(lock_id), answer, request.txn_id, None, message)


class Check(NamedTuple):
    """A question for a lock request.

    `txn_id` is the transaction it is said to belong to, if anybody says so; `beats` keeps it or its transaction alive.
    """

    lock_id: LockId
    txn_id: TxnId | None
    beats: bool


class CheckCall(HotCall[Check, LockResult]):
    """Granting requests that nothing is in the way of any more (transactions.md §3.5)."""

    function = "check_locks"

    def arguments(self, questions: Sequence[Check]) -> list[object]:
        beats: dict[tuple[LockId, int], bool] = {}
        for question in questions:
            key = question.lock_id, question.txn_id or 0
            beats[key] = beats.get(key, False) or question.beats
        return [[lock_id for lock_id, _ in beats], [txn_id for _, txn_id in beats], list(beats.values())]

    def answers(self, questions: Sequence[Check], rows: Rows) -> Sequence[LockResult | MetastoreError]:
        found = {(row[0], row[1]): row[2:] for row in rows}
        return [
            _check_answer(
                question, *(found.get((question.lock_id, None)) or found[question.lock_id, question.txn_id or 0])
            )
            for question in questions
        ]


def _check_answer(
    question: Check, outcome: str, txn_id: int | None, blocker_lock: int | None, abort_reason: str | None
) -> LockResult | MetastoreError:
    if outcome == "lock_unknown":
        return NoSuchLockError(f"No such lock: lockid:{question.lock_id}")
    if outcome == "txn_aborted":
        why = f": {abort_reason}" if abort_reason and abort_reason.startswith(DEADLOCK) else ""
        return TxnAbortedError(f"Transaction txnid:{question.txn_id} already aborted{why}")
    blocker = LockId(blocker_lock) if blocker_lock is not None else None
    return LockResult(question.lock_id, LockAnswer(outcome), TxnId(txn_id) if txn_id else None, blocker)


class UnlockCall(HotCall[LockId, TxnId | None]):
    """Giving locks up (transactions.md §3.6); the answer is the transaction that keeps the lock, None if it is gone."""

    function = "unlock_locks"

    def __init__(self, locks_freed: LocksFreed) -> None:
        self._locks_freed = locks_freed

    def arguments(self, questions: Sequence[LockId]) -> list[object]:
        return [_distinct(questions)]

    def answers(self, questions: Sequence[LockId], rows: Rows) -> Sequence[TxnId | None]:
        self._locks_freed([LockId(row[0]) for row in rows if row[1] is None])
        holders = {row[0]: TxnId(row[1]) for row in rows if row[1] is not None}
        return [holders.get(lock_id) for lock_id in questions]


class DeadlockCall(HotCall[LockId, bool]):
    """Breaking the deadlocks that requests are in; whether any of those that were asked for together was in one."""

    function = "break_deadlocks"

    def __init__(self, locks_freed: LocksFreed) -> None:
        self._locks_freed = locks_freed

    def arguments(self, questions: Sequence[LockId]) -> list[object]:
        return [_distinct(questions)]

    def answers(self, questions: Sequence[LockId], rows: Rows) -> Sequence[bool]:
        self._locks_freed([LockId(lock_id) for row in rows for lock_id in row[1]])
        return [bool(rows)] * len(questions)


def _distinct(lock_ids: Iterable[LockId]) -> list[LockId]:
    return list(dict.fromkeys(lock_ids))
