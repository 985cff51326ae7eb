"""The threads that run handlers, shared fairly by the clients.

So many calls run at a time. One client has three quarters of the threads at most, so that there always is one for
another; those who wait take turns by client. A call that waits for files gives its place to others meanwhile.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

from hive_acid.errors import MetaError
from metastore.filework.pools import MOST_WAITING, run_with_permit
from metastore.rpc.limits.fairness import FairQueue

OURSELVES = ""
"""The client of work that no client has asked for."""


class _Permit:
    """What a call has that runs; it gives it back while it waits for files."""

    __slots__ = ("_workers", "client")

    def __init__(self, workers: Workers, client: str) -> None:
        self._workers = workers
        self.client = client

    @contextmanager
    def given_back(self) -> Iterator[None]:
        """Let another call run in the meantime."""
        self._workers.leave(self.client)
        try:
            yield
        finally:
            self._workers.come_back(self.client)


class _Task(NamedTuple):
    """A call that waits."""

    client: str
    work: Callable[[], Any]
    future: Future[Any]


class Workers(ThreadPoolExecutor):
    """Threads for so many calls at a time, beside those that wait for files."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads + MOST_WAITING, thread_name_prefix="rpc")
        self._guard = threading.Lock()
        self._free = threads
        self._share = max(1, threads - threads // 4)
        self._running: Counter[str] = Counter()
        self._waiting: FairQueue[_Task] = FairQueue()
        self._returning: deque[tuple[str, threading.Event]] = deque()
        self._is_closed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run work of our own when there is a thread for it."""
        return self.submit_for(OURSELVES, lambda: fn(*args, **kwargs))

    def submit_for(self, client: str, work: Callable[[], Any]) -> Future[Any]:
        """Run work for a client when it is its turn."""
        future: Future[Any] = Future()
        with self._guard:
            if self._is_closed:
                future.set_exception(MetaError("the metastore is shutting down"))
            else:
                self._waiting.put(client, _Task(client, work, future))
                self._start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Refuse what waits, finish what runs."""
        with self._guard:
            self._is_closed = True
            while (task := self._waiting.take()) is not None:
                task.future.set_exception(MetaError("the metastore is shutting down"))
        super().shutdown(wait, cancel_futures=cancel_futures)

    def leave(self, client: str) -> None:
        """A call of this client runs no longer."""
        with self._guard:
            self._running[client] -= 1
            if not self._running[client]:
                del self._running[client]
            self._free += 1
            self._start()

    def come_back(self, client: str) -> None:
        """Return when a call that has left may run again; it comes before those that have not begun."""
        turn = threading.Event()
        with self._guard:
            self._returning.append((client, turn))
            self._start()
        turn.wait()

    def _start(self) -> None:
        """Under the guard: let those run for whom there is room."""
        while self._free:
            if self._returning:
                client, turn = self._returning.popleft()
                self._running[client] += 1
                turn.set()
            else:
                task = self._waiting.take(lambda client, _: self._running[client] < self._share)
                if task is None:
                    return
                self._running[task.client] += 1
                super().submit(self._run, _Permit(self, task.client), [task])
            self._free -= 1

    def _run(self, permit: _Permit, begun: list[_Task]) -> None:
        _, work, future = begun.pop()
        try:
            if future.set_running_or_notify_cancel():
                try:
                    result = run_with_permit(permit, work)
                except BaseException as error:
                    future.set_exception(error)
                    # The error holds this frame and those below. If they held the future, which holds the error, all
                    # that the call has had would be garbage that only the collector finds.
                    del future, work
                else:
                    future.set_result(result)
        finally:
            self.leave(permit.client)
