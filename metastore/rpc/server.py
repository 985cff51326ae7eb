"""The socket side: one event loop, thousands of idle connections, bounded messages, a graceful stop.

Each connection has one call in flight, as its client does; bytes of a next call wait in the buffer. A connection costs
a buffer and nothing in the database, is never timed out for idleness, and is closed by us only when its bytes are not
Thrift (metastore-wire.md §2).

A call is a coroutine that the connection drives itself, from the future it waits for to the next: most calls wait
once, for which a task costs more than the call. What needs a task, as time-outs do, makes one and waits for it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, cast

import uvloop

from metastore.filework.lanes import MOST_WAITING, Permit
from metastore.observe.log import event
from metastore.rpc.alertness import Alertness
from metastore.rpc.call import Session
from metastore.rpc.dispatch import Dispatcher
from metastore.rpc.framing import MessageScanner, ProtocolError

LOG = logging.getLogger("metastore.rpc")
MAX_MESSAGE_BYTES = 100 * 1024 * 1024
"""What the Java server accepts (metastore-wire.md §2)."""
READ_AHEAD_BYTES = 256 * 1024
"""A client that sends on while its call runs is held back beyond this."""
STOP_WAIT_S = 10.0
READER_PATIENCE_S = 60.0
"""A client that takes nothing of a long reply for so long is cut off."""
BACKLOG = 1024


class ThriftConnection(asyncio.Protocol):
    """One client."""

    def __init__(self, server: ThriftServer) -> None:
        self._server = server
        self._buffer = bytearray()
        self._scanner = MessageScanner(server.max_message_bytes)
        self._call: Coroutine[Any, None, bytes | None] | None = None
        self._method = ""
        self._is_paused = False
        self._taken: asyncio.Future[None] | None = None  # until the client has taken enough of what is written
        self._transport: asyncio.Transport | None = None
        self._session = Session(peer="?")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self._session = Session(peer=f"{peer[0]}:{peer[1]}" if peer else "?")
        self._server.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        """The client is gone; a call it left behind runs to its end, unanswered."""
        self._server.connections.discard(self)
        self._transport = None
        self.resume_writing()

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        self._buffer += data
        if self._call is not None:
            if len(self._buffer) > READ_AHEAD_BYTES and self._transport is not None:
                self._is_paused = True
                self._transport.pause_reading()
            return
        self._next_message()

    def pause_writing(self) -> None:
        """Enough is written that the client has not taken."""
        self._taken = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        """The client has taken most of what is written."""
        taken, self._taken = self._taken, None
        if taken is not None and not taken.done():
            taken.set_result(None)

    async def send(self, part: bytes) -> None:
        """Write a part of a long reply; returns when the client is ready for the next.

        Raises ConnectionError if it is gone, or has taken nothing for `READER_PATIENCE_S`.
        """
        if self._transport is not None:
            self._transport.write(part)
        if self._taken is not None:
            try:
                await asyncio.wait_for(self._taken, READER_PATIENCE_S)
            except TimeoutError:
                raise ConnectionError(f"the client has not read for {READER_PATIENCE_S:.0f} s") from None
        if self._transport is None:
            raise ConnectionError("the client is gone")

    def abort(self) -> None:
        """Cut the connection, whatever is still to be sent."""
        if self._transport is not None:
            self._transport.abort()

    def _next_message(self) -> None:
        if self._call is not None or self._transport is None:
            return
        try:
            length = self._scanner.scan(self._buffer)
        except ProtocolError as error:
            event(LOG, logging.WARNING, "connection refused", peer=self._session.peer, reason=error)
            self.close()
            return
        if length is None:
            return
        message = bytes(self._buffer[:length])
        del self._buffer[:length]
        scanner, self._scanner = self._scanner, MessageScanner(self._server.max_message_bytes)
        self._method = scanner.name
        self._server.alertness.call_begins()
        self._call = self._server.dispatcher.serve(scanner.name, scanner.sequence, message, self._session, self)
        self._advance()

    def _advance(self, waited_for: asyncio.Future[Any] | None = None) -> None:
        """Let the call go on until it waits for something, or ends."""
        assert self._call is not None
        try:
            future = self._call.send(None)
        except StopIteration as end:
            self._call = None
            self._server.alertness.call_ends()
            self._answer(end.value)
        except BaseException:  # cancelled, as the event loop ends
            self._call = None
            self._server.alertness.call_ends()
            self.close()
            raise
        else:
            future._asyncio_future_blocking = False  # says to a task that it was awaited, not yielded
            future.add_done_callback(self._advance)

    def _answer(self, reply: bytes | None) -> None:
        if self._transport is None:
            return
        if reply is not None:
            self._transport.write(reply)
        if self._server.stopping or self._method == "shutdown":
            self.close()
            return
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()
        if self._buffer:
            asyncio.get_running_loop().call_soon(self._next_message)

    @property
    def is_busy(self) -> bool:
        """Whether a call is in progress."""
        return self._call is not None

    def close(self) -> None:
        """Close after what is written has been sent."""
        if self._transport is not None:
            self._transport.close()


class ThriftServer:
    """Listens on one address; `run` serves until `stop`."""

    def __init__(
        self, dispatcher: Dispatcher, *, max_message_bytes: int = MAX_MESSAGE_BYTES, stay_awake_ms: int = 0
    ) -> None:
        self.dispatcher = dispatcher
        self.max_message_bytes = max_message_bytes
        self.connections: set[ThriftConnection] = set()
        self.stopping = False
        self.alertness = Alertness(stay_awake_ms)
        self._listener: asyncio.Server | None = None

    async def listen(self, listener: socket.socket) -> str:
        """Accept clients on a bound socket from now on; returns its address, ``host:port``."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(lambda: ThriftConnection(self), sock=listener, backlog=BACKLOG)
        host, port = listener.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def stop(self) -> None:
        """Refuse new clients and calls, finish those in progress (for a bounded time), close."""
        self.stopping = True
        if self._listener is not None:
            self._listener.close()
        for connection in list(self.connections):
            if not connection.is_busy:
                connection.close()
        deadline = time.monotonic() + STOP_WAIT_S
        while any(connection.is_busy for connection in self.connections) and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        for connection in list(self.connections):
            if connection.is_busy:
                connection.abort()  # its thread may wait for a client that does not read
            else:
                connection.close()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The event loop of the daemon."""
    return uvloop.new_event_loop()


class Workers(ThreadPoolExecutor):
    """The threads that run handlers: so many at a time, beside those that wait for files."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads + MOST_WAITING, thread_name_prefix="rpc")
        self._permit = Permit(threads)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a handler when there is a thread for it."""
        return super().submit(self._permit.run, partial(fn, *args, **kwargs))


def new_workers(threads: int) -> Workers:
    """The threads that run handlers."""
    return Workers(threads)
