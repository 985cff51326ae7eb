"""The socket side: one event loop, thousands of idle connections, bounded messages, a graceful stop.

Each connection has one call in flight, as its client does; bytes of a next call wait in the buffer. A connection costs
a buffer and nothing in the database, is never timed out for idleness, and is closed by us only when its bytes are not
Thrift (metastore-wire.md §2).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import uvloop

from metastore.observe.log import event
from metastore.rpc.call import Session
from metastore.rpc.dispatch import Dispatcher
from metastore.rpc.framing import MessageScanner, ProtocolError

LOG = logging.getLogger("metastore.rpc")
MAX_MESSAGE_BYTES = 100 * 1024 * 1024
"""What the Java server accepts (metastore-wire.md §2)."""
READ_AHEAD_BYTES = 256 * 1024
"""A client that sends on while its call runs is held back beyond this."""
STOP_WAIT_S = 10.0
BACKLOG = 1024


class ThriftConnection(asyncio.Protocol):
    """One client."""

    def __init__(self, server: ThriftServer) -> None:
        self._server = server
        self._buffer = bytearray()
        self._scanner = MessageScanner(server.max_message_bytes)
        self._task: asyncio.Task[None] | None = None
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

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        self._buffer += data
        if self._task is not None:
            if len(self._buffer) > READ_AHEAD_BYTES and self._transport is not None:
                self._transport.pause_reading()
            return
        self._next_message()

    def _next_message(self) -> None:
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
        self._task = asyncio.get_running_loop().create_task(self._serve(scanner, message))

    async def _serve(self, scanner: MessageScanner, message: bytes) -> None:
        reply = await self._server.dispatcher.serve(scanner.name, scanner.sequence, message, self._session)
        self._task = None
        if self._transport is None:
            return
        if reply is not None:
            self._transport.write(reply)
        if self._server.stopping or scanner.name == "shutdown":
            self.close()
            return
        self._transport.resume_reading()
        if self._buffer:
            self._next_message()

    @property
    def busy(self) -> asyncio.Task[None] | None:
        """The call in progress, if any."""
        return self._task

    def close(self) -> None:
        """Close after what is written has been sent."""
        if self._transport is not None:
            self._transport.close()


class ThriftServer:
    """Listens on one address; `run` serves until `stop`."""

    def __init__(self, dispatcher: Dispatcher, *, max_message_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self.dispatcher = dispatcher
        self.max_message_bytes = max_message_bytes
        self.connections: set[ThriftConnection] = set()
        self.stopping = False
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
        calls = [connection.busy for connection in self.connections if connection.busy is not None]
        for connection in list(self.connections):
            if connection.busy is None:
                connection.close()
        if calls:
            await asyncio.wait(calls, timeout=STOP_WAIT_S)
        for connection in list(self.connections):
            connection.close()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The event loop of the daemon."""
    return uvloop.new_event_loop()


def new_workers(threads: int) -> ThreadPoolExecutor:
    """The threads that run handlers."""
    return ThreadPoolExecutor(max_workers=threads, thread_name_prefix="rpc")
