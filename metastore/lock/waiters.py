"""Waiting for locks inside the server: calls sleep on the event loop until the request in their way is gone.

Who waits is known by two lock ids: its own, and that of the nearest request in its way. The end of either wakes it, and
nothing else does, so a thousand waiting calls cost nothing while they wait.

No wake-up is missed: ids that were freed lately are remembered, so it does not matter whether a blocker goes before or
after its waiter has registered. What other servers free is told by the database (see `metastore.lock.listener`).
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from hive_acid.ids import LockId

MAX_REMEMBERED = 50_000
"""Freed ids that are remembered: those of many seconds, where the time between an answer and the wait is counted in
milliseconds."""


class Waiter:
    """One call that waits for its lock; belongs to the event loop."""

    def __init__(self, waiters: LockWaiters, lock_id: LockId) -> None:
        self._waiters = waiters
        self._is_woken = False
        self._sleep: asyncio.Future[None] | None = None
        self.lock_id = lock_id
        self.closed = False

    def wake(self) -> None:
        """End the present or the next `sleep` at once."""
        self._is_woken = True
        self._end_sleep()

    async def sleep(self, blocker: LockId | None, timeout_s: float) -> bool:
        """Sleep until `blocker` or this request itself is gone; False if neither was within `timeout_s`."""
        with self._waiters.watched(self, blocker):
            if not self._is_woken:
                loop = asyncio.get_running_loop()
                self._sleep = loop.create_future()
                # A timer of our own: asyncio's time-outs work in tasks only, and calls are none.
                timer = loop.call_later(timeout_s, self._end_sleep)
                try:
                    await self._sleep
                finally:
                    timer.cancel()
            is_woken, self._is_woken = self._is_woken, False
            return is_woken

    def _end_sleep(self) -> None:
        if self._sleep is not None and not self._sleep.done():
            self._sleep.set_result(None)


class LockWaiters:
    """The calls that wait, on one event loop; `wake` is for every thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._by_lock: dict[LockId, set[Waiter]] = {}
        self._all: set[Waiter] = set()
        self._lately_freed: OrderedDict[LockId, None] = OrderedDict()  # the oldest first
        self._closed = False

    @contextmanager
    def register(self, lock_id: LockId) -> Iterator[Waiter]:
        """A waiter for a request; on the event loop."""
        waiter = Waiter(self, lock_id)
        with self._guard:
            self._loop = asyncio.get_running_loop()
            self._all.add(waiter)
            waiter.closed = self._closed
        try:
            yield waiter
        finally:
            with self._guard:
                self._all.discard(waiter)

    @contextmanager
    def watched(self, waiter: Waiter, blocker: LockId | None) -> Iterator[None]:
        """Inside, the waiter is woken when its own request or `blocker` goes; at once if one has gone already."""
        watched = [waiter.lock_id] if blocker is None else [waiter.lock_id, blocker]
        with self._guard:
            for lock_id in watched:
                self._by_lock.setdefault(lock_id, set()).add(waiter)
                if lock_id in self._lately_freed:
                    waiter.wake()
        try:
            yield
        finally:
            with self._guard:
                for lock_id in watched:
                    others = self._by_lock[lock_id]
                    others.discard(waiter)
                    if not others:
                        del self._by_lock[lock_id]

    def wake(self, lock_ids: Collection[LockId]) -> None:
        """Wake the calls in whose way these requests were; from any thread, after they are gone."""
        with self._guard:
            for lock_id in lock_ids:
                self._lately_freed[lock_id] = None
            while len(self._lately_freed) > MAX_REMEMBERED:
                self._lately_freed.popitem(last=False)  # of a plain dict this takes longer with each one that has gone
            found = [waiter for lock_id in lock_ids for waiter in self._by_lock.get(lock_id, ())]
        self._wake_on_loop(found)

    def wake_all(self) -> None:
        """Let every call look again, as when nobody knows what was freed; from any thread."""
        with self._guard:
            found = list(self._all)
        self._wake_on_loop(found)

    def close(self) -> None:
        """Let every call answer now, and later ones without waiting; on the event loop, when the server stops."""
        with self._guard:
            self._closed = True
            for waiter in self._all:
                waiter.closed = True
                waiter.wake()

    def _wake_on_loop(self, waiters: Collection[Waiter]) -> None:
        loop = self._loop
        if loop is None or not waiters:
            return
        with suppress(RuntimeError):  # the event loop has ended, and with it everybody's waiting
            loop.call_soon_threadsafe(_wake, waiters)


def _wake(waiters: Collection[Waiter]) -> None:
    for waiter in waiters:
        waiter.wake()
