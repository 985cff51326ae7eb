"""Waiting for locks inside the server: calls sleep on the event loop and are woken when locks are freed.

No wake-up is missed as long as a caller registers before it checks: what was freed before the check is seen by it,
what is freed later finds the caller registered. Locks freed by another server on the same database wake nobody here,
so nobody sleeps longer than `RECHECK_S` without looking again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

RECHECK_S = 1.0


class Waiter:
    """One call that waits for locks to be freed in some databases; belongs to the event loop."""

    def __init__(self, databases: Collection[str], closed: bool) -> None:
        self.databases = frozenset(databases)
        self.closed = closed
        self._freed = asyncio.Event()

    def wake(self) -> None:
        """End the present or the next `sleep` at once."""
        self._freed.set()

    async def sleep(self, timeout_s: float) -> None:
        """Sleep until something was freed since the last sleep ended, `timeout_s` or `RECHECK_S` at most."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._freed.wait(), min(timeout_s, RECHECK_S))
        self._freed.clear()


class LockWaiters:
    """The calls that wait; made before the event loop runs, used on one event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._by_database: dict[str, set[Waiter]] = {}
        self._closed = False

    @contextmanager
    def register(self, databases: Collection[str]) -> Iterator[Waiter]:
        """A waiter for locks in these databases; on the event loop."""
        self._loop = asyncio.get_running_loop()
        waiter = Waiter(databases, self._closed)
        for database in waiter.databases:
            self._by_database.setdefault(database, set()).add(waiter)
        try:
            yield waiter
        finally:
            for database in waiter.databases:
                others = self._by_database[database]
                others.discard(waiter)
                if not others:
                    del self._by_database[database]

    def wake(self, databases: Collection[str]) -> None:
        """Wake the calls that wait in these databases; from any thread, after the locks were freed."""
        loop = self._loop
        if loop is None or not any(database in self._by_database for database in databases):
            return
        try:
            loop.call_soon_threadsafe(self._wake, frozenset(databases))
        except RuntimeError:  # the event loop has ended, and with it everybody's waiting
            return

    def close(self) -> None:
        """Let every call answer now, and later ones without waiting; on the event loop, when the server stops."""
        self._closed = True
        for waiters in self._by_database.values():
            for waiter in waiters:
                waiter.closed = True
                waiter.wake()

    def _wake(self, databases: frozenset[str]) -> None:
        for database in databases:
            for waiter in self._by_database.get(database, ()):
                waiter.wake()
