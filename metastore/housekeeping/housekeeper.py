"""The AcidHouseKeeper: ends what nobody heartbeats and forgets what nobody needs (transactions.md §1.9, §5)."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.housekeeping.config import HousekeepingConfig
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from metastore.txn.service import LocksFreed
from metastore.txn.states import TIMEOUT_REASON

_MAX_BATCHES = 1000


@dataclass(frozen=True, slots=True)
class HousekeeperRun:
    """What one run did, in numbers."""

    timed_out_txns: int
    expired_locks: int
    purged_write_set: int
    purged_write_ids: int
    purged_txns: int


class AcidHouseKeeper:
    """Housekeeping of transactions and locks.

    Safe to run on several servers at once and to be killed: each step is one database transaction of its own.
    """

    def __init__(
        self,
        db: Database,
        config: HousekeepingConfig,
        txn_config: TxnConfig,
        locks_freed: LocksFreed = lambda databases: None,
    ) -> None:
        self._db = db
        self._config = config
        self._txn_config = txn_config
        self._locks_freed = locks_freed

    def run_once(self) -> HousekeeperRun:
        """Do all there is to do now."""
        # Locks first: the end of a transaction may be what the next one waits for, and that one is heartbeated.
        expired_locks = self._expire_locks()
        timed_out = self._time_out()
        row = self._db.call_one("snapshot_horizon")
        assert row is not None
        horizon = row[0]
        return HousekeeperRun(
            timed_out_txns=timed_out,
            expired_locks=expired_locks,
            purged_write_set=self._count("purge_write_set", horizon),
            purged_write_ids=self._count("purge_write_ids", horizon),
            purged_txns=self._count("purge_txns", self._config.finished_retention_ms, horizon),
        )

    def _expire_locks(self) -> int:
        row = self._db.call_one("expire_locks", self._txn_config.timeout_ms)
        assert row is not None
        self._locks_freed(row[1])
        return int(row[0])

    def _time_out(self) -> int:
        """Abort in batches, so that no database transaction is long; what is left over is for the next run."""
        total = 0
        batch = self._config.timeout_batch
        timeouts = self._txn_config.timeout_ms, self._txn_config.repl_timeout_ms
        for _ in range(_MAX_BATCHES):
            row = self._db.call_one("expire_txns", *timeouts, TIMEOUT_REASON, batch)
            assert row is not None
            total += len(row[0])
            self._locks_freed(row[1])
            if len(row[0]) < batch:
                break
        return total

    def _count(self, function: str, *args: object) -> int:
        row = self._db.call_one(function, *args)
        assert row is not None
        return int(row[0])
