"""Calls that wait for a lock inside the server, instead of being asked again and again (long polling).

Such a call asks the database when it may have a new answer: when the request in its way is gone. By itself it looks
once after `DEADLOCK_AFTER_S`, when a deadlock may be the reason that nothing moves, and then every `RECHECK_S`. That is
the safety net for a wake-up from another server that was lost: one that freed a lock before this request was visible.
"""

from __future__ import annotations

import time

from hive_acid.ids import LockId, TxnId
from metastore.lock.config import LockConfig
from metastore.lock.models import LockRequest, LockResult
from metastore.lock.service import LockService
from metastore.lock.states import LockAnswer
from metastore.lock.waiters import LockWaiters
from metastore.store.listener import Listener

DEADLOCK_AFTER_S = 0.1
RECHECK_S = 1.0


class LockPolling:
    """Requests and checks that wait up to ``metastore.lock.poll.wait``; used on the event loop."""

    def __init__(self, locks: LockService, waiters: LockWaiters, listener: Listener, config: LockConfig) -> None:
        self._locks = locks
        self._waiters = waiters
        self._listener = listener
        self._poll_wait_s = config.poll_wait_ms / 1000

    async def lock(self, request: LockRequest) -> LockResult:
        """As `LockService.lock`, waiting for a lock that is not free; WAITING when it is not free in time."""
        deadline = time.monotonic() + self._poll_wait_s
        result = await self._locks.lock_soon(request)
        if result.answer is LockAnswer.WAITING:
            result = await self._wait(result, deadline, DEADLOCK_AFTER_S)
        return result

    async def check_lock(self, lock_id: LockId, txn_id: TxnId | None) -> LockResult:
        """As `LockService.check_lock`, waiting in the same way; who only asks now and then learns of a deadlock, too.

        Raises TxnAbortedError if the transaction was aborted, as for a deadlock, which the message then describes.
        """
        deadline = time.monotonic() + self._poll_wait_s
        result = await self._locks.check_soon(lock_id, txn_id)
        if result.answer is LockAnswer.WAITING and await self._locks.break_deadlock_soon(lock_id):
            result = await self._locks.check_soon(lock_id, result.txn_id, beats=False)
        if result.answer is LockAnswer.WAITING:
            result = await self._wait(result, deadline, RECHECK_S)
        return result

    def close(self) -> None:
        """Answer all calls that wait; when the server stops."""
        self._waiters.close()
        self._listener.close()

    async def _wait(self, result: LockResult, deadline: float, pause_s: float) -> LockResult:
        """Wait until `deadline` for a request that was found waiting; look by oneself for the first time in `pause_s`.

        Nobody looks at the end: the answer is that of the last look, and the client's next check comes soon.
        """
        with self._waiters.register(result.lock_id) as waiter:
            while result.answer is LockAnswer.WAITING and not waiter.closed:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    break
                self._listener.start()
                if result.blocker is None:  # somebody worked on it in the instant of the look
                    pause_s = DEADLOCK_AFTER_S
                if await waiter.sleep(result.blocker, min(left_s, pause_s)):
                    pause_s = DEADLOCK_AFTER_S  # there is another one in the way now, perhaps
                elif left_s <= pause_s:
                    break
                else:
                    await self._locks.break_deadlock_soon(result.lock_id)
                    pause_s = RECHECK_S
                result = await self._locks.check_soon(result.lock_id, result.txn_id, beats=False)
        return result
