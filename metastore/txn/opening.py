"""Opening transactions for many callers at once.

Transaction ids come from one row, which every opening locks until it is durable. Callers that come while one is under
way wait for it and are then served together, by the first of them: under load one flush of the log opens many.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from hive_acid.errors import MetaError
from hive_acid.ids import TxnId
from metastore.store.database import Database
from metastore.txn.models import TxnOwner
from metastore.txn.states import TxnType

MAX_TOGETHER = 256


@dataclass
class _Request:
    """One caller. Its `turn` comes when it is served, or when it is to serve itself and those behind it."""

    how_many: int
    owner: TxnOwner
    txn_type: TxnType
    turn: threading.Event = field(default_factory=threading.Event)
    txn_ids: list[TxnId] | None = None
    error: Exception | None = None

    @property
    def is_served(self) -> bool:
        return self.txn_ids is not None or self.error is not None


class Opening:
    """Opens transactions; safe to call from many threads, of which one at a time goes to the database."""

    def __init__(self, db: Database, max_open: int) -> None:
        self._db = db
        self._max_open = max_open
        self._guard = threading.Lock()
        self._queue: list[_Request] = []
        self._is_busy = False

    def open(self, how_many: int, owner: TxnOwner, txn_type: TxnType) -> list[TxnId]:
        """Open `how_many` transactions; their ids are ascending and contiguous.

        Raises MetaError when there would be too many open ones.
        """
        request = _Request(how_many, owner, txn_type)
        with self._guard:
            self._queue.append(request)
            leads, self._is_busy = not self._is_busy, True
        if not leads:
            request.turn.wait()
        if not request.is_served:
            self._serve_queue()
        if request.error is not None:
            raise request.error
        assert request.txn_ids is not None
        return request.txn_ids

    def _serve_queue(self) -> None:
        """Serve all who wait, oneself first among them; then let the first of those who came meanwhile do the same."""
        with self._guard:
            batch, self._queue = self._queue[:MAX_TOGETHER], self._queue[MAX_TOGETHER:]
        try:
            self._serve(batch)
        finally:
            with self._guard:
                following = self._queue[0] if self._queue else None
                self._is_busy = following is not None
            for request in batch:
                request.turn.set()
            if following is not None:
                following.turn.set()

    def _serve(self, batch: Sequence[_Request]) -> None:
        try:
            row = self._db.call_one(
                "open_txns",
                [request.how_many for request in batch],
                [request.txn_type.value for request in batch],
                [request.owner.user for request in batch],
                [request.owner.host for request in batch],
                [request.owner.agent_info for request in batch],
                self._max_open,
            )
        except Exception as error:
            for request in batch:
                request.error = error
            return
        if row is not None:
            first = row[0]
            for request in batch:
                request.txn_ids = [TxnId(first + i) for i in range(request.how_many)]
                first += request.how_many
        elif len(batch) > 1:  # together they are too many: those that fit by themselves are served
            for request in batch:
                self._serve([request])
        else:
            batch[0].error = MetaError(
                f"{batch[0].how_many} more would be too many open transactions, hive.max.open.txns is "
                f"{self._max_open}: end some, or raise the limit"
            )
