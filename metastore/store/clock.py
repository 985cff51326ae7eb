"""The database's clock, compared with one that nobody can set: it may be put forward or back."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from metastore.observe.log import event

LOG = logging.getLogger("metastore.services")
_SLACK_MS = 60_000
"""Clocks that are adjusted by less are right."""


@dataclass(frozen=True, slots=True)
class Look:
    """What the database's clock showed (ms since 1970), when it was this on the monotonic clock here (s)."""

    at_s: float
    shown_ms: int

    def expected_ms(self) -> int:
        """What it should show now."""
        return self.shown_ms + round((time.monotonic() - self.at_s) * 1000)


class ClockWatch:
    """Tells what the database's clock shows, unless it has been put forward or back within the last `doubted_s`.

    For so long nobody is to conclude from it that something is old.
    """

    def __init__(self, doubted_s: float) -> None:
        self._doubted_s = doubted_s
        self._doubted_until: float | None = None
        self.look: Look | None = None
        """The last one."""

    def trusted_ms(self, connection: Connection) -> int | None:
        """What the clock shows; None if what is old by it need not be."""
        shown_ms = int(connection.execute(select(func.database_clock())).scalar_one())
        now_s, look = time.monotonic(), self.look
        moved_ms = 0 if look is None else shown_ms - look.expected_ms()
        if abs(moved_ms) > _SLACK_MS:
            self._doubted_until = now_s + self._doubted_s
            event(LOG, logging.WARNING, "clock of the database moved", ms=moved_ms)
        self.look = Look(now_s, shown_ms)
        return None if self._doubted_until is not None and now_s < self._doubted_until else shown_ms
