"""Thrift over HTTP: each message is the body of a POST, and its answer that of the reply (wire.md §2.7)."""

from __future__ import annotations

import base64
import io
from http.client import HTTPException, HTTPResponse
from typing import Any

from thriftpy2.transport import TTransportException

from hive_acid.errors import LoginError
from hive_acid.login import Login, Token, check_secrecy

ACTOR = "x-actor-username"
"""The header in which a client names its user where nobody is asked, as Hive's does."""
_MOST_WORDS_BYTES = 2000


class HttpSocket:
    """A socket to a server of HTTP: what is written before a flush is one request."""

    def __init__(
        self, socket: Any, host: str, path: str, user: str | None, login: Login | Token | None, *, is_encrypted: bool
    ) -> None:
        """`socket` is thriftpy2's, open; `user` is as whom we act, if not as who logs in.

        Raises AddressError if what we show would be readable on the way.
        """
        if login is not None:
            check_secrecy(socket.sock, login, is_encrypted)
        self._socket = socket
        self._request = f"POST {path} HTTP/1.1\r\nHost: {host}\r\n"
        self._user = user
        self._login = login
        self._written: list[bytes] = []
        self._read = io.BufferedReader(socket.sock.makefile("rb", buffering=0))
        self._reply: HTTPResponse | None = None

    def write(self, data: bytes) -> None:
        """A part of a message."""
        self._written.append(data)

    def flush(self) -> None:
        """Send what was written as a request."""
        body, self._written = b"".join(self._written), []
        if body:
            headers = {
                "Content-Type": "application/x-thrift",
                "Accept": "application/x-thrift",
                "Content-Length": str(len(body)),
                **self._shown(),
            }
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            self._socket.write(f"{self._request}{lines}\r\n".encode() + body)

    def read(self, size: int) -> bytes:
        """Some bytes of the next answer, at most so many.

        Raises LoginError if we are not let in, TTransportException for another answer than a message.
        """
        try:
            while True:
                if self._reply is None:
                    self._reply = self._next_reply()
                if found := self._reply.read(size):
                    return found
                self._reply = None
        except HTTPException as error:
            raise TTransportException(TTransportException.END_OF_FILE, f"it answers with no HTTP: {error!r}") from None

    def _next_reply(self) -> HTTPResponse:
        reply = HTTPResponse(_Kept(self._read))  # type: ignore[arg-type]
        reply.begin()
        if reply.status == 200:
            return reply
        words = reply.read(_MOST_WORDS_BYTES).decode("utf-8", "replace").strip() or reply.reason
        if reply.status in (401, 403):
            raise LoginError(f"the metastore does not let us in: {words}")
        raise TTransportException(TTransportException.UNKNOWN, f"it answers HTTP {reply.status}: {words}")

    def _shown(self) -> dict[str, str]:
        acting = {ACTOR: self._user} if self._user and self._user.isprintable() else {}
        if isinstance(self._login, Token):
            return acting | {"Authorization": f"Bearer {self._login.text()}"}
        if self._login is not None:
            pair = f"{self._login.user}:{self._login.password}".encode()
            return acting | {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
        return acting


class _Kept:
    """What `HTTPResponse` takes for a socket; the stream stays open, since answers may wait in it."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream

    def makefile(self, *_: object) -> Any:
        return _Open(self._stream)


class _Open(io.BufferedIOBase):
    """A stream that is not closed with its reader."""

    def __init__(self, stream: io.BufferedReader) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        return self._stream.read(-1 if size is None else size)

    def read1(self, size: int = -1) -> bytes:
        return self._stream.read1(size)

    def readinto(self, buffer: Any) -> int:
        return self._stream.readinto(buffer)

    def readline(self, size: int | None = -1) -> bytes:
        return self._stream.readline(-1 if size is None else size)

    def peek(self, size: int = 0) -> bytes:
        return self._stream.peek(size)
