"""Replies with long lists, sent while they are made: at no time is more of one in memory than a few parts.

A handler returns what `listed` makes of `store.rows.Rows`: the plain result if the list is short, else a `Streamed`,
which the dispatcher encodes on a thread of its own. The encoder asks the list for its length, then for one element
after the other, and hands on each part as soon as it is full; the client's reading sets the pace. Nothing is sent
before the first part is full, so until then an error is answered as always; later the connection is cut, since the
client would take what it has for the whole.

`STREAMS` lists are made at a time, clients in turn. A reader that is slower than we are does not keep the others: once
it has had its list wait for a moment, all in all, the list gives its turn away whenever it waits. So many may wait; of
more, the client that has most of them loses the one that has waited longest.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

from hive_acid.errors import MetaError
from metastore.rpc.encoding import codec
from metastore.rpc.limits.fairness import FairQueue
from metastore.store.connections.undertaking import repeated
from metastore.store.database import STREAMS, WAITING_STREAMS
from metastore.store.rows import Rows

PART_BYTES = 64 * 1024
TURN_S = 60.0
"""How long a reply waits for its turn, while `STREAMS` others are sent."""
READER_PATIENCE_S = 60.0
"""A client that takes nothing of a long reply for so long is cut off."""
MOMENT_S = 0.25
"""So long, in all, a list keeps its turn while it waits for its reader."""
SETTLED_S = 2.0
"""Who has waited for so long in all may be cut off when there are too many."""


class Outlet(Protocol):
    """The connection that takes the reply."""

    def write(self, part: bytes) -> bool:
        """Take one part; whether it takes more now. Raises ConnectionError if the client is gone."""

    async def ready(self, most_s: float) -> bool:
        """Wait until the next part may come; whether it may after that time. Raises ConnectionError if it is gone."""

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


def shown(value: Any, sees: Callable[[Any], bool], field: str | None) -> Any:
    """A result with those elements of its list that `sees` says; `field` of the result has the list, or it is it."""
    if isinstance(value, Streamed):
        assert isinstance(value.rows, Rows)
        return Streamed(value.rows.each(lambda one: one if sees(one) else None, has_gaps=True), value.wrap)
    found = value if field is None else getattr(value, field)
    kept = None if found is None else [one for one in found if sees(one)]
    if field is None:
        return kept
    setattr(value, field, kept)
    return value


class Streams:
    """Sends long replies, a few at a time."""

    def __init__(self, patience_s: float, longest_s: float) -> None:
        """A reply that has not begun waits for a database that is away for `patience_s`.

        One may take `longest_s`, since it holds a snapshot of the database so long: a client that is slower is cut off.
        """
        self._patience_s = patience_s
        self._longest_s = longest_s
        self._workers = ThreadPoolExecutor(STREAMS + WAITING_STREAMS, thread_name_prefix="stream")
        self._turns = STREAMS
        self._newcomers: FairQueue[asyncio.Future[None]] = FairQueue()
        self._returning: deque[asyncio.Future[None]] = deque()
        self._begun = 0
        self._sinks: set[_Sink] = set()
        self._looks_again: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Return when the last reply has ended; their connections are closed, the event loop still runs."""
        self._workers.shutdown()

    async def send(self, method: str, sequence: int, result: Streamed, client: str, outlet: Outlet) -> None:
        """Send one reply.

        Raises what goes wrong before anything is sent, as MetaError if no turn comes; BrokenOffError afterwards.
        """
        # A task, since the caller may be none and time-outs need one.
        await asyncio.ensure_future(self._send(method, sequence, result, client, outlet))

    async def _send(self, method: str, sequence: int, result: Streamed, client: str, outlet: Outlet) -> None:
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._newcomers.put(client, turn)
        self._give_turns()
        try:
            await asyncio.wait_for(turn, TURN_S)
        except TimeoutError:
            self._newcomers.remove(client, turn)
            raise MetaError(f"the server is busy sending {STREAMS} other long lists: try again later") from None
        sink = _Sink(self, client, outlet, loop, self._longest_s)
        self._sinks.add(sink)
        try:
            await loop.run_in_executor(
                self._workers, repeated, self._patience_s, partial(_write, method, sequence, result, sink)
            )
        finally:
            self._sinks.discard(sink)
            self._begun -= 1
            self.give_turn_back()

    def give_turn_back(self) -> None:
        """Somebody else may have it."""
        self._turns += 1
        self._give_turns()

    async def take_turn_again(self) -> None:
        """Return when a list that gave its turn away has one again; it comes before those that have not begun."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._returning.append(turn)
        self._give_turns()
        await turn

    def _give_turns(self) -> None:
        while self._turns:
            if self._returning:
                self._returning.popleft().set_result(None)
                self._turns -= 1
                continue
            if not self._newcomers:
                return
            if self._begun >= STREAMS + WAITING_STREAMS:
                self._make_room()
                return
            turn = self._newcomers.take()
            if turn is not None and not turn.done():
                turn.set_result(None)
                self._turns -= 1
                self._begun += 1

    def _make_room(self) -> None:
        """Cut off a list that waits for its reader, so that another one can begin when it has ended; or look again."""
        by_client = Counter(sink.client for sink in self._sinks)
        slow = [sink for sink in self._sinks if sink.is_waiting and sink.waited_s() > SETTLED_S]
        if slow:
            worst = max(slow, key=lambda sink: (by_client[sink.client], sink.waited_s()))
            worst.cut_off("the client takes the list too slowly, and others wait")
        elif self._looks_again is None:
            self._looks_again = asyncio.get_running_loop().call_later(MOMENT_S, self._look_again)

    def _look_again(self) -> None:
        self._looks_again = None
        self._give_turns()


class _Sink:
    """What the encoder writes parts to, on its thread."""

    def __init__(
        self, streams: Streams, client: str, outlet: Outlet, loop: asyncio.AbstractEventLoop, longest_s: float
    ) -> None:
        self.client = client
        self.has_begun = False
        self._streams = streams
        self._outlet = outlet
        self._loop = loop
        self._longest_s = longest_s
        self._deadline = time.monotonic() + longest_s
        self._waited_s = 0.0
        self._waits_since: float | None = None
        self._cut_off_because = ""

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for its reader."""
        return self._waits_since is not None

    def waited_s(self) -> float:
        """How long it has waited for its reader, in all."""
        return self._waited_s + (0.0 if self._waits_since is None else time.monotonic() - self._waits_since)

    def cut_off(self, reason: str) -> None:
        """End it."""
        self._cut_off_because = reason
        self._outlet.abort()

    def write(self, part: bytes) -> None:
        self.has_begun = True
        if time.monotonic() > self._deadline:
            raise ConnectionError(f"the client has not taken the list within {self._longest_s:g} s")
        asyncio.run_coroutine_threadsafe(self._pass_on(part), self._loop).result()

    def flush(self) -> None:
        """Part of what a transport has; every part is sent when it is written."""

    async def _pass_on(self, part: bytes) -> None:
        if self._outlet.write(part):
            return
        self._waits_since = time.monotonic()
        has_turn = True
        try:
            if not await self._outlet.ready(max(0.0, MOMENT_S - self._waited_s)):
                has_turn = False
                self._streams.give_turn_back()
                rest_s = max(0.0, self._deadline - time.monotonic())
                if not await self._outlet.ready(min(READER_PATIENCE_S, rest_s)):
                    raise ConnectionError(
                        f"the client has not taken the list within {self._longest_s:g} s"
                        if rest_s < READER_PATIENCE_S
                        else f"the client has not read for {READER_PATIENCE_S:g} s"
                    )
        except ConnectionError as error:
            raise ConnectionError(self._cut_off_because or str(error)) from None
        finally:
            self._waited_s = self.waited_s()
            self._waits_since = None
            if not has_turn:
                await self._streams.take_turn_again()


def _write(method: str, sequence: int, result: Streamed, sink: _Sink) -> None:
    try:
        with result.rows.opened() as found:
            codec.write_result(method, sequence, result.wrap(found), sink, PART_BYTES)
    except Exception as error:
        if not sink.has_begun:
            raise
        raise BrokenOffError(f"{type(error).__name__}: {error}") from error
