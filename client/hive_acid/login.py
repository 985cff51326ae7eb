"""Who we are to a metastore that asks: a password, by SASL PLAIN and then frames (wire.md §2.6), or a token."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hive_acid.errors import AddressError, LoginError

PASSWORD_FILE = "HIVE_ACID_PASSWORD_FILE"
"""The variable of the environment that names a file with the password."""
TOKEN_FILE = "HIVE_ACID_TOKEN_FILE"
"""The variable that names a file with a token, for an address that begins with http."""
IN_CLEAR = "HIVE_ACID_PASSWORD_IN_CLEAR"
"""``true`` there lets a password or a token go to another machine without TLS."""
_START, _OK, _COMPLETE = 1, 2, 5
_MOST_BYTES = 64 * 1024
_MOST_FRAME_BYTES = 1 << 20
_message = struct.Struct(">BI")
_frame = struct.Struct(">I")


@dataclass(frozen=True)
class Login:
    """Who we are, and how we prove it."""

    user: str
    password: str = field(repr=False)
    in_clear: bool = False
    """Whether the password may go to another machine without TLS, for everybody on the way to read."""

    @classmethod
    def from_environment(cls, user: str, environ: Mapping[str, str] = os.environ) -> Login:
        """A user whose password is in the file that `PASSWORD_FILE` names. Raises AddressError if there is none."""
        file = environ.get(PASSWORD_FILE)
        if not file:
            raise AddressError(f"{user} is to log in: name a file with the password in {PASSWORD_FILE}, or give login=")
        try:
            password = Path(file).read_text(encoding="utf-8").strip("\r\n")
        except (OSError, ValueError) as error:
            raise AddressError(
                f"cannot read the password in {file}: {getattr(error, 'strerror', None) or error}"
            ) from None
        return cls(user, password, environ.get(IN_CLEAR, "").lower() == "true")


@dataclass(frozen=True)
class Token:
    """A file with a token (JWT) that says who we are; it is read for each request, since tokens end."""

    file: str
    in_clear: bool = False
    """Whether the token may go to another machine without TLS, for everybody on the way to read."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Token | None:
        """The one that `TOKEN_FILE` names, if it names one."""
        file = environ.get(TOKEN_FILE)
        return cls(file, environ.get(IN_CLEAR, "").lower() == "true") if file else None

    def text(self) -> str:
        """The token as it is now. Raises AddressError if the file cannot be read or holds none."""
        try:
            found = Path(self.file).read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            raise AddressError(
                f"cannot read the token in {self.file}: {getattr(error, 'strerror', None) or error}"
            ) from None
        if not found or not found.isprintable() or " " in found:
            raise AddressError(f"{self.file} holds no token: it is one word")
        return found


def check_secrecy(sock: socket.socket, login: Login | Token, is_encrypted: bool) -> None:
    """Raises AddressError if others could read on the way what we show."""
    if not (is_encrypted or login.in_clear or is_loopback(sock.getpeername()[0])):
        raise AddressError(
            f"the {'password' if isinstance(login, Login) else 'token'} would go to another machine for everybody on "
            f"the way to read: give thrift+tls:// or https://, or in_clear=True or {IN_CLEAR}=true"
        )


class SaslSocket:
    """A socket behind the negotiation: what is written gets a frame, what is read loses it."""

    def __init__(self, carrier: Any, login: Login, acts_as: str | None = None, *, is_encrypted: bool) -> None:
        """`carrier` is thriftpy2's, open. Raises LoginError if we are not let in, AddressError if we must not ask."""
        self._socket = carrier
        self._left = 0
        check_secrecy(carrier.sock, login, is_encrypted)
        other = acts_as if acts_as and acts_as != login.user else ""
        if "\0" in f"{other}{login.user}{login.password}":
            raise LoginError("neither a user nor the password may contain a zero byte")
        response = f"{other}\0{login.user}\0{login.password}".encode()
        self._socket.write(_message.pack(_START, 5) + b"PLAIN" + _message.pack(_OK, len(response)) + response)
        status, length = _message.unpack(self._exactly(_message.size))
        words = self._exactly(min(length, _MOST_BYTES)).decode("utf-8", "replace")
        if status != _COMPLETE:
            raise LoginError(f"the metastore does not let {login.user} in: {words}")

    def read(self, size: int) -> bytes:
        """Some bytes, at most so many. Raises TTransportException at the end."""
        while not self._left:
            (self._left,) = _frame.unpack(self._exactly(_frame.size))
        found: bytes = self._socket.read(min(size, self._left))
        self._left -= len(found)
        return found

    def write(self, data: bytes) -> None:
        """Send bytes in frames, none of which is too large for a server of Java's."""
        for at in range(0, len(data), _MOST_FRAME_BYTES):
            piece = data[at : at + _MOST_FRAME_BYTES]
            self._socket.write(_frame.pack(len(piece)) + piece)

    def flush(self) -> None:
        """Part of what a transport has; every frame is sent when it is written."""

    def _exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            found += self._socket.read(size - len(found))
        return found


def is_loopback(address: str) -> bool:
    """Whether a numeric address is reached from this machine alone."""
    return parsed_address(address).is_loopback


def parsed_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """A numeric address as a socket tells it; one of IPv4 within IPv6 is that of IPv4. Raises ValueError."""
    found = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped
    return found
