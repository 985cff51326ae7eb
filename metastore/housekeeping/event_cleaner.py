"""The EventCleaner: forgets old events of the notification log, and what transactions reported as written."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.events.config import EventsConfig
from metastore.events.service import number_events
from metastore.housekeeping.config import MAX_BATCHES, HousekeepingConfig
from metastore.store.leases import Calls


@dataclass(frozen=True, slots=True)
class EventCleanerRun:
    """What one run removed, in rows."""

    purged_events: int
    purged_write_notifications: int


class EventCleaner:
    """Purges events and write notifications that are older than the retention.

    Safe to be killed, and to run twice at once.
    """

    def __init__(self, db: Calls, config: EventsConfig, housekeeping: HousekeepingConfig) -> None:
        self._db = db
        self._retention_ms = config.retention_ms
        self._batch = housekeeping.purge_batch

    def run_once(self) -> EventCleanerRun:
        """Do all there is to do now."""
        # An event that nobody has read yet gets its number first: who follows the log sees the gap.
        number_events(self._db)
        events = writes = 0
        for _ in range(MAX_BATCHES):
            row = self._db.call_one("purge_events", self._retention_ms, self._batch)
            assert row is not None
            events += row[0]
            writes += row[1]
            if max(row) < self._batch:
                break
        return EventCleanerRun(events, writes)
