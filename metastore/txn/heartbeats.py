"""Heartbeats: answered from the transaction's state at once, put down together a moment later.

A heartbeat only moves a time-out that is counted in minutes. So it costs a look at the state, and one statement
writes those of a while. A server that is killed loses the last `flush_ms`; the reaper allows for that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hive_acid.errors import NoSuchLockError
from hive_acid.ids import LockId, TxnId
from metastore.store.database import Database
from metastore.store.hot.batcher import HotCall
from metastore.store.hot.connection import Rows
from metastore.txn.calls import StateCall, refusal
from metastore.txn.models import HeartbeatRange

Range = tuple[TxnId, TxnId]
_REFUSALS = {"a": "txn_aborted", "c": "txn_committed", None: "txn_unknown"}


class _RangeCall(HotCall[Range, HeartbeatRange]):
    """What of a range of transactions is not open."""

    function = "txn_range_states"
    connections = 2

    def arguments(self, questions: Sequence[Range]) -> list[object]:
        return [[first for first, _ in questions], [last for _, last in questions]]

    def answers(self, questions: Sequence[Range], rows: Rows) -> Sequence[HeartbeatRange]:
        return [HeartbeatRange(set(aborted), set(nosuch)) for aborted, nosuch in rows]


class _LockCall(HotCall[LockId, bool]):
    """Whether lock requests are there; those outside of transactions are kept alive."""

    function = "beat_locks"
    connections = 2

    def arguments(self, questions: Sequence[LockId]) -> list[object]:
        return [list(dict.fromkeys(questions))]

    def answers(self, questions: Sequence[LockId], rows: Rows) -> Sequence[bool]:
        found = {row[0] for row in rows}
        return [lock_id in found for lock_id in questions]


@dataclass(slots=True)
class _Beat:
    """The heartbeats of a range since they were last put down; `last_s` is when the last one came."""

    count: int
    last_s: float


class _FlushCall(HotCall[dict[Range, _Beat], None]):
    """Putting heartbeats down."""

    function = "heartbeat_txns"

    def arguments(self, questions: Sequence[dict[Range, _Beat]]) -> list[object]:
        now = time.monotonic()
        beats = [(key, beat) for question in questions for key, beat in question.items()]
        return [
            [key[0] for key, _ in beats],
            [key[1] for key, _ in beats],
            [int((now - beat.last_s) * 1000) for _, beat in beats],
            [beat.count for _, beat in beats],
        ]

    def answers(self, questions: Sequence[dict[Range, _Beat]], rows: Rows) -> Sequence[None]:
        return [None] * len(questions)


class Heartbeats:
    """The heartbeats of one server; used on the event loop."""

    def __init__(self, db: Database, flush_ms: int) -> None:
        self._db = db
        self._flush_s = flush_ms / 1000
        self._beats: dict[Range, _Beat] = {}
        self._state, self._range, self._lock, self._flush = StateCall(), _RangeCall(), _LockCall(), _FlushCall()
        self._is_due = False

    async def beat(self, txn_id: TxnId) -> None:
        """Keep a transaction alive. Raises TxnAbortedError or NoSuchTxnError."""
        await self.check(txn_id)
        self._note(txn_id, txn_id)

    async def beat_lock(self, lock_id: LockId) -> None:
        """Keep a lock outside of transactions alive. Raises NoSuchLockError."""
        if not await self._db.ask_soon(self._lock, lock_id):
            raise no_such_lock(lock_id)

    async def beat_both(self, txn_id: TxnId, lock_id: LockId) -> None:
        """Keep a transaction alive, and a lock that is there. Raises as `beat` and `beat_lock`."""
        asked = self._db.ask_soon(self._lock, lock_id), self._db.ask_soon(self._state, txn_id)
        is_there, state = await asyncio.gather(*asked)
        if not is_there:
            raise no_such_lock(lock_id)
        _check_state(state, txn_id)
        self._note(txn_id, txn_id)

    async def check(self, txn_id: TxnId) -> None:
        """Raise TxnAbortedError or NoSuchTxnError if a transaction is not open; this does not keep it alive."""
        _check_state(await self._db.ask_soon(self._state, txn_id), txn_id)

    async def beat_range(self, first: TxnId, last: TxnId) -> HeartbeatRange:
        """Keep the open ones of ``first..last`` alive; what else is there is returned."""
        found = await self._db.ask_soon(self._range, (first, last))
        self._note(first, last)
        return found

    def ended(self, txn_ids: Iterable[TxnId]) -> None:
        """Forget heartbeats of transactions that have ended."""
        for txn_id in txn_ids:
            self._beats.pop((txn_id, txn_id), None)

    async def flush(self) -> None:
        """Put down what has come since the last time; kept when the database is away."""
        beats, self._beats = self._beats, {}
        if not beats:
            return
        try:
            await self._db.ask_soon(self._flush, beats)
        except Exception:
            for key, beat in beats.items():
                later = self._beats.setdefault(key, _Beat(0, beat.last_s))
                later.count += beat.count
            self._plan()
            raise

    def _note(self, first: TxnId, last: TxnId) -> None:
        beat = self._beats.get((first, last))
        now = time.monotonic()
        if beat is None:
            self._beats[first, last] = _Beat(1, now)
        else:
            beat.count += 1
            beat.last_s = now
        self._plan()

    def _plan(self) -> None:
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(self._flush_s, self._begin_flush)

    def _begin_flush(self) -> None:
        self._is_due = False
        self._task = asyncio.get_running_loop().create_task(self._flush_quietly())

    async def _flush_quietly(self) -> None:
        try:
            await self.flush()
        except Exception:
            return  # kept, and tried again


def no_such_lock(lock_id: LockId) -> NoSuchLockError:
    """The error for an unknown lock."""
    return NoSuchLockError(f"No such lock: lockid:{lock_id}")


def _check_state(state: str | None, txn_id: TxnId) -> None:
    if state != "o":
        raise refusal(_REFUSALS[state], txn_id)
