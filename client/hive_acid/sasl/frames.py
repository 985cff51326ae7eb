"""A socket behind a negotiation of SASL (wire.md §2.6)."""

from __future__ import annotations

import struct
from typing import Any, Protocol

from thriftpy2.transport import TTransportException

from hive_acid.errors import LoginError
from hive_acid.sasl.seals import MOST_FRAME_BYTES, Seal, SealError

START, OK, BAD, ERROR, COMPLETE = 1, 2, 3, 4, 5
MOST_PAYLOAD_BYTES = 64 * 1024
"""Of a message of the negotiation."""
_MOST_SEALED_BYTES = 1 << 30
"""A server of Java's may send a reply in one frame."""
MESSAGE, FRAME = struct.Struct(">BI"), struct.Struct(">I")


class Mechanism(Protocol):
    """Our part in one negotiation."""

    name: str

    def respond(self, challenge: bytes | None) -> bytes:
        """The answer to a challenge, None for the first word. Raises LoginError."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left to say."""

    def end(self, payload: bytes) -> Seal | None:
        """The server has let us in, with this last word; returns what seals frames. Raises LoginError."""


class Plain:
    """A user and a password (RFC 4616)."""

    name = "PLAIN"
    is_complete = True

    def __init__(self, user: str, password: str, other: str = "") -> None:
        """`other` is as whom to act. Raises LoginError for texts that cannot be sent."""
        if "\0" in f"{other}{user}{password}":
            raise LoginError("neither a user nor the password may contain a zero byte")
        self._response = f"{other}\0{user}\0{password}".encode()

    def respond(self, challenge: bytes | None) -> bytes:
        """The user and the password."""
        if challenge is not None:
            raise LoginError("the metastore asks again where PLAIN has one word")
        return self._response

    def end(self, payload: bytes) -> None:
        """Frames are not sealed."""


class SaslSocket:
    """What is written gets a frame, what is read loses it."""

    def __init__(self, carrier: Any, mechanism: Mechanism, who: str) -> None:
        """`carrier` is thriftpy2's, open; errors say that it is `who` who is not let in. Raises LoginError."""
        self._socket = carrier
        self._left = 0
        self._opened = memoryview(b"")
        self._who = who
        response = mechanism.respond(None)
        name = mechanism.name.encode()
        self._socket.write(MESSAGE.pack(START, len(name)) + name + _answer(mechanism, response))
        while True:
            status, length = MESSAGE.unpack(self._exactly(MESSAGE.size))
            payload = self._exactly(min(length, MOST_PAYLOAD_BYTES))
            if status == COMPLETE:
                break
            if status != OK:
                raise LoginError(f"the metastore does not let {who} in: {payload.decode('utf-8', 'replace')}")
            self._socket.write(_answer(mechanism, mechanism.respond(payload)))
        self._seal = mechanism.end(payload)

    def read(self, size: int) -> bytes:
        """Some bytes, at most so many. Raises TTransportException at the end, and for a frame that has been changed."""
        if self._seal is not None:
            return self._read_sealed(self._seal, size)
        while not self._left:
            (self._left,) = FRAME.unpack(self._exactly(FRAME.size))
        found: bytes = self._socket.read(min(size, self._left))
        self._left -= len(found)
        return found

    def write(self, data: bytes) -> None:
        """Send bytes in frames, none of which is too large for the server."""
        most_bytes = MOST_FRAME_BYTES if self._seal is None else self._seal.most_bytes
        for at in range(0, len(data), most_bytes):
            piece = data[at : at + most_bytes]
            if self._seal is not None:
                piece = self._seal.sealed(bytes(piece))
            self._socket.write(FRAME.pack(len(piece)) + piece)

    def flush(self) -> None:
        """Part of what a transport has; every frame is sent when it is written."""

    def _read_sealed(self, seal: Seal, size: int) -> bytes:
        while not self._opened:
            (length,) = FRAME.unpack(self._exactly(FRAME.size))
            if length > _MOST_SEALED_BYTES:
                raise TTransportException(TTransportException.UNKNOWN, f"a frame of {length} bytes")
            try:
                self._opened = memoryview(seal.opened(self._exactly(length)))
            except SealError as error:
                words = f"a frame is not as it was sent: {error}"
                raise TTransportException(TTransportException.UNKNOWN, words) from None
        found = bytes(self._opened[:size])
        self._opened = self._opened[size:]
        return found

    def _exactly(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            found += self._socket.read(min(size - len(found), MOST_FRAME_BYTES))
        return bytes(found)


def _answer(mechanism: Mechanism, response: bytes) -> bytes:
    # A password is the whole of PLAIN, and servers take it with either status.
    status = COMPLETE if mechanism.is_complete and mechanism.name != Plain.name else OK
    return MESSAGE.pack(status, len(response)) + response
