"""The socket side: one event loop, thousands of idle connections, bounded messages, a graceful stop.

Each connection has one call in flight, as its client does; bytes of a next call wait in the buffer, and so they do
while the client does not read the reply before. A connection costs a buffer and nothing in the database, is never timed
out for idleness, and is closed by us only when its bytes are not Thrift (wire.md §2.3), its request is too
large or does not end, its replies are not read, or there are too many (`crowd`, `debts`).

A call is a coroutine that the connection drives itself, from the future it waits for to the next: most calls wait
once, for which a task costs more than the call. What needs a task, as time-outs do, makes one and waits for it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Coroutine
from typing import Any, cast

import uvloop

from metastore.observe.log import event
from metastore.rpc.busy_polling import BusyPolling
from metastore.rpc.call import Session
from metastore.rpc.config import ServerConfig
from metastore.rpc.dispatch import Dispatcher
from metastore.rpc.doors.door import IDENTITY, REPLY_END
from metastore.rpc.doors.doors import Doors
from metastore.rpc.doors.knocks import spoken
from metastore.rpc.encoding.framing import BEGINNING, BudgetError, MessageScanner, ProtocolError
from metastore.rpc.encoding.shapes import Shapes
from metastore.rpc.limits.crowd import Crowd
from metastore.rpc.limits.debts import Debts, unfinished
from metastore.rpc.limits.scans import PIECE_ELEMENTS, Scans
from metastore.rpc.request import Request
from metastore.rpc.streaming import READER_PATIENCE_S

LOG = logging.getLogger("metastore.rpc")
READ_AHEAD_BYTES = 256 * 1024
"""A client that sends on while its call runs is held back beyond this."""
STOP_WAIT_S = 10.0
LOOK_S = 1.0
"""How often clients are looked for that take too long."""
FAREWELL_S = 10.0
"""Of a client whose request was refused so much is still read and thrown away, since it reads the reply afterwards."""
BACKLOG = 1024
KEEPALIVE_IDLE_S, KEEPALIVE_EACH_S, KEEPALIVE_TIMES = 600, 60, 5


class ThriftConnection(asyncio.Protocol):
    """One client."""

    __slots__ = (
        "_buffer", "_call", "_is_owing", "_is_paused", "_is_refused", "_is_scanning", "_method", "_read_at",
        "_reply_ends", "_scanner", "_server", "_session", "_taken", "_transport", "client", "used_at_s",
    )  # fmt: skip

    def __init__(self, server: ThriftServer) -> None:
        self._server = server
        self._buffer = bytearray()
        self._scanner = MessageScanner(*server.limits)
        self._call: Coroutine[Any, None, bytes | None] | None = None
        self._method = ""
        self._is_paused = False
        self._is_scanning = False  # its message is walked piece by piece
        self._is_refused = False  # what still comes is thrown away
        self._is_owing = False
        self._read_at = (0, 0.0)  # how much was unread, since when
        self._taken: asyncio.Future[None] | None = None  # until the client has taken enough of what is written
        self._transport: asyncio.Transport | None = None
        self._reply_ends: Callable[..., None] | None = None  # what is told of the end of each reply, if anybody is
        self._session = Session(peer="?")
        self.client = "?"
        self.used_at_s = time.monotonic()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has connected."""
        self._transport = cast("asyncio.Transport", transport)
        self._reply_ends = transport.get_extra_info(REPLY_END)
        peer = transport.get_extra_info("peername")
        if peer:
            self.client = peer[0]
            self._session = Session(f"{peer[0]}:{peer[1]}", self.client)
            identity = transport.get_extra_info(IDENTITY)
            if identity is not None:
                self._session.user, self._session.authenticated, self._session.is_by_token = identity
        if not self._server.connections.add(self):
            event(LOG, logging.WARNING, "connection refused", peer=self._session.peer, reason="there are too many")
            self.abort()

    def begin_session(self, peer: str, client: str, user: str | None, authenticated: str | None) -> None:
        """The next message is by this user, and nothing is known of what was said before; only Hive 4 speaks HTTP."""
        self._session = Session(peer, client, user, authenticated=authenticated, is_hive_4=True)

    def connection_lost(self, error: Exception | None) -> None:
        """The client is gone; a call it left behind runs to its end, unanswered."""
        self._server.connections.discard(self)
        self._server.debts.settle(self)
        self._transport = None
        self.resume_writing()

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        if self._is_refused:
            if data.startswith(BEGINNING):  # of a next request, so the client has read that
                self.abort()
            return
        self._buffer += data
        if self._call is not None or self._taken is not None or self._is_scanning:
            if len(self._buffer) > READ_AHEAD_BYTES + self._scanner.walked and self._transport is not None:
                self._is_paused = True
                self._transport.pause_reading()
            return
        self._next_message()

    def pause_writing(self) -> None:
        """Enough is written that the client has not taken."""
        self._taken = asyncio.get_running_loop().create_future()
        if self._transport is not None:
            self._read_at = self._transport.get_write_buffer_size(), time.monotonic()
            self._owe(self._read_at[0])

    def resume_writing(self) -> None:
        """The client has taken most of what is written."""
        taken, self._taken = self._taken, None
        if taken is not None and not taken.done():
            taken.set_result(None)
        if self._transport is not None:
            self._settle()
            if self._call is None:
                self._go_on()

    def write(self, part: bytes) -> bool:
        """Write a part of a long reply; whether the client is ready for more.

        Raises ConnectionError if it is gone.
        """
        if self._transport is None:
            raise ConnectionError("the client is gone")
        self._transport.write(part)
        return self._taken is None

    async def ready(self, most_s: float) -> bool:
        """Wait until the client is ready for more of a long reply; whether it is after that time.

        Raises ConnectionError if it is gone.
        """
        if self._taken is not None:
            await asyncio.wait([self._taken], timeout=most_s)
        if self._transport is None:
            raise ConnectionError("the client is gone")
        return self._taken is None

    def abort(self) -> None:
        """Cut the connection, whatever is still to be sent."""
        if self._transport is not None:
            self._transport.abort()

    def _next_message(self) -> None:
        if self._call is not None or self._taken is not None or self._transport is None or self._is_refused:
            return
        scanner = self._scanner
        try:
            length = self._server.shapes.scan(scanner, self._buffer, PIECE_ELEMENTS)
        except BudgetError as error:
            self._refuse(str(error))
            return
        except ProtocolError as error:
            reason: object = error
            if not scanner.walked and (what := spoken(self._buffer)):
                reason = f"it speaks {what}, and this port speaks plain Thrift"
            event(LOG, logging.WARNING, "connection refused", peer=self._session.peer, reason=reason)
            self.close()
            return
        if length is None:
            self._wait_for_rest()
            return
        if self._is_owing:
            self._settle()
        if length == len(self._buffer):
            message, self._buffer = bytes(self._buffer), bytearray()
        else:
            message = bytes(memoryview(self._buffer)[:length])
            del self._buffer[:length]
        self._method = scanner.name
        self.used_at_s = time.monotonic()
        request = Request(scanner.name, scanner.sequence, message, scanner.elements)
        scanner.restart()
        server = self._server
        server.busy_polling.call_begins()
        self._call = server.dispatcher.serve(request, self._session, self)
        self._advance()

    def _wait_for_rest(self) -> None:
        """The message has not come whole, or not been walked to its end."""
        scanner = self._scanner
        if scanner.name and not self._server.dispatcher.knows(scanner.name):
            del self._buffer[: scanner.skip()]
        if self._buffer or scanner.name:
            self._owe(len(self._buffer))
        if scanner.is_tired and not self._is_refused:
            self._is_scanning = True
            self._server.scans.add(self)
        elif self._is_paused:
            self._read_on()

    def scan_on(self) -> None:
        """Walk the next piece of the message."""
        self._is_scanning = False
        if self._is_paused and len(self._buffer) <= READ_AHEAD_BYTES + self._scanner.walked:
            self._read_on()
        self._next_message()

    def _refuse(self, words: str) -> None:
        """Answer a request that is not read to its end, and close when the client has had time to read that."""
        self._settle()
        self._is_refused = True
        scanner = self._scanner
        self._buffer, self._scanner = bytearray(), MessageScanner(*self._server.limits)
        if self._transport is None:
            return
        if not scanner.name:
            self.close()
            return
        self._transport.write(self._server.dispatcher.refuse(scanner.name, scanner.sequence, words, self._session))
        if self._reply_ends is not None:
            self._reply_ends(is_last=True)
        if self._is_paused:
            self._read_on()
        asyncio.get_running_loop().call_later(FAREWELL_S, self.abort)

    def call_in(self, words: str) -> None:
        """Let go of what is held for this client."""
        self._is_owing = False
        if self._call is None and self._taken is None:
            self._refuse(words)
        else:
            event(LOG, logging.WARNING, "connection cut", peer=self._session.peer, reason=words)
            self.abort()

    def is_overdue(self, since_s: float, size_bytes: int, config: ServerConfig) -> str | None:
        """What is wrong with a client that owes us something since then; None if nothing is."""
        now = time.monotonic()
        if self._is_scanning:  # that is our slowness
            return None
        if self._taken is None:
            return unfinished(since_s, size_bytes, config)
        unread = self._transport.get_write_buffer_size() if self._transport is not None else 0
        if unread != self._read_at[0]:
            self._read_at = unread, now
        if self._call is not None:  # a long reply has its own patience
            return None
        if now - since_s > config.reply_timeout_ms / 1000 or now - self._read_at[1] > READER_PATIENCE_S:
            return "the client does not read its reply"
        return None

    def _owe(self, size_bytes: int) -> None:
        self._is_owing = True
        self._server.debts.owe(self, size_bytes)

    def _settle(self) -> None:
        self._is_owing = False
        self._server.debts.settle(self)

    def _advance(self, waited_for: asyncio.Future[Any] | None = None) -> None:
        """Let the call go on until it waits for something, or ends."""
        assert self._call is not None
        try:
            future = self._call.send(None)
        except StopIteration as end:
            self._call = None
            self._server.busy_polling.call_ends()
            self._answer(end.value)
        except BaseException:  # cancelled, as the event loop ends
            self._call = None
            self._server.busy_polling.call_ends()
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
        if self._reply_ends is not None:
            self._reply_ends()
        if self._server.stopping or self._method == "shutdown":
            self.close()
        elif (self._buffer or self._is_paused) and self._taken is None:
            self._go_on()

    def _go_on(self) -> None:
        """Serve the next message, if it is there."""
        if self._is_paused and len(self._buffer) <= READ_AHEAD_BYTES:
            self._read_on()
        if self._buffer:
            asyncio.get_running_loop().call_soon(self._next_message)

    def _read_on(self) -> None:
        self._is_paused = False
        if self._transport is not None:
            self._transport.resume_reading()

    @property
    def is_busy(self) -> bool:
        """Whether a call is in progress."""
        return self._call is not None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in progress."""
        return self._call is None and self._taken is None and not self._is_scanning

    def close(self) -> None:
        """Close after what is written has been sent."""
        if self._transport is not None:
            self._transport.close()


class ThriftServer:
    """Listens on one address; `run` serves until `stop`."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        config: ServerConfig = ServerConfig(),  # noqa: B008 - frozen
        doors: Doors | None = None,
    ) -> None:
        """Without `doors` everybody comes in."""
        self.dispatcher = dispatcher
        self._doors = doors
        self.connections = Crowd(config.max_connections)
        self.debts = Debts(config.max_held_bytes)
        self.scans = Scans()
        self.shapes = Shapes()
        self.stopping = False
        self.busy_polling = BusyPolling(config.stay_awake_ms)
        self.limits = config.max_message_bytes, config.max_message_elements
        """Of one message."""
        self._config = config
        self._listener: asyncio.Server | None = None
        self._looks_again: asyncio.TimerHandle | None = None

    async def listen(self, listener: socket.socket) -> str:
        """Accept clients on a bound socket from now on; returns its address, ``host:port``."""
        loop = asyncio.get_running_loop()
        if self._config.tcp_keepalive:
            _keep_alive(listener)
        self._listener = await loop.create_server(self._connection, sock=listener, backlog=BACKLOG)
        self._look()
        host, port = listener.getsockname()[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def _connection(self) -> asyncio.Protocol:
        connection = ThriftConnection(self)
        if self._doors is None:
            return connection
        return self._doors.before(connection, self.connections, self.debts, self._config.max_message_bytes)

    def _look(self) -> None:
        """Close the connections of clients that take too long."""
        patience_s = min(
            self._config.request_timeout_ms / 1000, self._config.reply_timeout_ms / 1000, READER_PATIENCE_S
        )
        for debtor, since_s, size_bytes in self.debts.older_than(patience_s):
            connection = cast("ThriftConnection", debtor)
            reason = connection.is_overdue(since_s, size_bytes, self._config)
            if reason is not None:
                self.debts.settle(connection)
                connection.call_in(reason)
        self._looks_again = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    async def stop(self) -> None:
        """Refuse new clients and calls, finish those in progress (for a bounded time), close."""
        self.stopping = True
        if self._looks_again is not None:
            self._looks_again.cancel()
        if self._listener is not None:
            self._listener.close()
        connections = [cast("ThriftConnection", one) for one in self.connections]
        for connection in connections:
            if not connection.is_busy:
                connection.close()
        deadline = time.monotonic() + STOP_WAIT_S
        while any(connection.is_busy for connection in connections) and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        for connection in connections:
            if connection.is_busy:
                connection.abort()  # its thread may wait for a client that does not read
            else:
                connection.close()


def _keep_alive(listener: socket.socket) -> None:
    """Have the kernel ask silent clients; the sockets of a listener are as it is."""
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_IDLE_S),
        ("TCP_KEEPINTVL", KEEPALIVE_EACH_S),
        ("TCP_KEEPCNT", KEEPALIVE_TIMES),
    ):
        if hasattr(socket, name):
            listener.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The event loop of the daemon."""
    return uvloop.new_event_loop()
