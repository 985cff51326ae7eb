"""Thrift over HTTP: each message is the body of a POST, its reply that of the answer, as Hive 4's clients have it.

A request says itself who makes it, so that proxies may send those of many clients over one connection: what one has
said of itself is forgotten with its request.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from typing import Any, Protocol

import h11

from metastore.observe.log import event
from metastore.rpc.doors import door
from metastore.rpc.doors.door import IDENTITY, LOG, PATIENCE_S, REPLY_END, Door, House, Identity, Passage
from metastore.rpc.doors.knocks import spoken
from metastore.rpc.doors.reception import FORWARDED_FOR, Reception, Refused, Visitor, address_of

MOST_HEADER_BYTES = 64 * 1024
READ_AHEAD_BYTES = 64 * 1024
TYPE = "application/x-thrift"


class Served(Protocol):
    """A connection whose requests say who makes them."""

    def begin_session(self, peer: str, client: str, user: str | None, authenticated: str | None) -> None:
        """The next message is by `user`, and the one who has come in is `authenticated`, if that was asked."""


class HttpDoor(Door):
    """One client, or one connection of a proxy."""

    def __init__(self, inner: Any, house: House, reception: Reception) -> None:
        """`inner` is an `asyncio.Protocol` that is `Served`."""
        super().__init__(inner, house)
        self._served: Served = inner
        self._reception = reception
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEADER_BYTES)
        self._is_believed = False  # it is a proxy's
        self._come_in: str | None = None  # by a certificate
        self._known: tuple[tuple[str, ...], Visitor] | None = None  # what was shown last and by whom
        self._is_checking = False
        self._is_asked = False  # a request is in the connection's hands
        self._has_body = False
        self._is_whole = False
        self._piece = b""  # of the body, kept back until it is known whether it is the last
        self._reply = _Reply()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        super().connection_made(transport)
        self._is_believed = self._reception.believes(self.client)
        identity: Identity | None = transport.get_extra_info(IDENTITY)
        self._come_in = None if identity is None else identity.user

    def connection_lost(self, error: Exception | None) -> None:
        """It is gone."""
        if self._reception.guests is not None:
            self._reception.guests.left(self)
        super().connection_lost(error)

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        if self._transport is None or self._transport.is_closing():
            return
        if not self._has_spoken:
            self._has_spoken = True
            if (what := spoken(data)) not in ("HTTP", ""):
                self.refuse(f"it speaks {what}, and this port speaks HTTP (metastore.server.thrift.transport.mode)")
                return
        self._http.receive_data(data)
        self._go_on()
        if len(self._http.trailing_data[0]) > READ_AHEAD_BYTES and self._transport is not None:
            self._transport.pause_reading()  # until its reply is written

    def eof_received(self) -> bool | None:
        """The client sends no more: as if it had closed."""
        return None

    def is_overdue(self, since_s: float, *_: object) -> str | None:
        """Once it has come in, the header of each request has to come within the same time."""
        if self._is_open and time.monotonic() - since_s > PATIENCE_S:
            return f"the header of a request has not come whole within {PATIENCE_S:g} s"
        return None

    # --- a request -----------------------------------------------------------------------------

    def _go_on(self) -> None:
        while not self._is_checking and self._transport is not None and not self._transport.is_closing():
            try:
                found = self._http.next_event()
            except h11.RemoteProtocolError as error:
                self._answer(400, f"it is no HTTP: {error}")
                return
            if found is h11.NEED_DATA or found is h11.PAUSED:
                self._pass_on()
                if found is h11.NEED_DATA and not self._is_asked and self._http.trailing_data[0]:
                    self._house.debts.owe(self, len(self._http.trailing_data[0]))
                return
            if isinstance(found, h11.Request):
                self._house.debts.settle(self)
                self._begin(found)
            elif isinstance(found, h11.Data):
                self._pass_on()
                self._piece = bytes(found.data)
            elif isinstance(found, h11.EndOfMessage):
                self._is_whole = True
                if not (self._has_body or self._piece):
                    self._answer(400, "the request has no message")
                    return
                self._pass_on()
                self._end()
            elif isinstance(found, h11.ConnectionClosed):
                self.close()

    def _begin(self, request: h11.Request) -> None:
        path = request.target.decode("ascii", "replace").partition("?")[0]
        if request.method != b"POST":
            self._answer(405, "this is a metastore: a Thrift message is POSTed to it", ("allow", "POST"))
        elif not f"{path}/".startswith(self._reception.path):  # Hive's client asks for what lies below: /metastore/*
            self._answer(404, f"the metastore is at {self._reception.path}, not at {path[:200]}")
        else:
            headers = {name.decode("ascii"): value.decode("utf-8", "replace") for name, value in request.headers}
            self._look(headers)

    def _look(self, headers: dict[str, str]) -> None:
        found = self._reception.at_once(headers, self._is_believed, self._come_in)
        if found is None and self._known is not None and self._known[0] == self._reception.shown(headers):
            visitor = self._known[1]
            found = visitor if time.time() < visitor.until_s else None
        if found is not None:
            self._looked(headers, found)
            return
        self._is_checking = True
        self._work(partial(self._looked_at, headers), partial(self._looked, headers))

    def _looked_at(self, headers: dict[str, str]) -> Visitor | Refused | None:
        """On a thread; None if it cannot be said now, which the log says."""
        try:
            return self._reception.looked_at(headers, self._is_believed, self._come_in, self._from(headers)[1])
        except ValueError as error:
            event(LOG, logging.ERROR, "passwords cannot be checked", reason=error)
            return None

    def _looked(self, headers: dict[str, str], found: Visitor | Refused | None) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if isinstance(found, Visitor):
            self._admit(headers, found)
        elif found is None:
            self._answer(503, "the metastore cannot check who you are now")
        elif found.is_wrong:
            asyncio.get_running_loop().call_later(door.WRONG_S, self._turn_away, found)
        else:
            self._turn_away(found)

    def _turn_away(self, refused: Refused) -> None:
        challenge = self._reception.challenge
        self._answer(401, refused.reason, *([("www-authenticate", challenge)] if challenge else []), user=refused.user)

    def _admit(self, headers: dict[str, str], visitor: Visitor) -> None:
        assert self._transport is not None
        was_checking, self._is_checking = self._is_checking, False
        if was_checking:
            self._known = self._reception.shown(headers), visitor
            if visitor.line is not None and self._reception.guests is not None and visitor.authenticated is not None:
                self._reception.guests.came(self, visitor.authenticated, visitor.line)
            self._note_login(visitor.authenticated)
        if not self._is_open:
            self._let_in(_HttpTransport(self._transport, self))
        self._served.begin_session(*self._from(headers), visitor.user, visitor.authenticated)
        self._is_asked = True
        if self._http.they_are_waiting_for_100_continue:
            self._send(h11.InformationalResponse(status_code=100, headers=[]))
        if was_checking:
            self._transport.resume_reading()
            self._go_on()

    def _from(self, headers: dict[str, str]) -> tuple[str, str]:
        """The client for the log, and its address: of a proxy that is believed, the one that it names."""
        if self._is_believed and (before := address_of(headers.get(FORWARDED_FOR, "").rpartition(",")[2])):
            return f"{before} by {self.peer}", before
        return self.peer, self.client

    def _pass_on(self) -> None:
        """Give the connection the piece of the body that was kept back."""
        piece, self._piece = self._piece, b""
        if piece:
            self._has_body = True
            self._inner.data_received(piece)

    # --- a reply -------------------------------------------------------------------------------

    def write(self, part: bytes) -> None:
        """A part of the connection's reply: the first is kept back until it is known whether it is all."""
        reply = self._reply
        if not self._is_asked or reply.is_over:
            self._tell(logging.WARNING, "more than one message came in a request")
            self.abort()
        elif reply.has_begun:
            self._send(h11.Data(part))
        elif reply.first is None:
            reply.first = part
        else:
            reply.has_begun = True
            self._respond()
            self._send(h11.Data(reply.first))
            self._send(h11.Data(part))
            reply.first = None

    def reply_ends(self, is_last: bool = False) -> None:
        """The reply is whole; after the last one the connection is closed."""
        reply = self._reply
        if not self._is_asked or reply.is_over:
            return
        reply.is_over = True
        if not reply.has_begun:
            whole = reply.first or b""
            self._respond(("content-length", str(len(whole))), is_last=is_last)
            self._send(h11.Data(whole))
        self._send(h11.EndOfMessage())
        reply.first = None
        self._end()

    @property
    def held_bytes(self) -> int:
        """What is kept back of a reply."""
        return len(self._reply.first or b"")

    def close_after_reply(self) -> None:
        """The connection wants to close; if it says nothing to a request, its message was none."""
        if self._is_asked and not self._reply.is_over and not self._reply.has_begun and self._reply.first is None:
            self._answer(400, "the request is no Thrift message", is_told=True)
        elif self._transport is not None:
            self._transport.close()

    def _respond(self, *headers: tuple[str, str], is_last: bool = False) -> None:
        ends = (("connection", "close"),) if is_last or not self._is_whole else ()
        self._send(h11.Response(status_code=200, headers=[("content-type", TYPE), *headers, *ends]))

    def _end(self) -> None:
        """Go on to the next request when this one and its reply are whole."""
        if not (self._is_whole and self._reply.is_over) or self._transport is None:
            return
        self._is_asked = self._is_whole = self._has_body = False
        self._reply = _Reply()
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            self._transport.close()
            return
        self._http.start_next_cycle()
        self._transport.resume_reading()
        if self._http.trailing_data[0]:
            asyncio.get_running_loop().call_soon(self._go_on)

    def _answer(
        self, status: int, words: str, *headers: tuple[str, str], user: str | None = None, is_told: bool = False
    ) -> None:
        """Answer in words, and close; the log is told, unless it has been."""
        if self._transport is None or self._transport.is_closing():
            return
        body = f"{words}\n".encode()
        told = [("content-type", "text/plain; charset=utf-8"), ("content-length", str(len(body)))]
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._send(h11.Response(status_code=status, headers=[*told, *headers, ("connection", "close")]))
            self._send(h11.Data(body))
            self._send(h11.EndOfMessage())
        if is_told:
            self._transport.close()
        else:
            self.refuse(f"HTTP {status}: {words}", user)

    def _send(self, part: h11.Event) -> None:
        data = self._http.send(part)
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)


class _Reply:
    """How far a reply is."""

    def __init__(self) -> None:
        self.first: bytes | None = None
        self.has_begun = False
        self.is_over = False


class _HttpTransport(Passage):
    """What the connection writes becomes the body of an answer."""

    def __init__(self, outer: asyncio.Transport, door: HttpDoor) -> None:
        super().__init__(outer)
        self._door = door

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As of the transport before, and what to call at the end of a reply."""
        return self._door.reply_ends if name == REPLY_END else super().get_extra_info(name, default)

    def write(self, data: Any) -> None:
        """Send it as a part of the reply."""
        self._door.write(bytes(data))

    def get_write_buffer_size(self) -> int:
        """What is written and not sent."""
        return super().get_write_buffer_size() + self._door.held_bytes

    def close(self) -> None:
        """Close when all that is written is sent."""
        self._door.close_after_reply()
