"""Keeping: transactions that live for longer than a moment are made durable, many at a time.

What a transaction does in its first moment is not flushed: a crash of the database makes it fail, which costs its
client a moment. One that lives on is put down here (``sql/keep_txns.sql``), and flushes what it does from then on. So
does a heartbeat, for transactions whose server was killed before.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Sequence

from hive_acid.ids import TxnId
from metastore.store.database import Database
from metastore.store.hot.batcher import HotCall
from metastore.store.hot.connection import Rows

YOUNG_S = 1.0
"""So old a transaction becomes durable, or up to twice as old."""
MAX_KEPT = 200_000
"""So many young ones are remembered; of more the elder ones stay young."""
BATCH = 5_000


class _KeepCall(HotCall[Sequence[TxnId], None]):
    """Making transactions durable."""

    function = "keep_txns"

    def arguments(self, questions: Sequence[Sequence[TxnId]]) -> list[object]:
        return [[txn_id for question in questions for txn_id in question]]

    def answers(self, questions: Sequence[Sequence[TxnId]], rows: Rows) -> Sequence[None]:
        return [None] * len(questions)


class Keeping:
    """The young transactions of one server; used on the event loop."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._call = _KeepCall()
        self._young: dict[TxnId, None] = {}
        self._younger: dict[TxnId, None] = {}
        """Those opened since `_young` were set apart."""
        self._is_due = False

    def opened(self, txn_ids: Iterable[TxnId]) -> None:
        """They are to be kept unless they end before."""
        for txn_id in txn_ids:
            self._younger[txn_id] = None
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(YOUNG_S, self._begin)

    def ended(self, txn_id: TxnId) -> None:
        """It has ended: there is nothing to be kept."""
        if self._younger.pop(txn_id, self) is self:
            self._young.pop(txn_id, None)

    async def keep(self) -> None:
        """Keep those that were there the last time, and are still; they are tried again when the database is away."""
        ids = list(self._young)
        for start in range(0, len(ids), BATCH):
            batch = ids[start : start + BATCH]
            await self._db.ask_soon(self._call, batch)
            for txn_id in batch:
                self._young.pop(txn_id, None)
        self._set_apart()

    def _set_apart(self) -> None:
        """Those opened until now are the young ones of the next time."""
        self._young.update(self._younger)
        self._younger.clear()
        while len(self._young) > MAX_KEPT:
            del self._young[next(iter(self._young))]

    def _begin(self) -> None:
        if self._young:
            self._task = asyncio.get_running_loop().create_task(self._keep_quietly())
        else:  # most have ended by now
            self._set_apart()
            self._plan()

    async def _keep_quietly(self) -> None:
        with contextlib.suppress(Exception):  # as when the database is away: tried again
            await self.keep()
        self._plan()

    def _plan(self) -> None:
        self._is_due = bool(self._young or self._younger)
        if self._is_due:
            asyncio.get_running_loop().call_later(YOUNG_S, self._begin)
