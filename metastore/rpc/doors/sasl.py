"""SASL before the Thrift connection, as Hive's clients speak it: a negotiation, and then frames (wire.md §2.6).

A message of the negotiation is a status, a length of four bytes and a payload. The client sends START with the name of
a mechanism and its first response; we answer COMPLETE, or BAD with a sentence and close. Then everything in both
directions comes in frames with their length before them, which say nothing of where a Thrift message ends.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from functools import partial
from typing import Any, NamedTuple

from metastore.observe.log import event
from metastore.rpc.doors import door
from metastore.rpc.doors.door import IDENTITY, LOG, Door, House, Identity, Passage
from metastore.rpc.doors.knocks import spoken
from metastore.rpc.doors.users.guests import Guests
from metastore.rpc.doors.users.passwords import LONGEST, Bound, Hashed
from metastore.rpc.doors.users.proxies import Proxies

START, OK, BAD, ERROR, COMPLETE = 1, 2, 3, 4, 5
PLAIN = "PLAIN"
MOST_PAYLOAD_BYTES = 3 * LONGEST + 2
MOST_FRAME_BYTES = 1 << 20
"""Of what we send: newer clients of Java's take 16 MB at most."""
_message = struct.Struct(">BI")
_frame = struct.Struct(">I")


class _Checked(NamedTuple):
    line: Hashed | Bound | None = None
    refusal: str | None = None
    trouble: str | None = None
    """Why it cannot be said."""


class SaslDoor(Door):
    """One client: its negotiation, then its frames."""

    def __init__(self, inner: asyncio.Protocol, house: House, guests: Guests, proxies: Proxies) -> None:
        super().__init__(inner, house)
        self._guests = guests
        self._proxies = proxies
        self._buffer = bytearray()
        self._mechanism: str | None = None
        self._is_checking = False
        self._frame_left = 0

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        if self._is_open:
            self._unframe(data)
        elif self._transport is not None and not self._transport.is_closing():
            self._negotiate(data)

    def eof_received(self) -> bool | None:
        """The client sends no more: as if it had closed."""
        return None

    # --- the negotiation -----------------------------------------------------------------------

    def _negotiate(self, data: bytes) -> None:
        self._has_spoken = True
        if self._mechanism is None and not self._buffer and data[0] != START:
            self.refuse(
                f"it speaks {spoken(data) or 'no SASL'}, and this port asks for SASL (metastore.authentication)"
            )
            return
        self._buffer += data
        while not self._is_checking and len(self._buffer) >= _message.size:
            status, length = _message.unpack_from(self._buffer)
            if length > MOST_PAYLOAD_BYTES:
                self._turn_away(f"a message of {length} bytes", ERROR)
                return
            end = _message.size + length
            if len(self._buffer) < end:
                break
            payload = bytes(memoryview(self._buffer)[_message.size : end])
            del self._buffer[:end]
            self._take(status, payload)
            if self._transport is None or self._transport.is_closing():
                return
        self._house.debts.owe(self, len(self._buffer))

    def _take(self, status: int, payload: bytes) -> None:
        if self._mechanism is None:
            if status != START:
                self._turn_away(f"status {status} where {START}, the start, is due", ERROR)
                return
            self._mechanism = payload.decode("ascii", "replace")
            if self._mechanism != PLAIN:
                self._turn_away(f"the mechanism {self._mechanism!r} is not served, only {PLAIN} is", BAD)
        elif status not in (OK, COMPLETE):
            self._turn_away(f"status {status} where {OK} is due", ERROR)
        else:
            self._check(payload)

    def _check(self, response: bytes) -> None:
        try:
            other, user, password = response.split(b"\0")
            name = user.decode()
        except ValueError:
            self._turn_away("the response is not the user and the password of PLAIN", BAD)
            return
        as_whom = other.decode("utf-8", "replace") or name
        self._is_checking = True
        assert self._transport is not None
        self._transport.pause_reading()
        self._work(partial(self._admitted, name, password, as_whom), partial(self._checked, name, as_whom))

    def connection_lost(self, error: Exception | None) -> None:
        """It is gone."""
        self._guests.left(self)
        super().connection_lost(error)

    def _admitted(self, user: str, password: bytes, as_whom: str) -> _Checked:
        """Whether the password is right, on a thread."""
        try:
            line = self._guests.passwords.admits(user, password)
        except ValueError as error:
            return _Checked(trouble=str(error))
        return _Checked(line, None if line is None else self._proxies.refusal(user, as_whom, self.client))

    def _checked(self, user: str, as_whom: str, found: _Checked) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if found.refusal is not None:
            self._turn_away(found.refusal, BAD, user)
        elif found.line is not None:
            self._guests.came(self, user, found.line)
            self._transport.write(_message.pack(COMPLETE, 0))
            self._note_login(user)
            self._let_in(_SaslTransport(self._transport, Identity(as_whom, user)))
            self._transport.resume_reading()
            waiting, self._buffer = bytes(self._buffer), bytearray()
            if waiting:
                self._unframe(waiting)
        elif found.trouble is None:
            words = f"no user {user!r} with this password"
            asyncio.get_running_loop().call_later(door.WRONG_S, self._turn_away, words, BAD, user)
        else:
            event(LOG, logging.ERROR, "passwords cannot be checked", reason=found.trouble)
            self._turn_away("the metastore cannot check passwords now", ERROR, user)

    def _turn_away(self, reason: str, status: int, user: str | None = None) -> None:
        if self._transport is not None and not self._transport.is_closing():
            words = reason.encode()
            self._transport.write(_message.pack(status, len(words)) + words)
            self.refuse(f"SASL: {reason}", user)

    # --- the frames ----------------------------------------------------------------------------

    def _unframe(self, data: bytes) -> None:
        """Pass on what is in the frames, as far as it has come."""
        if self._frame_left == len(data) and not self._buffer:
            self._frame_left = 0
            self._inner.data_received(data)
            return
        self._buffer += data
        at, pieces = 0, []
        while at < len(self._buffer):
            if not self._frame_left:
                if len(self._buffer) - at < _frame.size:
                    break
                (self._frame_left,) = _frame.unpack_from(self._buffer, at)
                at += _frame.size
            piece = bytes(memoryview(self._buffer)[at : at + self._frame_left])
            at += len(piece)
            self._frame_left -= len(piece)
            pieces.append(piece)
        del self._buffer[:at]
        found = b"".join(pieces)
        if found:
            self._inner.data_received(found)


class _SaslTransport(Passage):
    """What the connection writes gets frames."""

    def __init__(self, outer: asyncio.Transport, identity: Identity) -> None:
        super().__init__(outer)
        self._identity = identity

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As of the transport before, and who has come in."""
        return self._identity if name == IDENTITY else super().get_extra_info(name, default)

    def write(self, data: Any) -> None:
        """Send it in frames."""
        whole = memoryview(data)
        for at in range(0, len(whole), MOST_FRAME_BYTES):
            piece = whole[at : at + MOST_FRAME_BYTES]
            self.outer.write(b"".join((_frame.pack(len(piece)), piece)))
