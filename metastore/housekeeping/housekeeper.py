"""The AcidHouseKeeper: ends what nobody heartbeats (transactions.md §1.9)."""

from __future__ import annotations

from dataclasses import dataclass

from hive_acid.ids import LockId
from metastore.housekeeping.config import HousekeepingConfig
from metastore.store.leases import Calls
from metastore.txn.calls import LocksFreed
from metastore.txn.config import TxnConfig
from metastore.txn.states import TIMEOUT_REASON

MAX_BATCHES = 1000
"""Batches in one run; what is left over is for the next."""


@dataclass(frozen=True, slots=True)
class HousekeeperRun:
    """What one run did, in numbers: transactions, lock requests, rows that had outlived their transactions, and tables
    whose reserved write ids were given back.
    """

    timed_out_txns: int
    expired_locks: int
    purged_companions: int
    returned_write_ids: int


class AcidHouseKeeper:
    """Times out transactions and locks.

    Safe to be killed, and to run twice at once: each batch is one database transaction of its own, and repeats its
    condition on rows that it has locked.
    """

    def __init__(
        self,
        db: Calls,
        config: HousekeepingConfig,
        txn_config: TxnConfig,
        locks_freed: LocksFreed = lambda lock_ids: None,
    ) -> None:
        self._db = db
        self._config = config
        self._txn_config = txn_config
        self._locks_freed = locks_freed

    def run_once(self) -> HousekeeperRun:
        """Do all there is to do now."""
        # Locks first: the end of a transaction may be what the next one waits for, and that one is heartbeated.
        return HousekeeperRun(
            expired_locks=self._expire_locks(),
            timed_out_txns=self._time_out(),
            purged_companions=self._in_batches("purge_companions"),
            returned_write_ids=self._in_batches("return_write_ids"),
        )

    def _expire_locks(self) -> int:
        total: set[LockId] = set()
        batch = self._config.purge_batch
        for _ in range(MAX_BATCHES):
            row = self._db.call_one("expire_locks", self._txn_config.timeout_ms, batch)
            assert row is not None
            total |= set(row[0])
            self._locks_freed(row[0])
            if not row[0]:
                break
        return len(total)

    def _time_out(self) -> int:
        total = 0
        batch = self._config.timeout_batch
        # A heartbeat is put down a little after it has come, and by whatever server it came to.
        delay_ms = self._txn_config.heartbeat_delay_ms
        timeouts = self._txn_config.timeout_ms + delay_ms, self._txn_config.repl_timeout_ms + delay_ms
        for _ in range(MAX_BATCHES):
            row = self._db.call_one("expire_txns", *timeouts, TIMEOUT_REASON, batch)
            assert row is not None
            total += len(row[0])
            self._locks_freed(row[1])
            if len(row[0]) < batch:
                break
        return total

    def _in_batches(self, function: str) -> int:
        total = 0
        batch = self._config.purge_batch
        for _ in range(MAX_BATCHES):
            row = self._db.call_one(function, batch)
            assert row is not None
            total += row[0]
            if row[0] < batch:  # each read has left some
                break
        return total
