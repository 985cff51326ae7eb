"""A door: what stands between a socket and its connection until the client has shown what is asked for.

It counts as a connection from its first byte, has a time limit, and says in one line of the log whom it refuses.
Afterwards it stays where it is and passes bytes on.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

from metastore.observe.log import event
from metastore.rpc.audit.audit import CONNECT, LOGIN, Audit
from metastore.rpc.limits.crowd import Crowd
from metastore.rpc.limits.debts import Debts
from metastore.rpc.limits.workers import Workers

LOG = logging.getLogger("metastore.rpc")
PATIENCE_S = 10.0
"""Who has not come in by then is sent away."""

WRONG_S = 1.0
"""So long whoever was wrong waits for the answer."""
IDENTITY = "hive_acid.identity"
"""By which the transport of a connection tells who has come in."""
REPLY_END = "hive_acid.reply_end"
"""By which it gives its connection what to call at the end of each reply, where replies have ends."""

T = TypeVar("T")


class Identity(NamedTuple):
    """Who has come in."""

    user: str
    """As whom it acts."""
    authenticated: str
    """Who has shown what was asked for."""
    is_by_token: bool = False
    """Whether that was a delegation token."""


class House(NamedTuple):
    """What all doors of a server share."""

    crowd: Crowd
    debts: Debts
    workers: Workers
    """They do what takes longer than the event loop has time for."""
    audit: Audit | None
    most_message_bytes: int
    """Of one request of Thrift's."""


class Door(asyncio.Protocol):
    """One client that is to come in; used on the event loop."""

    def __init__(self, inner: asyncio.Protocol, house: House) -> None:
        self._inner = inner
        self._house = house
        self._transport: asyncio.Transport | None = None
        self._is_open = False
        self._has_spoken = False
        self._deadline: asyncio.TimerHandle | None = None
        self.client = "?"
        self.peer = "?"
        self.used_at_s = time.monotonic()

    @property
    def is_idle(self) -> bool:
        """Whoever has not come in yet is the first to go."""
        return True

    @property
    def is_busy(self) -> bool:
        """No call is under way."""
        return False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        if peer:
            self.client, self.peer = peer[0], f"{peer[0]}:{peer[1]}"
        self._deadline = asyncio.get_running_loop().call_later(PATIENCE_S, self._give_up)
        if not self._house.crowd.add(self):
            self.refuse("there are too many")

    def connection_lost(self, error: Exception | None) -> None:
        """It is gone."""
        self._transport = None
        if self._has_spoken and self._deadline is not None:  # as who does not believe our certificate
            self._tell(logging.INFO, "it went away before it had come in")
        self._leave()
        if self._is_open:
            self._inner.connection_lost(error)

    def pause_writing(self) -> None:
        """Enough is written that the client has not taken."""
        if self._is_open:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        """The client has taken most of it."""
        if self._is_open:
            self._inner.resume_writing()

    def close(self) -> None:
        """Send it away."""
        self.abort()

    def abort(self) -> None:
        """Cut the connection."""
        if self._transport is not None:
            self._transport.abort()

    def call_in(self, words: str) -> None:
        """Let go of what has come."""
        self.refuse(words)

    def is_overdue(self, since_s: float, *_: object) -> str | None:
        """None: it has a time limit of its own."""
        return None

    def refuse(self, reason: str, user: str | None = None) -> None:
        """Send it away, who calls itself `user`, and say why in the log."""
        if self._transport is None:
            return
        self._tell(logging.WARNING, reason, user)
        self._transport.close()
        self._leave()

    def _tell(self, level: int, reason: str, user: str | None = None) -> None:
        event(LOG, level, "connection refused", peer=self.peer, reason=reason)
        if self._house.audit is not None:
            self._house.audit.note_door(CONNECT if user is None else LOGIN, self.peer, user, reason)

    def expel(self, user: str) -> None:
        """Close the connection of a user whose line in the file of passwords is another now, or gone."""
        if self._transport is not None:
            self._tell(logging.WARNING, f"the password of {user!r} has changed since it came in", user)
            self._transport.close()

    def _note_login(self, user: str | None) -> None:
        """A user has come in."""
        event(LOG, logging.DEBUG, "logged in", peer=self.peer, user=user)
        if self._house.audit is not None:
            self._house.audit.note_door(LOGIN, self.peer, user, None)

    def _let_in(self, transport: asyncio.Transport) -> None:
        """The client has shown what is asked for; `transport` is what its connection writes to."""
        self._leave()
        self._is_open = True
        self._inner.connection_made(transport)

    def _leave(self) -> None:
        self._house.crowd.discard(self)
        self._house.debts.settle(self)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._tell(logging.INFO, f"it has not come in for {PATIENCE_S:g} s")
            self._leave()
            self.abort()

    def _work(self, work: Callable[[], T], done: Callable[[T], None]) -> None:
        """Do `work` on a thread, in the client's turn, and `done` with its result here."""
        loop = asyncio.get_running_loop()

        def told(future: Any) -> None:
            if future.exception() is None:
                loop.call_soon_threadsafe(done, future.result())
            else:  # the server stops
                loop.call_soon_threadsafe(self.abort)

        self._house.workers.submit_for(self.client, work).add_done_callback(told)


