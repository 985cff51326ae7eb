"""The slices of one server joined: the services of each domain, the handlers over them, what runs in the background."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping

from metastore.compaction.worker.executor import CompactionExecutor
from metastore.config import Config
from metastore.lock.waiters import LockWaiters
from metastore.measured import measured
from metastore.observe.calls import CallCounts
from metastore.observe.gauges import Gauges
from metastore.observe.meters import Meters
from metastore.rpc.call import Handler
from metastore.rpc.doors.doors import Doors
from metastore.rpc.handlers import session
from metastore.schedule import Service
from metastore.slices.catalogue import CatalogueSlice
from metastore.slices.common import Common
from metastore.slices.compactions import CompactionSlice
from metastore.slices.figures import FigureSlice
from metastore.slices.transactions import TransactionSlice
from metastore.store.database import Database
from metastore.store.leases import Fenced, Lease


class Slices:
    """Every service of one server, made once; `executor` runs its compactions, by default the one of the settings.

    `registry` has all figures of it.
    """

    def __init__(
        self, db: Database, warehouse: str, config: Config, executor: CompactionExecutor | None = None
    ) -> None:
        self._config = config
        self._meters = Meters()
        # Host and process: workers of two servers on one machine, or of two machines, are never taken for each other.
        name = f"{socket.gethostname()}-{os.getpid()}"
        self.lease = Lease(db, name, config.housekeeping.lease_ms)
        fenced = Fenced(db, self.lease)
        common = Common(db, config, name, self.lease, fenced, LockWaiters(), self._meters, Gauges())
        self._transactions = TransactionSlice(common)
        self._catalogue = CatalogueSlice(common, warehouse, self._transactions.txns, self._transactions.commits)
        self._figures = FigureSlice(common)
        self.registry = self._meters.registry
        self.registry.register(self._figures)
        self._compactions = CompactionSlice(common, self._transactions, self._catalogue.catalog, executor)
        self._catalogue.catalog.start()

    def handlers(
        self,
        counts: CallCounts,
        trouble: Callable[[], str | None],
        is_stopping: Callable[[], bool],
        doors: Doors | None = None,
    ) -> Mapping[str, Handler]:
        """RPC name to handler.

        `counts` are those of the calls to this server, `trouble` is what is wrong with it, `is_stopping` whether it is
        ending, and `doors` say who comes in, with tokens of this server from now on, and may act for others.
        """
        catalog = self._catalogue.catalog
        proxies = None if doors is None else doors.proxies
        delegation = None if doors is None else doors.take_tokens(self._catalogue.issued_tokens)
        return {
            **session.handlers(self._config.values(), counts, catalog.uuid, trouble, is_stopping, proxies),
            **self._catalogue.handlers(delegation),
            **self._transactions.handlers(self._compactions.trino_guard),
            **self._compactions.handlers(),
        }

    def services(self) -> list[Service]:
        """What runs in the background."""
        found = [
            *self._transactions.services(),
            *self._catalogue.services(),
            *self._compactions.housekeeping(),
            *self._figures.services(),
            *self._compactions.services(),
        ]
        return [measured(service, self._meters) for service in found]

    def wake_workers(self, wake: Callable[[str], None]) -> None:
        """Have `wake` called with the name of the service when a compaction is put into the queue here."""
        self._compactions.wake_workers(wake)

    def interrupt(self) -> None:
        """Make a compaction in progress end now, back into the queue, and the Initiator's look; the server stops."""
        self._compactions.interrupt()

    def close(self) -> None:
        """Stop the Spark that was kept for compactions."""
        self._compactions.close()

    def release_waiters(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer all calls that wait for a lock; the server stops."""
        self._transactions.release_waiters(loop)
