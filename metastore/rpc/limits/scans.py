"""Long messages are walked a piece at a time, one piece in each turn of the event loop, and clients take turns."""

from __future__ import annotations

import asyncio
from typing import Protocol

from metastore.rpc.limits.fairness import FairQueue

PIECE_ELEMENTS = 2_000
"""What is walked within about a millisecond."""


class Scanned(Protocol):
    """A connection with more to walk."""

    @property
    def client(self) -> str:
        """Whose it is."""

    def scan_on(self) -> None:
        """Walk the next piece."""


class Scans:
    """Those that wait for their next piece. Used on the event loop."""

    def __init__(self) -> None:
        self._waiting: FairQueue[Scanned] = FairQueue()
        self._is_scheduled = False

    def add(self, scanned: Scanned) -> None:
        """Walk its next piece in a later turn of the loop."""
        self._waiting.put(scanned.client, scanned)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        self._is_scheduled = False
        scanned = self._waiting.take()
        if scanned is not None:
            scanned.scan_on()
        if self._waiting:
            self._schedule()
