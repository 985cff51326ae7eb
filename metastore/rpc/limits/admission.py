"""Large requests: so many elements of them are in memory at a time, for all clients together and for one.

What a request becomes when it is decoded takes many times its bytes. So a large one waits, as bytes, until there is
room; clients take turns. What waits is bounded, too: beyond that the client that has most waiting is refused.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass

from hive_acid.errors import MetaError
from metastore.rpc.limits.fairness import FairQueue

LARGE_BYTES = 64 * 1024
LARGE_ELEMENTS = 2_000
"""A request beyond either is large: to decode it takes long enough to be noticed by others."""
MOST_WAITING_BYTES = 128 * 1024 * 1024
PATIENCE_S = 60.0
AT_A_TIME = 2
"""So many requests of the largest kind are in memory, one of each client."""
BUSY = "the server is busy with other large requests: try again later, or send less at once"


@dataclass(eq=False, slots=True)
class Ticket:
    """What one large request asks for."""

    client: str
    elements: int
    size_bytes: int
    turn: asyncio.Future[None]


class Admission:
    """Used on the event loop."""

    def __init__(self, most_elements: int) -> None:
        """`most_elements` is what one request has at most."""
        self._share = most_elements
        self._free = AT_A_TIME * most_elements
        self._held: Counter[str] = Counter()
        self._waiting: FairQueue[Ticket] = FairQueue()
        self._waiting_bytes: Counter[str] = Counter()

    async def enter(self, client: str, elements: int, size_bytes: int) -> Ticket:
        """Return when there is room for a request; `leave` gives it back. Raises MetaError if none comes."""
        loop = asyncio.get_running_loop()
        ticket = Ticket(client, min(elements, self._share), size_bytes, loop.create_future())
        self._waiting.put(client, ticket)
        self._waiting_bytes[client] += size_bytes
        self._let_in()
        self._refuse_heaviest()
        timer = None if ticket.turn.done() else loop.call_later(PATIENCE_S, self._refuse, ticket)
        try:
            await ticket.turn
        finally:
            if timer is not None:
                timer.cancel()
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """The request is dealt with."""
        self._free += ticket.elements
        self._held[ticket.client] -= ticket.elements
        if not self._held[ticket.client]:
            del self._held[ticket.client]
        self._let_in()

    def _let_in(self) -> None:
        is_full = False

        def may_enter(client: str, ticket: Ticket) -> bool:
            """Who has its share is passed by; who only lacks room is not, lest small requests keep it out for ever."""
            nonlocal is_full
            if is_full or self._held[client] + ticket.elements > self._share:
                return False
            is_full = ticket.elements > self._free
            return not is_full

        while (ticket := self._waiting.take(may_enter)) is not None:
            self._forget(ticket)
            self._free -= ticket.elements
            self._held[ticket.client] += ticket.elements
            ticket.turn.set_result(None)

    def _refuse_heaviest(self) -> None:
        while sum(self._waiting_bytes.values()) > MOST_WAITING_BYTES:
            client = max(self._waiting_bytes, key=lambda one: self._waiting_bytes[one])
            self._refuse(max((one for one in self._waiting if one.client == client), key=lambda one: one.size_bytes))

    def _refuse(self, ticket: Ticket) -> None:
        if self._waiting.remove(ticket.client, ticket):
            self._forget(ticket)
            ticket.turn.set_exception(MetaError(BUSY))

    def _forget(self, ticket: Ticket) -> None:
        self._waiting_bytes[ticket.client] -= ticket.size_bytes
        if not self._waiting_bytes[ticket.client]:
            del self._waiting_bytes[ticket.client]
