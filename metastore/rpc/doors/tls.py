"""TLS before the Thrift connection.

A handshake takes a millisecond of arithmetic, as long as dozens of calls: it is done on threads of the doors, clients
in turn, and the event loop only carries its bytes. What is said afterwards is decrypted and encrypted on the event
loop, a piece at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Any

from metastore.rpc.doors.certificates import Certificates
from metastore.rpc.doors.door import CostlyPassage, Door, House, Identity
from metastore.rpc.doors.knocks import HANDSHAKE, spoken

MOST_HANDSHAKE_BYTES = 64 * 1024
"""Of a client's part: its certificates are the largest thing in it."""
PIECE_BYTES = 256 * 1024
"""What is encrypted in one turn of the event loop, within a fraction of a millisecond."""


class TlsDoor(Door):
    """One client: its handshake, then its bytes."""

    def __init__(
        self, inner: asyncio.Protocol, house: House, certificates: Certificates, *, names_user: bool = False
    ) -> None:
        """`names_user` says that the certificate of the client tells who has come in."""
        super().__init__(inner, house)
        self._certificates = certificates
        self._names_user = names_user
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None
        self._arrived = bytearray()  # during the handshake, whose thread has the other buffers
        self._taken = 0
        self._is_shaking = False

    def data_received(self, data: bytes) -> None:
        """Bytes have come, encrypted ones."""
        if self._is_open:
            self._incoming.write(data)
            self._decrypt()
        elif self._transport is not None and not self._transport.is_closing():
            self._shake_on(data)

    def eof_received(self) -> bool | None:
        """The client sends no more: as if it had closed."""
        return None

    def _shake_on(self, data: bytes) -> None:
        self._has_spoken = True
        if not self._taken and data[0] != HANDSHAKE:
            self.refuse(f"it speaks {spoken(data) or 'no TLS'}, and this port speaks TLS (metastore.use.SSL)")
            return
        self._taken += len(data)
        if self._taken > MOST_HANDSHAKE_BYTES:
            self.refuse(f"more than {MOST_HANDSHAKE_BYTES} bytes came before the end of the handshake")
            return
        self._house.debts.owe(self, self._taken)
        self._arrived += data
        if not self._is_shaking:
            self._next_step()

    def _next_step(self) -> None:
        self._incoming.write(self._arrived)
        self._arrived.clear()
        self._is_shaking = True
        self._work(self._step, self._stepped)

    def _step(self) -> str | None:
        """One step of the handshake, on a thread; None when it is done, WAITING if the client's turn has come."""
        try:
            if self._tls is None:
                context = self._certificates.context()
                self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return _WAITING
        except (ssl.SSLError, ValueError) as error:
            return f"the TLS handshake has failed: {_words(error)}"
        return None

    def _stepped(self, outcome: str | None) -> None:
        self._is_shaking = False
        if self._transport is None or self._transport.is_closing():
            return
        self._flush()
        if outcome is None:
            assert self._tls is not None
            identity = None
            if self._names_user:
                user = _common_name(self._tls)
                if user is None:
                    self.refuse("its certificate has no common name, or several")
                    return
                identity = Identity(user, user)
                self._note_login(user)
            self._let_in(CostlyPassage(self._transport, identity, PIECE_BYTES, self._encrypt, self._say_goodbye))
            if self._arrived:
                self._incoming.write(self._arrived)
                self._arrived.clear()
            self._decrypt()
        elif outcome is not _WAITING:
            self.refuse(outcome)
        elif self._arrived:
            self._next_step()

    def _decrypt(self) -> None:
        """Pass on what has come whole."""
        assert self._tls is not None
        pieces = []
        is_over = False
        try:
            while self._incoming.pending or self._tls.pending():
                piece = self._tls.read(PIECE_BYTES)
                if not piece:
                    is_over = True
                    break
                pieces.append(piece)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            is_over = True
        except ssl.SSLError as error:
            self._flush()
            self.refuse(f"what came is not TLS: {_words(error)}")
            return
        self._flush()
        if pieces:
            self._inner.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if is_over and self._transport is not None:
            self._transport.close()

    def _encrypt(self, piece: bytes | memoryview) -> None:
        """Write a piece of what the connection says."""
        assert self._tls is not None
        self._tls.write(piece)
        self._flush()

    def _say_goodbye(self) -> None:
        """Write that nothing more comes."""
        assert self._tls is not None
        with contextlib.suppress(ssl.SSLError):  # the client has not said the same yet
            self._tls.unwrap()
        self._flush()

    def _flush(self) -> None:
        """Send what TLS has written."""
        if self._outgoing.pending and self._transport is not None:
            self._transport.write(self._outgoing.read())


_WAITING = "waiting"


def _common_name(tls: ssl.SSLObject) -> str | None:
    """The user whom a client's certificate names, which was looked at in the handshake; None for none or several."""
    subject: Any = (tls.getpeercert() or {}).get("subject", ())
    names = [value for part in subject for name, value in part if name == "commonName"]
    return names[0] if len(names) == 1 and names[0] and names[0].isprintable() else None


def _words(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    return str(reason).replace("_", " ").lower() if reason else str(error)
