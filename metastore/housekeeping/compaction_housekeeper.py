"""The CompactionHouseKeeper: shortens the records from which compactions are decided (transactions.md §4.11, §5)."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.compaction.queue.service import CompactionService
from metastore.housekeeping.config import MAX_BATCHES, HousekeepingConfig
from metastore.store.leases import Calls


@dataclass(frozen=True, slots=True)
class CompactionHousekeeperRun:
    """What one run removed, in rows, and how many compactions it took away from workers that are gone."""

    requeued: int
    purged_duplicates: int
    purged_history: int
    purged_gone_history: int
    purged_decisions: int
    purged_setting_changes: int


_SETTING_CHANGES_MS = 2 * 86_400_000
"""The Initiator has looked at everything since: it does so once a day."""


class CompactionHouseKeeper:
    """Removes records of writes that later ones make superfluous, old history of compactions, history and decisions of
    tables that are gone; and puts compactions of lost workers back into the queue.

    Safe to be killed, and to run twice at once.
    """

    def __init__(self, db: Calls, config: HousekeepingConfig, compactions: CompactionService) -> None:
        self._db = db
        self._batch = config.purge_batch
        self._compactions = compactions

    def run_once(self) -> CompactionHousekeeperRun:
        """Do all there is to do now."""
        return CompactionHousekeeperRun(
            # The Initiator does so before it looks; but it may be switched off where workers are not.
            len(self._compactions.requeue()),
            self._purge_duplicates(),
            self._compactions.purge_history(self._batch),
            self._purge("purge_gone_history", self._compactions.history_timeout_ms),
            self._purge("purge_decisions", self._compactions.history_timeout_ms),
            self._purge("purge_setting_changes", _SETTING_CHANGES_MS),
        )

    def _purge_duplicates(self) -> int:
        total, after = 0, None
        for _ in range(MAX_BATCHES):
            row = self._db.call_one("purge_duplicates", after, self._batch)
            assert row is not None
            examined, purged, after = row
            total += purged
            if examined < self._batch:
                break
        return total

    def _purge(self, function: str, older_than_ms: int) -> int:
        total = 0
        for _ in range(MAX_BATCHES):
            row = self._db.call_one(function, older_than_ms, self._batch)
            assert row is not None
            total += row[0]
            if row[0] < self._batch:
                break
        return total
