"""Delegation tokens in the form that Hadoop gives them: who they are for, and a password (wire.md §2.8)."""

from __future__ import annotations

import base64
import binascii
import struct
from typing import NamedTuple

KIND = b"HIVE_DELEGATION_TOKEN"
_VERSION = 0
MOST_BYTES = 64 * 1024


class Identifier(NamedTuple):
    """What a token says of itself."""

    owner: str
    renewer: str
    real_user: str
    issued_ms: int
    max_ms: int
    sequence: int
    key_id: int

    def __bytes__(self) -> bytes:
        texts = b"".join(_text(one.encode()) for one in (self.owner, self.renewer, self.real_user))
        numbers = b"".join(map(_number, (self.issued_ms, self.max_ms, self.sequence, self.key_id)))
        return bytes([_VERSION]) + texts + numbers

    @classmethod
    def parse(cls, data: bytes) -> Identifier:
        """Of its bytes. Raises ValueError."""
        reader = Reader(data)
        if reader.exactly(1) != bytes([_VERSION]):
            raise ValueError("it is of another version")
        owner, renewer, real_user = (reader.text().decode() for _ in range(3))
        numbers = [reader.number() for _ in range(4)]
        reader.end()
        return cls(owner, renewer, real_user, *numbers)


class Secret(NamedTuple):
    """A token: its identifier, and the password that proves it."""

    identifier: bytes
    password: bytes

    def __str__(self) -> str:
        """As it is sent, and handed on."""
        data = b"".join(map(_text, (self.identifier, self.password, KIND, b"")))
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    @classmethod
    def parse(cls, text: str) -> Secret:
        """Of its text. Raises ValueError."""
        if len(text) > MOST_BYTES:
            raise ValueError("it is too long")
        try:
            data = base64.b64decode(text.strip() + "=" * (-len(text.strip()) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise ValueError("it is not of base64") from None
        reader = Reader(data)
        identifier, password = reader.text(), reader.text()
        reader.text()  # its kind
        reader.text()  # its service, which is the client's
        reader.end()
        return cls(identifier, password)

    @property
    def user_name(self) -> str:
        """By which a client calls itself."""
        return base64.b64encode(self.identifier).decode()

    @property
    def password_text(self) -> str:
        """What it shows that it knows."""
        return base64.b64encode(self.password).decode()


def _number(value: int) -> bytes:
    """Hadoop's variable number: one byte, or how many follow, and these."""
    if -112 <= value <= 127:
        return struct.pack(">b", value)
    size = (value.bit_length() + 7) // 8
    return struct.pack(">b", -112 - size) + value.to_bytes(size)


def _text(data: bytes) -> bytes:
    return _number(len(data)) + data


class Reader:
    """Bytes from their beginning on. All raise ValueError where they end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._data)

    def exactly(self, size: int) -> bytes:
        """So many."""
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise ValueError("it is cut")
        found, self._at = self._data[self._at : end], end
        return found

    def number(self) -> int:
        """A variable number of Hadoop's that is not negative."""
        (first,) = struct.unpack(">b", self.exactly(1))
        if first >= -112:
            return int(first)
        if first < -120:
            raise ValueError("it has a negative number")
        return int.from_bytes(self.exactly(-112 - first))

    def text(self) -> bytes:
        """As many as a number before them says."""
        return self.exactly(self.number())

    def end(self) -> None:
        """See that nothing follows."""
        if not self.is_at_end:
            raise ValueError("more follows")
