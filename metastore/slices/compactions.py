"""Compaction: its queue, Initiator, Workers and Cleaner, and the handlers over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from metastore.catalog.service import CatalogService
from metastore.compaction.cleaner.cleaner import Cleaner, CleanerRun
from metastore.compaction.cleaner.orphans import Orphans
from metastore.compaction.initiator.initiator import Initiator
from metastore.compaction.metrics import CompactionMetrics
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.snapshots import Snapshots
from metastore.compaction.trino import TrinoGuard
from metastore.compaction.worker.executor import CompactionExecutor, executor_for
from metastore.compaction.worker.slots import WorkerSlot, slots_by_pool
from metastore.compaction.worker.timing import TimedExecutor
from metastore.compaction.worker.worker import CompactionWorker
from metastore.housekeeping.compaction_housekeeper import CompactionHouseKeeper
from metastore.rpc.call import Handler
from metastore.rpc.handlers import compactions, orphans, why
from metastore.schedule import Service
from metastore.slices.common import Common, done
from metastore.slices.compaction_catalogue import CatalogueOfCompaction
from metastore.slices.transactions import TransactionSlice
from metastore.why.cleaning import CleaningAnswers
from metastore.why.service import WhyService

HEARTBEATS_PER_TIMEOUT = 4
WORKER = "Worker"
"""The service of a slot for compactions; there may be several, or none."""


class CompactionSlice:
    """Services of compaction, made once for a server; `executor` runs the jobs, by default the one of the settings."""

    def __init__(
        self,
        common: Common,
        transactions: TransactionSlice,
        catalog: CatalogService,
        executor: CompactionExecutor | None = None,
    ) -> None:
        db, meters, config = common.db, common.meters, common.config.compaction
        self._config = config
        self._wake: Callable[[str], None] = lambda service: None
        catalogue = CatalogueOfCompaction(catalog)
        snapshots = Snapshots(transactions.txns, transactions.write_ids)
        self._queue = CompactionService(db, config, self._queued)
        fenced = CompactionService(common.fenced, config, self._queued)
        self._metrics = CompactionMetrics(db)
        self._housekeeper = CompactionHouseKeeper(common.fenced, common.config.housekeeping, fenced)
        self._executor = TimedExecutor(executor or executor_for(config), meters)
        self.trino_guard = TrinoGuard(catalogue, snapshots) if common.config.lock.refuses_trino else None
        self._orphans = Orphans(self._queue, snapshots, catalogue, catalogue)
        cleaning = CleaningAnswers(db, self._queue, snapshots, catalogue, config)
        self._why = WhyService(db, self._queue, cleaning, catalogue, catalog.removals, config, common.config.txn)
        self._initiator = Initiator(fenced, snapshots, catalogue, config, common.name, meters)
        self._cleaner = Cleaner(fenced, snapshots, catalogue, config, common.lease.check, common.lease.term, meters)
        self._slots = [
            WorkerSlot(
                CompactionWorker(
                    self._queue,
                    transactions.txns,
                    snapshots,
                    transactions.locks,
                    catalogue,
                    self._executor,
                    config,
                    f"{common.name}-{number}",
                    common.config.txn.timeout_ms // HEARTBEATS_PER_TIMEOUT,
                    pool,
                    queue=fenced,
                ),
                config,
            )
            for number, pool in enumerate(slots_by_pool(config))
        ]

    def handlers(self) -> Mapping[str, Handler]:
        """RPC name to handler."""
        return {
            **compactions.handlers(self._queue, self._metrics, self._config.crowded_deltas),
            **why.handlers(self._why),
            **orphans.handlers(self._orphans),
        }

    def housekeeping(self) -> list[Service]:
        """What looks after the queue in the background."""
        interval_ms = self._config.housekeeper_interval_ms
        return [Service("CompactionHouseKeeper", interval_ms, partial(done, self._housekeeper.run_once))]

    def services(self) -> list[Service]:
        """What compacts in the background, as far as it is switched on."""
        config, found = self._config, []
        if config.initiator_on:
            found.append(Service("Initiator", config.check_interval_ms, self._initiator.run_once))
        if config.cleaner_on:
            found.append(Service("Cleaner", config.cleaner_interval_ms, self._clean))
        return [*found, *(Service(WORKER, config.worker_sleep_ms, slot.run_once) for slot in self._slots)]

    def wake_workers(self, wake: Callable[[str], None]) -> None:
        """Have `wake` called with the name of the service when a compaction is put into the queue here."""
        self._wake = wake

    def _queued(self) -> None:
        self._wake(WORKER)

    def interrupt(self) -> None:
        """Make a compaction in progress end now, back into the queue, and the Initiator's look; the server stops."""
        self._initiator.stop()
        for slot in self._slots:
            slot.stop()
        self._executor.close()

    def close(self) -> None:
        """Stop the Spark that was kept for compactions."""
        self._executor.close()

    def _clean(self) -> CleanerRun | None:
        run = self._cleaner.run_once()
        return run if run.removed or run.cleaned or run.failed else None
