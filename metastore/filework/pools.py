"""File work on threads of its own for each file system, so that one which does not answer hinders nobody else.

A file system is a scheme and a host. Each has a few threads and a limited number of callers: who comes to one that is
full and has not answered for a moment is refused at once, with a sentence. Who waits longer than the limit gets a
TimeoutError, which is an OSError as any other. What then still runs cannot be stopped; the next call for the same joins
it, and it is undone if it comes to its end when nobody waits and the caller has said how.

A thread that runs a call of a client gives its `Permit` back while it waits here, so waiting callers do not count
among those that run calls.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")

THREADS = 8
"""For one file system."""
MOST_CALLERS = 16
"""Of one file system that has not answered for a moment."""
MOST_WAITING = 64
"""Callers of all file systems that wait without a permit."""
MOST_SYSTEMS = 128
LIMIT_MS = 30_000
LONG = 20
"""So many limits for listings and removals, and renames where these are copies."""
_MOMENT_S = 1.0
_IDLE_S = 30.0
"""So long a thread waits for more work."""

_local = threading.local()
_log = logging.getLogger(__name__)


class Permit(Protocol):
    """What a thread has that counts among those that work."""

    def given_back(self) -> AbstractContextManager[None]:
        """Let another thread work in the meantime."""


def run_with_permit(permit: Permit, function: Callable[[], T]) -> T:
    """The result of a call; while it waits for files its permit is given back."""
    _local.permit = permit
    try:
        return function()
    finally:
        _local.permit = None


class _Work:
    """One operation."""

    def __init__(self, key: object, call: Callable[[], Any], undo: Callable[[], Any] | None) -> None:
        self.key = key
        self.call = call
        self.undo = undo
        self.done = threading.Event()
        self.is_started = False
        self.is_given_up = False
        self.is_undone = False
        self.result: Any = None
        self.error: BaseException | None = None


class _Pool:
    """The threads of one file system. All is done under the lock of all."""

    def __init__(self, lock: threading.Lock) -> None:
        self.wanted = threading.Condition(lock)
        self.queue: deque[_Work] = deque()
        self.running: dict[object, _Work] = {}
        self.threads = 0
        self.idle = 0
        self.callers = 0
        self.answered_s = 0.0


class FileSystems:
    """All of them."""

    def __init__(self) -> None:
        self.limit_ms = LIMIT_MS
        self.begin()

    def begin(self) -> None:
        """Begin without threads, as a forked process has to."""
        self._lock = threading.Lock()
        self._pools: dict[tuple[str, str], _Pool] = {}
        self._waiting = 0

    def run(
        self,
        location: str,
        function: Callable[..., T],
        *args: Any,
        takes_long: bool = False,
        undo: Callable[[], Any] | None = None,
    ) -> T:
        """The result of ``function(*args)``, which works on the file system of `location`.

        `takes_long` allows it the longer limit; `undo` is called if it ends well when nobody waits for it any more.
        Raises TimeoutError, OSError for a file system that is full and does not answer, and what the function raises.
        """
        limit_ms = self.limit_ms * (LONG if takes_long else 1)
        system = system_of(location)
        work = self._enter(system, _Work((function, args), lambda: function(*args), undo))
        permit: Permit | None = getattr(_local, "permit", None)
        try:
            if permit is None:
                work.done.wait(limit_ms / 1000)
            else:
                with permit.given_back():
                    work.done.wait(limit_ms / 1000)
        finally:
            self._leave(system, work)
        if not work.done.is_set():
            raise TimeoutError(
                f"{name_of(system)} has not answered within {limit_ms / 1000:g} s, so it is not known what was done at"
                f" {location}: try again when it answers"
            )
        if work.error is not None:
            raise work.error
        return work.result  # type: ignore[no-any-return]

    def has_answered(self, location: str, within_s: float) -> bool:
        """Whether the file system of a location has answered anything in the last seconds."""
        with self._lock:
            pool = self._pools.get(system_of(location))
            return pool is not None and time.monotonic() - pool.answered_s < within_s

    def _enter(self, system: tuple[str, str], work: _Work) -> _Work:
        with self._lock:
            pool = self._pools.get(system)
            if pool is None:
                self._forget_idle()
                if len(self._pools) >= MOST_SYSTEMS:
                    raise OSError(f"{MOST_SYSTEMS} file systems are in use or do not answer: try again later")
                pool = self._pools[system] = _Pool(self._lock)
            is_alive = time.monotonic() - pool.answered_s < _MOMENT_S
            if not is_alive and (pool.callers >= MOST_CALLERS or self._waiting >= MOST_WAITING):
                raise OSError(
                    f"{name_of(system)} does not answer, and {pool.callers} calls wait for it: try again later"
                )
            pool.callers += 1
            self._waiting += 1
            same = pool.running.get(work.key)
            if same is not None and (same.is_given_up or same.is_undone):
                same.is_given_up = False
                return same
            pool.queue.append(work)
            if len(pool.queue) <= pool.idle:
                pool.wanted.notify()
            elif pool.threads < THREADS:
                pool.threads += 1
                threading.Thread(target=self._serve, args=(pool,), name=f"files-{system[0]}", daemon=True).start()
        return work

    def _leave(self, system: tuple[str, str], work: _Work) -> None:
        with self._lock:
            self._waiting -= 1
            pool = self._pools[system]
            pool.callers -= 1
            if not work.done.is_set():
                if work.is_started:
                    work.is_given_up = True
                elif work in pool.queue:
                    pool.queue.remove(work)

    def _serve(self, pool: _Pool) -> None:
        while True:
            with self._lock:
                pool.idle += 1
                pool.wanted.wait_for(lambda: bool(pool.queue), _IDLE_S)
                pool.idle -= 1
                if not pool.queue:
                    pool.threads -= 1
                    return
                work = pool.queue.popleft()
                work.is_started = True
                pool.running[work.key] = work
            try:
                work.result = work.call()
            except BaseException as error:
                work.error = error
            with self._lock:
                if not work.is_given_up:
                    pool.answered_s = time.monotonic()
                work.is_undone = work.undo is not None and work.is_given_up and work.error is None
            if work.is_undone:
                _undo(work)
            with self._lock:
                if pool.running.get(work.key) is work:
                    del pool.running[work.key]
                work.done.set()

    def _forget_idle(self) -> None:
        for system, pool in list(self._pools.items()):
            if not (pool.threads or pool.callers or pool.queue):
                del self._pools[system]


def _undo(work: _Work) -> None:
    """Take back what was done when nobody waited any more; who has joined meanwhile is told to begin again."""
    assert work.undo is not None
    work.error = TimeoutError("it was done too late, and is undone: try again")
    try:
        work.undo()
    except Exception:
        _log.exception("what was done too late could not be undone")


FILE_SYSTEMS = FileSystems()
"""Those of this process."""
os.register_at_fork(after_in_child=FILE_SYSTEMS.begin)


def system_of(location: str) -> tuple[str, str]:
    """Scheme and host of the file system that a location is on."""
    parts = urlsplit(location) if "://" in location else None
    if parts is None:
        return "file", ""
    return parts.scheme.lower(), parts.netloc.lower()


def name_of(system: tuple[str, str]) -> str:
    """What people call a file system."""
    scheme, host = system
    return f"the file system {scheme}://{host}" if host else "the local file system" if scheme == "file" else scheme
