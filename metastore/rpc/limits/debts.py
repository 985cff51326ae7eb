"""What the server holds for clients that take their time: parts of requests, and replies that they do not read.

All together it is bounded. Beyond the bound the client that owes most loses what it has owed for longest: those who
send and read as fast as they can are never among them.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import Protocol

from metastore.rpc.config import ServerConfig

FINE_BYTES_PER_S = 256 * 1024
"""Who sends so fast may take longer than the time-out of requests."""


def unfinished(since_s: float, size_bytes: int, config: ServerConfig) -> str | None:
    """What is wrong with a client of whose request so much has come since then; None if nothing is."""
    patience_s = config.request_timeout_ms / 1000
    if time.monotonic() - since_s > patience_s + size_bytes / FINE_BYTES_PER_S:
        return f"the request has not come whole within {patience_s:g} s"
    return None


class Debtor(Protocol):
    """A connection."""

    @property
    def client(self) -> str:
        """Whose it is."""

    def call_in(self, words: str) -> None:
        """Let go of what is held for it, with the reason; it is a debtor no longer."""


class Debts:
    """By connection: since when, and how many bytes. Used on the event loop."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes: dict[Debtor, int] = {}  # the eldest comes first, here and below
        self._since_s: dict[Debtor, float] = {}
        self._by_client: Counter[str] = Counter()
        self._total = 0

    def older_than(self, age_s: float) -> list[tuple[Debtor, float, int]]:
        """Who owes something for longer, with the time since then (monotonic clock), and the bytes."""
        until_s = time.monotonic() - age_s
        found = []
        for debtor, since_s in self._since_s.items():
            if since_s > until_s:
                break
            found.append((debtor, since_s, self._bytes[debtor]))
        return found

    @property
    def total_bytes(self) -> int:
        """All that is held."""
        return self._total

    def owe(self, debtor: Debtor, size_bytes: int) -> None:
        """So much is held for a connection now."""
        before = self._bytes.get(debtor)
        if before is None:
            self._since_s[debtor] = time.monotonic()
        self._bytes[debtor] = size_bytes
        self._by_client[debtor.client] += size_bytes - (before or 0)
        self._total += size_bytes - (before or 0)
        if self._total > self._most_bytes:
            self._call_in()

    def settle(self, debtor: Debtor) -> None:
        """Nothing is held for it any more."""
        size_bytes = self._bytes.pop(debtor, None)
        if size_bytes is not None:
            del self._since_s[debtor]
            self._total -= size_bytes
            self._by_client[debtor.client] -= size_bytes
            if not self._by_client[debtor.client]:
                del self._by_client[debtor.client]

    def _call_in(self) -> None:
        """Not just what is too much, so that this is not done for each byte."""
        words = "the server holds too many unfinished requests and replies: try again later"
        while self._total > self._most_bytes * 0.9:
            client = max(self._by_client, key=lambda one: self._by_client[one])
            for debtor in [one for one in self._bytes if one.client == client]:
                self.settle(debtor)
                debtor.call_in(words)
                if self._total <= self._most_bytes * 0.9 or max(self._by_client.values()) > self._by_client[client]:
                    break