class Passage(asyncio.Transport):
    """The transport that a connection behind a door has: the one before it, but for what is written."""

    def __init__(self, outer: asyncio.Transport, identity: Identity | None = None) -> None:
        super().__init__()
        self.outer = outer
        self._identity = identity

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As of the transport before, and who has come in by this door."""
        if name == IDENTITY and self._identity is not None:
            return self._identity
        return self.outer.get_extra_info(name, default)

    def is_closing(self) -> bool:
        """Whether it is being closed."""
        return self.outer.is_closing()

    def pause_reading(self) -> None:
        """Let the client wait."""
        self.outer.pause_reading()

    def resume_reading(self) -> None:
        """Read on."""
        self.outer.resume_reading()

    def get_write_buffer_size(self) -> int:
        """What is written and not sent."""
        return self.outer.get_write_buffer_size()

    def close(self) -> None:
        """Close when all that is written is sent."""
        self.outer.close()

    def abort(self) -> None:
        """Cut the connection."""
        self.outer.abort()


class CostlyPassage(Passage):
    """One where writing takes arithmetic: of much that is written each turn of the event loop does a piece."""

    def __init__(
        self,
        outer: asyncio.Transport,
        identity: Identity | None,
        most_bytes: int,
        send: Callable[[bytes | memoryview], None],
        say_goodbye: Callable[[], None] | None = None,
    ) -> None:
        """`send` writes a piece of at most so many bytes, `say_goodbye` what comes after the last one."""
        super().__init__(outer, identity)
        self._most_bytes = most_bytes
        self._send = send
        self._say_goodbye = say_goodbye
        self._waiting: deque[memoryview] = deque()
        self._is_ending = False
        self._is_due = False
        self.is_held = False

    def write(self, data: Any) -> None:
        """Do and send it."""
        if self._is_ending or self.outer.is_closing():
            return
        if not (self._waiting or self.is_held) and len(data) <= self._most_bytes:
            self._send(data)
            return
        whole = memoryview(data)
        self._waiting.extend(whole[at : at + self._most_bytes] for at in range(0, len(whole), self._most_bytes))
        self._go_on()

    def hold(self) -> None:
        """Write nothing until `let_go`."""
        self.is_held = True

    def let_go(self) -> None:
        """Write what has waited."""
        self.is_held = False
        self._go_on()

    def _go_on(self) -> None:
        if self._waiting and not (self.is_held or self._is_due):
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._write_on)

    def _write_on(self) -> None:
        self._is_due = False
        if self.outer.is_closing():
            self._waiting.clear()
            return
        if self.is_held:
            return
        self._send(self._waiting.popleft())
        if self._waiting:
            self._go_on()
        elif self._is_ending:
            self._end()

    def is_closing(self) -> bool:
        """Whether it is being closed."""
        return self._is_ending or super().is_closing()

    def get_write_buffer_size(self) -> int:
        """What is written and not sent."""
        return super().get_write_buffer_size() + sum(map(len, self._waiting))

    def close(self) -> None:
        """Close when all that is written is sent."""
        if not self.is_closing():
            self._is_ending = True
            if not self._waiting:
                self._end()

    def _end(self) -> None:
        if self._say_goodbye is not None:
            self._say_goodbye()
        self.outer.close()
