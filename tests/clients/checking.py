"""A proxy between clients and the server that reads every reply as Java would: with all its required fields.

Java breaks the connection over a required field that is absent (wire.md §3.6); thriftpy2, which writes
our replies and reads them in most tests, does not notice.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.thrift import TMessageType, TType
from thriftpy2.transport import TCyMemoryBuffer

from hive_acid.wire import service

_LISTS = (TType.LIST, TType.SET)


class CheckingProxy:
    """Passes bytes on; what was wrong in replies is in `problems`, which methods were answered in `methods`.

    Clients have one call in flight, so the bytes between two requests are one reply.
    """

    def __init__(self, uri: str) -> None:
        address = urlsplit(uri)
        self._server = (str(address.hostname), int(address.port or 0))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.uri = f"thrift://127.0.0.1:{self._listener.getsockname()[1]}"
        self.problems: list[str] = []
        self.methods: set[str] = set()
        self._pumps: list[threading.Thread] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def join(self) -> None:
        """Wait until the connections so far have ended."""
        for thread in self._pumps:
            thread.join(10)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                for sock in (client, server):
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                reply = bytearray()
                for source, sink, takes_replies in ((client, server, False), (server, client, True)):
                    thread = threading.Thread(target=self._pump, args=(source, sink, reply, takes_replies), daemon=True)
                    thread.start()
                    self._pumps.append(thread)

    def _pump(self, source: socket.socket, sink: socket.socket, reply: bytearray, takes_replies: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if takes_replies:
                    reply += data
                else:
                    self._take(reply)
                sink.sendall(data)
        if not takes_replies:
            self._take(reply)
        for sock in (source, sink):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        if takes_replies:
            source.close()
            sink.close()

    def _take(self, reply: bytearray) -> None:
        if reply:
            message = bytes(reply)
            reply.clear()
            try:
                self._check(message)
            except Exception as error:
                self.problems.append(f"not a reply: {error!r} {message[:80]!r}")

    def _check(self, message: bytes) -> None:
        protocol = TCyBinaryProtocol(TCyMemoryBuffer(message))
        method, kind, _ = protocol.read_message_begin()
        self.methods.add(method)
        if kind != TMessageType.REPLY:
            return
        result = getattr(service, f"{method}_result")()
        protocol.read_struct(result)
        found = [name for _, name, *_ in type(result).thrift_spec.values() if getattr(result, name) is not None]
        if not found and 0 in type(result).thrift_spec:
            self.problems.append(f"{method} has neither result nor error")
        self.problems.extend(_missing(result, method))


@contextmanager
def checked(uri: str) -> Iterator[CheckingProxy]:
    """A proxy of the server at `uri`, for as long as the context."""
    proxy = CheckingProxy(uri)
    try:
        yield proxy
    finally:
        proxy.close()


def _missing(struct: Any, path: str) -> Iterator[str]:
    for number, (kind, name, *inner, is_required) in type(struct).thrift_spec.items():
        if type(number) is not int:  # written a second time in another form
            continue
        value = getattr(struct, name)
        if value is None:
            if is_required:
                yield f"{path}.{name} is required and absent"
        else:
            yield from _missing_in(kind, inner[0] if inner else None, value, f"{path}.{name}")


def _missing_in(kind: int, inner: Any, value: Any, path: str) -> Iterator[str]:
    if kind == TType.STRING and isinstance(value, bytes):
        yield f"{path} is not UTF-8"
    elif kind == TType.STRUCT:
        yield from _missing(value, path)
    elif kind in _LISTS:
        item = inner if isinstance(inner, tuple) else (inner, None)
        for one in value:
            yield from _missing_in(*item, one, path)  # type: ignore[call-arg]
    elif kind == TType.MAP:
        key_item, item = (one if isinstance(one, tuple) else (one, None) for one in inner)
        for key, one in value.items():
            yield from _missing_in(*key_item, key, path)  # type: ignore[call-arg]
            yield from _missing_in(*item, one, path)  # type: ignore[call-arg]
