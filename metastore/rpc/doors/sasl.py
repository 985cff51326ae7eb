"""SASL before the Thrift connection, as Hive's clients speak it: a negotiation, and then frames (wire.md §2.6).

A message of the negotiation is a status, a length of four bytes and a payload. The client sends START with the name of
a mechanism and its first response; we answer OK with a challenge, COMPLETE, or BAD with a sentence and close. Then
everything in both directions comes in frames with their length before them, which say nothing of where a Thrift message
ends. Where the mechanism has agreed upon a seal each frame is sealed: it is kept until it has come whole.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from hive_acid.sasl.frames import BAD, COMPLETE, ERROR, FRAME, MESSAGE, OK, START
from hive_acid.sasl.seals import MOST_FRAME_BYTES, Seal, SealError
from metastore.observe.log import event
from metastore.rpc.config import ServerConfig
from metastore.rpc.doors import door
from metastore.rpc.doors.door import LOG, CostlyPassage, Door, House, Identity, Passage
from metastore.rpc.doors.knocks import spoken
from metastore.rpc.doors.mechanisms.mechanism import Challenge, Mechanism, Proved, Rejected
from metastore.rpc.doors.users.guests import Guests
from metastore.rpc.limits.debts import unfinished

MOST_FIRST_BYTES = 1024
"""Of the name of a mechanism, or of the sentence of who gives up."""
MOST_SEAL_BYTES = 64 * 1024
"""What sealing adds to a frame, and more."""
PIECE_BYTES = 256 * 1024
"""A frame that is larger is opened on a thread."""


class SaslDoor(Door):
    """One client: its negotiation, then its frames."""

    def __init__(
        self,
        inner: asyncio.Protocol,
        house: House,
        mechanisms: Mapping[str, Callable[[str], Mechanism]],
        guests: Guests | None,
    ) -> None:
        """`mechanisms` make what a client from some address speaks to; `guests` have come in by passwords."""
        super().__init__(inner, house)
        self._mechanisms = mechanisms
        self._guests = guests
        self._buffer = bytearray()
        self._mechanism: Mechanism | None = None
        self._is_working = False  # on a thread; what comes meanwhile waits
        self._frame_left = 0
        self._seal: Seal | None = None
        self._passage: Passage | None = None

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        if self._is_open:
            if self._seal is None:
                self._unframe(data)
            else:
                self._buffer += data
                self._open_frames(self._seal)
        elif self._transport is not None and not self._transport.is_closing():
            self._negotiate(data)

    def eof_received(self) -> bool | None:
        """The client sends no more: as if it had closed."""
        return None

    def is_overdue(self, since_s: float, *size_and_config: Any) -> str | None:
        """A sealed frame that does not come whole; before that it has a time limit of its own."""
        if not isinstance(self._passage, _SealedPassage):
            return None
        if self._is_working or not self._passage.is_to_read:  # that is our slowness: its time begins anew
            self._house.debts.settle(self)
            self._house.debts.owe(self, len(self._buffer))
            return None
        size_bytes: int
        config: ServerConfig
        size_bytes, config = size_and_config
        return unfinished(since_s, size_bytes, config)

    # --- the negotiation -----------------------------------------------------------------------

    def _negotiate(self, data: bytes) -> None:
        self._has_spoken = True
        if self._mechanism is None and not self._buffer and data[0] not in (START, BAD, ERROR):
            self.refuse(
                f"it speaks {spoken(data) or 'no SASL'}, and this port asks for SASL (metastore.authentication)"
            )
            return
        self._buffer += data
        self._take_messages()

    def _take_messages(self) -> None:
        """As many as have come, until one needs a thread."""
        while not self._is_working and len(self._buffer) >= MESSAGE.size:
            status, length = MESSAGE.unpack_from(self._buffer)
            if length > (MOST_FIRST_BYTES if self._mechanism is None else self._mechanism.most_bytes):
                self._turn_away(f"a message of {length} bytes", ERROR)
                return
            end = MESSAGE.size + length
            if len(self._buffer) < end:
                break
            payload = bytes(memoryview(self._buffer)[MESSAGE.size : end])
            del self._buffer[:end]
            self._take(status, payload)
            if self._transport is None or self._transport.is_closing():
                return
        self._house.debts.owe(self, len(self._buffer))

    def _take(self, status: int, payload: bytes) -> None:
        if status in (BAD, ERROR):
            self.refuse(f"SASL: it has given up: {payload.decode('utf-8', 'replace')!r}")
        elif self._mechanism is None:
            if status != START:
                self._turn_away(f"status {status} where {START}, the start, is due", ERROR)
                return
            name = payload.decode("ascii", "replace")
            if name not in self._mechanisms:
                served = " and ".join(self._mechanisms)
                self._turn_away(f"the mechanism {name!r} is not served, only {served} is", BAD)
                return
            self._mechanism = self._mechanisms[name](self.client)
        elif status not in (OK, COMPLETE):
            self._turn_away(f"status {status} where {OK} is due", ERROR)
        else:
            self._is_working = True
            assert self._transport is not None
            self._transport.pause_reading()
            self._work(partial(_step, self._mechanism, payload), self._stepped)

    def connection_lost(self, error: Exception | None) -> None:
        """It is gone."""
        if self._guests is not None:
            self._guests.left(self)
        super().connection_lost(error)

    def _stepped(self, outcome: Challenge | Proved | Rejected | ValueError) -> None:
        self._is_working = False
        if self._transport is None or self._transport.is_closing():
            return
        if isinstance(outcome, Challenge):
            self._transport.write(MESSAGE.pack(OK, len(outcome.payload)) + outcome.payload)
            self._transport.resume_reading()
            self._take_messages()
        elif isinstance(outcome, Proved):
            self._come_in(outcome)
        elif isinstance(outcome, Rejected):
            if outcome.is_guess:
                loop = asyncio.get_running_loop()
                loop.call_later(door.WRONG_S, self._turn_away, outcome.reason, BAD, outcome.user)
            else:
                self._turn_away(outcome.reason, BAD, outcome.user)
        else:
            event(LOG, logging.ERROR, "passwords or tickets cannot be checked", reason=outcome)
            self._turn_away("the metastore cannot check who it is now", ERROR)

    def _come_in(self, proved: Proved) -> None:
        transport = self._transport
        assert transport is not None
        user = proved.identity.authenticated
        if self._guests is not None and proved.line is not None:
            self._guests.came(self, user, proved.line)
        transport.write(MESSAGE.pack(COMPLETE, len(proved.payload)) + proved.payload)
        self._note_login(user)
        self._seal = proved.seal
        self._passage = (
            _FramedPassage(transport, proved.identity)
            if proved.seal is None
            else _SealedPassage(transport, proved.identity, proved.seal)
        )
        self._let_in(self._passage)
        transport.resume_reading()
        waiting, self._buffer = bytes(self._buffer), bytearray()
        if waiting:
            self.data_received(waiting)

    def _turn_away(self, reason: str, status: int, user: str | None = None) -> None:
        if self._transport is not None and not self._transport.is_closing():
            words = reason.encode()
            self._transport.write(MESSAGE.pack(status, len(words)) + words)
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
                if len(self._buffer) - at < FRAME.size:
                    break
                (self._frame_left,) = FRAME.unpack_from(self._buffer, at)
                at += FRAME.size
            piece = bytes(memoryview(self._buffer)[at : at + self._frame_left])
            at += len(piece)
            self._frame_left -= len(piece)
            pieces.append(piece)
        del self._buffer[:at]
        found = b"".join(pieces)
        if found:
            self._inner.data_received(found)

    def _open_frames(self, seal: Seal) -> None:
        """Pass on what is in the frames that have come whole."""
        opened: list[bytes] = []
        at = 0
        while not self._is_working and len(self._buffer) - at >= FRAME.size:
            (length,) = FRAME.unpack_from(self._buffer, at)
            if length > self._house.most_message_bytes + MOST_SEAL_BYTES:
                self.refuse(f"a frame of {length} bytes came")
                return
            end = at + FRAME.size + length
            if len(self._buffer) < end:
                break
            frame = bytes(memoryview(self._buffer)[at + FRAME.size : end])
            if length > PIECE_BYTES:
                self._inner.data_received(b"".join(opened))  # what came before it
                opened.clear()
                self._begin_work(seal, frame)
            else:
                found = _opened(seal, frame)
                if isinstance(found, SealError):
                    self._say_that_is_broken(found)
                    return
                opened.append(found)
            at = end
        del self._buffer[:at]
        self._pass_on(b"".join(opened))

    def _pass_on(self, found: bytes) -> None:
        if self._buffer:
            self._house.debts.owe(self, len(self._buffer))
        else:
            self._house.debts.settle(self)
        if found:
            self._inner.data_received(found)

    def _begin_work(self, seal: Seal, frame: bytes) -> None:
        """Open a large frame on a thread; nothing is read or sealed meanwhile."""
        assert isinstance(self._passage, _SealedPassage)
        self._is_working = True
        self._passage.hold()
        self._passage.outer.pause_reading()
        self._work(partial(_opened, seal, frame), self._worked)

    def _worked(self, found: bytes | SealError) -> None:
        self._is_working = False
        if self._transport is None or self._transport.is_closing():
            return
        assert isinstance(self._passage, _SealedPassage)
        assert self._seal is not None
        if isinstance(found, SealError):
            self._say_that_is_broken(found)
            return
        self._passage.let_go()
        self._passage.read_on()
        self._pass_on(found)
        if self._transport is not None and not self._transport.is_closing():
            self._open_frames(self._seal)

    def _say_that_is_broken(self, error: SealError) -> None:
        self.refuse(f"a frame is not as it was sent: {error}")


def _step(mechanism: Mechanism, response: bytes) -> Challenge | Proved | Rejected | ValueError:
    try:
        return mechanism.step(response)
    except ValueError as error:
        return error


def _opened(seal: Seal, frame: bytes) -> bytes | SealError:
    try:
        return seal.opened(frame)
    except SealError as error:
        return error


class _FramedPassage(Passage):
    """What the connection writes gets frames."""

    def write(self, data: Any) -> None:
        """Send it in frames."""
        whole = memoryview(data)
        for at in range(0, len(whole), MOST_FRAME_BYTES):
            piece = whole[at : at + MOST_FRAME_BYTES]
            self.outer.write(b"".join((FRAME.pack(len(piece)), piece)))


class _SealedPassage(CostlyPassage):
    """What the connection writes gets sealed frames."""

    def __init__(self, outer: asyncio.Transport, identity: Identity, seal: Seal) -> None:
        super().__init__(outer, identity, min(seal.most_bytes, PIECE_BYTES), self._seal_and_send)
        self._seal = seal
        self.is_to_read = True

    def pause_reading(self) -> None:
        """Let the client wait."""
        self.is_to_read = False
        super().pause_reading()

    def resume_reading(self) -> None:
        """Read on, unless a frame is being opened."""
        self.is_to_read = True
        self.read_on()

    def read_on(self) -> None:
        """Read on if the connection wants to."""
        if self.is_to_read and not self.is_held:
            super().resume_reading()

    def _seal_and_send(self, piece: bytes | memoryview) -> None:
        frame = self._seal.sealed(bytes(piece))
        self.outer.write(b"".join((FRAME.pack(len(frame)), frame)))
