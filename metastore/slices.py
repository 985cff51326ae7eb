"""The slices joined: their services, the handlers over them, and the background services they bring."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping

from metastore.catalog.service import CatalogService
from metastore.config import Config
from metastore.housekeeping.housekeeper import AcidHouseKeeper, HousekeeperRun
from metastore.lock.service import LockService
from metastore.lock.waiters import LockWaiters
from metastore.rpc.call import Handler
from metastore.rpc.handlers import databases, functions, locks, partitions, session, tables, transactions
from metastore.schedule import Service
from metastore.store.database import Database
from metastore.txn.service import TxnService
from metastore.txn.write_ids import WriteIdService


class Slices:
    """Every service of one server, made once."""

    def __init__(self, db: Database, warehouse: str, config: Config) -> None:
        self._config = config
        self.waiters = LockWaiters()
        self.catalog = CatalogService(db, warehouse, config.catalog)
        self.txns = TxnService(db, config.txn, self.waiters.wake)
        self.write_ids = WriteIdService(db)
        self.locks = LockService(db, self.waiters.wake)
        self.housekeeper = AcidHouseKeeper(db, config.housekeeping, config.txn, self.waiters.wake)
        self.catalog.start()

    def handlers(self) -> Mapping[str, Handler]:
        """RPC name to handler."""
        return {
            **session.handlers(self._config.values()),
            **databases.handlers(self.catalog),
            **tables.handlers(self.catalog),
            **partitions.handlers(self.catalog),
            **functions.handlers(),
            **transactions.handlers(self.txns, self.write_ids),
            **locks.handlers(self.locks, self.waiters, self._config.lock),
        }

    def services(self) -> list[Service]:
        """What runs in the background."""
        config = self._config
        return [
            Service("housekeeper", config.housekeeping.interval_ms, self._keep_house),
        ]

    def interrupt(self) -> None:
        """Make long work of the services end soon; the server stops."""

    def release_waiters(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer all calls that wait for a lock; the server stops."""
        loop.call_soon_threadsafe(self.waiters.close)

    def _keep_house(self) -> HousekeeperRun | None:
        run = self.housekeeper.run_once()
        return run if any(dataclasses.astuple(run)) else None
