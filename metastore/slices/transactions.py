"""Transactions, write ids and locks: their services, the handlers over them, and what ends what is given up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from metastore.compaction.trino import TrinoGuard
from metastore.housekeeping.housekeeper import AcidHouseKeeper
from metastore.housekeeping.txn_cleaner import AcidTxnCleaner
from metastore.lock.beginning import Beginnings
from metastore.lock.listener import lock_listener
from metastore.lock.polling import LockPolling
from metastore.lock.service import LockService
from metastore.rpc.call import Handler
from metastore.rpc.handlers import beginnings, locks, min_history, rebuilds, replication, transactions
from metastore.rpc.handlers.replication import SpecialCalls
from metastore.schedule import Service
from metastore.slices.common import Common, done
from metastore.txn.commits import ExtendedCommits
from metastore.txn.min_history import MinHistory
from metastore.txn.rebuild import RebuildLocks
from metastore.txn.recording import switch_recording
from metastore.txn.replication import ReplicationService
from metastore.txn.service import TxnService
from metastore.txn.write_ids.service import WriteIdService


class TransactionSlice:
    """Services of transactions, made once for a server."""

    def __init__(self, common: Common) -> None:
        db, config, wake = common.db, common.config, common.waiters.wake
        switch_recording(db, config.events.records_txns)
        self._config = config
        self.txns = TxnService(db, config.txn, wake, common.meters)
        self.write_ids = WriteIdService(db)
        self.locks = LockService(db, wake)
        self._beginnings = Beginnings(db, self.txns, config.txn.max_open_txns, self.write_ids.aborted_ids)
        self._polling = LockPolling(self.locks, common.waiters, lock_listener(db, common.waiters), config.lock)
        self._replication = ReplicationService(db, config.txn, wake)
        self.commits = ExtendedCommits(db, wake, common.meters)
        self._special_calls = SpecialCalls(self._replication, self.commits)
        self._rebuilds = RebuildLocks(db)
        self._min_history = MinHistory(db)
        self._housekeeper = AcidHouseKeeper(
            common.fenced, config.housekeeping, config.txn, wake, common.lease.first_look
        )
        self._cleaner = AcidTxnCleaner(common.fenced, config.housekeeping)

    def handlers(self, trino_guard: TrinoGuard | None) -> Mapping[str, Handler]:
        """RPC name to handler; `trino_guard` refuses what Trino would do wrong."""
        return {
            **transactions.handlers(self.txns, self.write_ids, self._special_calls),
            **replication.handlers(self._replication),
            **min_history.handlers(self._min_history),
            **rebuilds.handlers(self._rebuilds),
            **beginnings.handlers(self._beginnings),
            **locks.handlers(self.locks, self._polling, trino_guard, self.txns.abort_txn),
        }

    def services(self) -> list[Service]:
        """What runs in the background."""
        housekeeping = self._config.housekeeping
        reaper_ms, reaper_delay_ms = housekeeping.reaper_times_ms(self._config.txn.timeout_ms)
        return [
            Service("AcidHouseKeeper", reaper_ms, partial(done, self._housekeeper.run_once), reaper_delay_ms),
            Service("AcidTxnCleaner", housekeeping.txn_cleaner_interval_ms, partial(done, self._cleaner.run_once)),
        ]

    def release_waiters(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer all calls that wait for a lock; the server stops."""
        loop.call_soon_threadsafe(self._polling.close)
