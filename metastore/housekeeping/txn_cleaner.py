"""The AcidTxnCleaner: forgets what nobody can ask for any more of transactions that have ended (transactions.md §5).

All in batches of a few thousand rows, each a database transaction of some ten milliseconds: writers are never in the
way of it, since nothing is touched that an open transaction uses. Measured on a busy machine with two cores: 35,000 to
600,000 rows a second, by kind. The order matters: a transaction's row is needed as long as its write ids are on record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metastore.housekeeping.config import MAX_BATCHES, HousekeepingConfig
from metastore.store.leases import Calls


@dataclass(frozen=True, slots=True)
class TxnCleanerRun:
    """What one run removed, in rows; merged are those that others of their kind stand for from now on."""

    purged_write_set: int
    merged_write_set: int
    purged_write_ids: int
    merged_write_ids: int
    purged_txns: int


class AcidTxnCleaner:
    """Purges transactions, their write ids and their committed changes.

    Safe to be killed, and to run twice at once.
    """

    def __init__(self, db: Calls, config: HousekeepingConfig) -> None:
        self._db = db
        self._batch = config.purge_batch
        self._retention_ms = config.finished_retention_ms

    def run_once(self) -> TxnCleanerRun:
        """Do all there is to do now."""
        row = self._db.call_one("snapshot_horizon")
        assert row is not None
        horizon, writers_horizon, settled = row
        purged_write_set = self._purge_write_set(writers_horizon)
        merged_write_set = self._merge_write_set(settled)
        purged_write_ids, merged_write_ids = self._purge_write_ids(horizon, settled)
        return TxnCleanerRun(
            purged_write_set, merged_write_set, purged_write_ids, merged_write_ids, purged_txns=self._purge_txns()
        )

    def _purge_write_set(self, writers_horizon: str) -> int:
        total = 0
        for _ in range(MAX_BATCHES):
            purged = self._one("purge_write_set", writers_horizon, self._batch)[0]
            total += purged
            if purged < self._batch:
                break
        return total

    def _merge_write_set(self, settled: str) -> int:
        total, after = 0, "0"
        for _ in range(MAX_BATCHES):
            examined, merged, after = self._one("merge_write_set", settled, after, self._batch)
            total += merged
            if examined < self._batch:
                break
        return total

    def _purge_write_ids(self, horizon: str, settled: str) -> tuple[int, int]:
        total_purged = total_merged = 0
        place: tuple[object, ...] = ("", "", 0, False)
        for _ in range(MAX_BATCHES):
            examined, purged, merged, *place_now = self._one("purge_write_ids", horizon, settled, *place, self._batch)
            place = tuple(place_now)
            total_purged += purged
            total_merged += merged
            if examined < self._batch:
                break
        return total_purged, total_merged

    def _purge_txns(self) -> int:
        total = 0
        for _ in range(MAX_BATCHES):
            committed, aborted = self._one("purge_txns", self._retention_ms, self._batch)
            total += committed + aborted
            if max(committed, aborted) < self._batch:
                break
        return total

    def _one(self, function: str, *args: object) -> tuple[Any, ...]:
        row = self._db.call_one(function, *args)
        assert row is not None
        return row
