"""Busy polling: staying awake for the next event while a lone client works.

A processor that goes to sleep takes longer to wake up than a call takes, and every call makes the event loop wait
twice: for the database and for the next request. So as long as one call at a time is in progress, the loop looks again
instead of sleeping, for a moment after each event. With more calls it hardly sleeps anyway, and the time it would spend
looking is theirs.
"""

from __future__ import annotations

import asyncio
import time


class BusyPolling:
    """Told when calls begin and end; used on the event loop."""

    def __init__(self, moment_ms: int) -> None:
        """`moment_ms` is how long to stay awake after an event; 0 is not at all."""
        self._moment_s = moment_ms / 1000
        self._calls = 0
        self._until_s = 0.0
        self._is_awake = False

    def call_begins(self) -> None:
        """A request has come."""
        self._calls += 1
        self._stay()

    def call_ends(self) -> None:
        """A request is answered; the client's next one may follow at once."""
        self._calls -= 1
        self._stay()

    def _stay(self) -> None:
        if self._calls > 1 or not self._moment_s:
            return
        self._until_s = time.monotonic() + self._moment_s
        if not self._is_awake:
            self._is_awake = True
            asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        if self._calls <= 1 and time.monotonic() < self._until_s:
            asyncio.get_running_loop().call_soon(self._look)
        else:
            self._is_awake = False
