"""The back-off of a rebalance: how it has its table for itself, and ends itself for all who would fail by it.

It gives rows other ids. A change that was begun before it commits, and is made after it, names rows that are no more,
and fails (`metastore.txn.rebalances`). So the rebalance

1. waits until nobody is open who may yet make such a change, without a lock in anybody's way;
2. takes the lock behind which writers wait, and looks again: who came in between is waited for shortly;
3. ends its job as soon as somebody waits for the lock who could not go on with other ids;
4. commits only if there is nobody, which is looked at in the database transaction of the commit.

Whenever it has waited for long enough, it goes back into the queue, with the reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from hive_acid.ids import TxnId
from metastore.compaction.worker.attempt import Attempt
from metastore.compaction.worker.job import CompactionCancelledError
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.service import LockService
from metastore.lock.states import LockAnswer, LockType
from metastore.txn.models import TxnOwner
from metastore.txn.names import TablePart
from metastore.txn.rebalances import Obstacle
from metastore.txn.service import TxnService
from metastore.txn.states import Operation

_YET_TO_COME = TxnId(2**62)
"""The id of a transaction that is not open yet."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a compaction waits for others, in seconds."""

    before_the_lock_s: float = 120.0
    """For those that may yet change rows, while nobody waits for us."""
    behind_the_lock_s: float = 15.0
    """The same once we have the lock: all who change rows wait with us."""
    before_the_commit_s: float = 60.0
    """The same when all work is done."""
    writers_end_within_s: float = 300.0
    """For those that hold locks; who wants to write meanwhile waits behind us."""
    older_snapshots_s: float = 600.0
    """For readers with older snapshots, where Hive 3.1 reads the table."""
    pause_s: float = 0.2
    """Between two looks."""


USUAL = Patience()


class WritersInTheWayError(Exception):
    """A rebalance could not have its table for itself; another attempt may."""


class BackOff:
    """The turns of one attempt at a rebalance."""

    def __init__(self, attempt: Attempt, txns: TxnService, locks: LockService, patience: Patience) -> None:
        self._attempt = attempt
        self._patience = patience
        self._txns = txns
        self._locks = locks
        self._reason = ""

    @property
    def _target(self) -> TablePart:
        compaction = self._attempt.compaction
        return compaction.db, compaction.table, compaction.partition

    @property
    def _txn_id(self) -> TxnId:
        assert self._attempt.txn_id is not None
        return self._attempt.txn_id

    def wait(self) -> None:
        """Step 1. Raises WritersInTheWayError."""
        self._until(
            lambda: self._txns.rebalances.obstacle(self._target, _YET_TO_COME),
            self._patience.before_the_lock_s,
            backs_off=False,
        )

    def lock(self, owner: TxnOwner) -> None:
        """Step 2. Raises WritersInTheWayError, also if rows were changed since our transaction began."""
        attempt, compaction = self._attempt, self._attempt.compaction
        component = LockComponent(
            LockType.EXCL_WRITE, compaction.db, compaction.table, compaction.partition, Operation.UPDATE
        )
        result = self._locks.lock(LockRequest((component,), owner, self._txn_id))
        deadline = time.monotonic() + self._patience.writers_end_within_s
        while result.answer is LockAnswer.WAITING and time.monotonic() < deadline:
            if attempt.cancelled.wait(self._patience.pause_s):
                raise CompactionCancelledError(attempt.why)
            result = self._locks.check_lock(result.lock_id, self._txn_id)
        if result.answer is not LockAnswer.ACQUIRED:
            raise WritersInTheWayError(
                f"{compaction.target} was written to for {self._patience.writers_end_within_s:.0f} s without a pause"
            )
        self._until(self._obstacle, self._patience.behind_the_lock_s)
        if other := self._txns.get_latest_txnid_in_conflict(self._txn_id):
            raise WritersInTheWayError(f"transaction {other} changed {compaction.target} just before it was locked")

    def look(self) -> None:
        """Step 3, called now and then: cancels the attempt if somebody waits; `check` says why then."""
        obstacle = self._obstacle()
        if obstacle is not None and obstacle.is_waiting and not self._attempt.cancelled.is_set():
            self._reason = self._words(obstacle)
            self._attempt.cancel(self._reason)

    def check(self) -> None:
        """Raise WritersInTheWayError if `look` has cancelled the attempt."""
        if self._reason:
            raise WritersInTheWayError(self._reason)

    def finish(self) -> None:
        """Step 4 before the last: wait for an instant in which nobody would fail. Raises WritersInTheWayError."""
        self._until(self._obstacle, self._patience.before_the_commit_s)

    def commit(self) -> None:
        """Step 4. Raises WritersInTheWayError if somebody has come since `finish`, and does not end soon."""
        deadline = time.monotonic() + self._patience.behind_the_lock_s
        while not self._txns.rebalances.commit(self._target, self._txn_id):
            if time.monotonic() > deadline:
                raise WritersInTheWayError(f"others may yet change rows of {self._attempt.compaction.target}")
            self._pause()

    def _obstacle(self) -> Obstacle | None:
        return self._txns.rebalances.obstacle(self._target, self._txn_id)

    def _until(self, obstacle: Callable[[], Obstacle | None], patience_s: float, *, backs_off: bool = True) -> None:
        """Wait until nobody is in the way; one that `backs_off` gives up as soon as somebody waits for our lock."""
        deadline = time.monotonic() + patience_s
        while (found := obstacle()) is not None:
            if time.monotonic() > deadline or (backs_off and found.is_waiting):
                raise WritersInTheWayError(self._words(found))
            self._pause()

    def _pause(self) -> None:
        if self._attempt.cancelled.wait(self._patience.pause_s):
            self.check()
            raise CompactionCancelledError(self._attempt.why)

    def _words(self, obstacle: Obstacle) -> str:
        opened = datetime.fromtimestamp(obstacle.started_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        target = self._attempt.compaction.target
        does = f"waits to change {target}" if obstacle.is_waiting else f"may yet change rows of {target}"
        return (
            f"transaction {obstacle.txn_id} of {obstacle.user} on {obstacle.host} with {obstacle.agent_info}, opened "
            f"{opened}, {does}, and would fail with other row ids: let it end, or ABORT TRANSACTIONS {obstacle.txn_id}"
        )
