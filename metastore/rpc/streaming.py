"""Replies with long lists, sent while they are made: at no time is more of one in memory than a few parts.

A handler returns what `listed` makes of `store.rows.Rows`: the plain result if the list is short, else a `Streamed`,
which the dispatcher encodes on a thread of its own. The encoder asks the list for its length, then for one element
after the other, and hands on each part as soon as it is full; the client's reading sets the pace. Nothing is sent
before the first part is full, so until then an error is answered as always; later the connection is cut, since the
client would take what it has for the whole.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

from hive_acid.errors import MetaError
from metastore.rpc import codec
from metastore.store.database import STREAMS
from metastore.store.undertaking import repeated

PART_BYTES = 64 * 1024
TURN_S = 60.0
"""How long a reply waits for its turn, while `STREAMS` others are sent."""
LONGEST_S = 600.0
"""How long a reply may take, since it holds a snapshot of the database so long. A client that is slower is cut off."""


class Outlet(Protocol):
    """The connection that takes the reply."""

    async def send(self, part: bytes) -> None:
        """Take one part; returns when the next may come. Raises ConnectionError if the client is gone or too slow."""

    def abort(self) -> None:
        """Cut the connection, whatever is still to be sent."""


class Lazy(Protocol):
    """A list that may be long, as `store.rows.Rows`."""

    def short(self) -> list[Any] | None:
        """The whole list if it is short."""

    def opened(self) -> AbstractContextManager[Any]:
        """The list with its length and an iterator, until the end of the body."""


class Streamed:
    """A result that is made while it is sent."""

    __slots__ = ("rows", "wrap")

    def __init__(self, rows: Lazy, wrap: Callable[[Any], Any]) -> None:
        """`wrap` makes the method's result of the list."""
        self.rows = rows
        self.wrap = wrap


class BrokenOffError(Exception):
    """A reply ended in its middle."""


def listed(rows: Lazy, wrap: Callable[[Any], Any] = lambda found: found) -> Any:
    """The result with this list in it, which `wrap` makes; a list itself where that is the result."""
    short = rows.short()
    return wrap(short) if short is not None else Streamed(rows, wrap)


class Streams:
    """Sends long replies, a few at a time."""

    def __init__(self, patience_s: float) -> None:
        """A reply that has not begun waits for a database that is away for `patience_s`."""
        self._patience_s = patience_s
        self._workers = ThreadPoolExecutor(STREAMS, thread_name_prefix="stream")
        self._turns = asyncio.Semaphore(STREAMS)

    def close(self) -> None:
        """Return when the last reply has ended; their connections are closed, the event loop still runs."""
        self._workers.shutdown()

    async def send(self, method: str, sequence: int, result: Streamed, outlet: Outlet) -> None:
        """Send one reply.

        Raises what goes wrong before anything is sent, as MetaError if no turn comes; BrokenOffError afterwards.
        """
        # A task, since the caller may be none and time-outs need one.
        await asyncio.ensure_future(self._send(method, sequence, result, outlet))

    async def _send(self, method: str, sequence: int, result: Streamed, outlet: Outlet) -> None:
        try:
            await asyncio.wait_for(self._turns.acquire(), TURN_S)
        except TimeoutError:
            raise MetaError(f"the server is busy sending {STREAMS} other long lists: try again later") from None
        sink = _Sink(outlet, asyncio.get_running_loop())
        try:
            write = partial(_write, method, sequence, result, sink)
            await sink.loop.run_in_executor(self._workers, repeated, self._patience_s, write)
        finally:
            self._turns.release()


class _Sink:
    """What the encoder writes parts to, on its thread."""

    def __init__(self, outlet: Outlet, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.has_begun = False
        self._outlet = outlet
        self._deadline = time.monotonic() + LONGEST_S

    def write(self, part: bytes) -> None:
        self.has_begun = True
        if time.monotonic() > self._deadline:
            raise ConnectionError(f"the client has not taken the list within {LONGEST_S:.0f} s")
        asyncio.run_coroutine_threadsafe(self._outlet.send(part), self.loop).result()

    def flush(self) -> None:
        """Part of what a transport has; every part is sent when it is written."""


def _write(method: str, sequence: int, result: Streamed, sink: _Sink) -> None:
    try:
        with result.rows.opened() as found:
            codec.write_result(method, sequence, result.wrap(found), sink, PART_BYTES)
    except Exception as error:
        if not sink.has_begun:
            raise
        raise BrokenOffError(f"{type(error).__name__}: {error}") from error
