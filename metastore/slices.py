"""The slices joined: their services, the handlers over them, and the background services they bring."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import socket
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from metastore.catalog.service import CatalogService
from metastore.compaction.cleaner.cleaner import Cleaner, CleanerRun
from metastore.compaction.cleaner.orphans import Orphans
from metastore.compaction.initiator.initiator import Initiator
from metastore.compaction.materializations import Materializations
from metastore.compaction.metrics import CompactionMetrics
from metastore.compaction.models import Storage, TableInfo
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.snapshots import Snapshots
from metastore.compaction.trino import TrinoGuard
from metastore.compaction.worker.executor import executor_for
from metastore.compaction.worker.slots import WorkerSlot, slots_by_pool
from metastore.compaction.worker.timing import TimedExecutor
from metastore.compaction.worker.worker import CompactionWorker
from metastore.config import Config
from metastore.events.service import EventLog
from metastore.filework.lanes import FILE_SYSTEMS
from metastore.housekeeping.alerts import AlertLogger
from metastore.housekeeping.compaction_housekeeper import CompactionHouseKeeper
from metastore.housekeeping.event_cleaner import EventCleaner
from metastore.housekeeping.housekeeper import AcidHouseKeeper
from metastore.housekeeping.metrics import AcidMetrics
from metastore.housekeeping.txn_cleaner import AcidTxnCleaner
from metastore.lock.listener import LockListener
from metastore.lock.polling import LockPolling
from metastore.lock.service import LockService
from metastore.lock.waiters import LockWaiters
from metastore.measured import INITIATOR_CYCLE, expect_all, measured
from metastore.observe.calls import CallCounts
from metastore.observe.gauges import Gauges
from metastore.observe.meters import Meters
from metastore.observe.samples import Kind, Sample
from metastore.rpc.call import Handler
from metastore.rpc.handlers import (
    compactions,
    events,
    locks,
    min_history,
    orphans,
    rebuilds,
    removals,
    replication,
    security,
    session,
    transactions,
    why,
)
from metastore.rpc.handlers.catalog import (
    constraints,
    databases,
    functions,
    partition_lists,
    partitions,
    privileges,
    statistics,
    table_lists,
    tables,
    views,
)
from metastore.rpc.handlers.replication import SpecialCalls
from metastore.schedule import Service
from metastore.store.database import Database
from metastore.store.leases import Fenced, Lease
from metastore.txn.commits import ExtendedCommits
from metastore.txn.min_history import MinHistory
from metastore.txn.rebuild import RebuildLocks
from metastore.txn.recording import switch_recording
from metastore.txn.replication import ReplicationService
from metastore.txn.service import TxnService
from metastore.txn.write_ids import WriteIdService
from metastore.why.cleaning import CleaningAnswers
from metastore.why.service import WhyService

HEARTBEATS_PER_TIMEOUT = 4
WORKER = "Worker"
"""The service of a slot for compactions; there may be several, or none."""
FIRST_ALERTS_MS = 60_000
"""So long after the start figures have been taken."""
REMOVALS_INTERVAL_MS = 10_000
"""Pause between two looks at directories of dropped objects: those that could not be removed, and the old trash."""


class CatalogueOfCompaction:
    """The catalogue in the words of the compaction slice."""

    def __init__(self, catalog: CatalogService) -> None:
        self._catalog = catalog

    def table(self, db: str, table: str) -> TableInfo | None:
        """The table, None if it is gone or has no files."""
        found = self._catalog.table(db, table)
        if found is None or found.location is None:
            return None
        return TableInfo(
            found.location,
            tuple(found.columns),
            tuple(name for name, _ in found.partition_keys),
            found.parameters,
            self._catalog.database_parameters(db),
            Storage.of(found.storage),
        )

    def partition(self, db: str, table: str, partition: str) -> str | None:
        """The location of a partition, None if it is gone."""
        return self._catalog.partition(db, table, partition)

    def partition_parameters(self, db: str, table: str, partition: str) -> Mapping[str, str]:
        """The parameters of a partition, none if it is gone."""
        return self._catalog.partition_parameters(db, table, partition)

    def partition_names(self, db: str, table: str) -> list[str]:
        """The names of all partitions of a table."""
        return self._catalog.partition_names(db, table)

    def partition_locations(self, db: str, table: str) -> list[str]:
        """The locations of all partitions of a table."""
        return self._catalog.partition_locations(db, table)

    def homes(self) -> list[str]:
        """The directories in which those of tables are made: the warehouse's, and those of all databases."""
        return self._catalog.homes()

    def in_use(self, places: Collection[str], inside: str | None = None) -> set[str]:
        """Those of the places of which something is known; they may be inside of a table, ``database.table``."""
        return self._catalog.in_use(places, inside)

    def has_imports(self) -> bool:
        """Whether tables have come from another metastore."""
        return self._catalog.has_imports()

    def remove_dropped(self, location: str, trash: str | None) -> bool:
        """Remove what is left of a dropped table or partition; False if something that exists lies there."""
        return self._catalog.removals.remove_dropped(location, trash)

    def remove_unknown(self, location: str, inside: str | None = None) -> bool:
        """Remove a directory unless something is known of it; it may be inside of a table, ``database.table``."""
        return self._catalog.removals.remove_unknown(location, inside)

    def remove_homes(self) -> None:
        """Remove the directories of dropped databases, unless something that exists lies there."""
        self._catalog.removals.remove_homes()


class Slices:
    """Every service of one server, made once."""

    def __init__(self, db: Database, warehouse: str, config: Config) -> None:
        self._config = config
        self._db = db
        self._wake: Callable[[str], None] = lambda service: None
        self._waiters = LockWaiters()
        self._events = EventLog(db, config.events)
        switch_recording(db, config.events.records_txns)
        FILE_SYSTEMS.limit_ms = config.catalog.file_timeout_ms
        self.meters = Meters()
        expect_all(self.meters)
        self._txns = TxnService(db, config.txn, self._waiters.wake, self.meters)
        self._catalog = CatalogService(db, warehouse, config.catalog, self._txns)
        self._write_ids = WriteIdService(db)
        self._replication = ReplicationService(db, config.txn, self._waiters.wake)
        self._special_calls = SpecialCalls(self._replication, ExtendedCommits(db, self._waiters.wake, self.meters))
        self._rebuilds = RebuildLocks(db)
        self._min_history = MinHistory(db)
        self._locks = LockService(db, self._waiters.wake)
        self._polling = LockPolling(self._locks, self._waiters, LockListener(db, self._waiters), config.lock)
        # Host and process: workers of two servers on one machine, or of two machines, are never taken for each other.
        self._name = f"{socket.gethostname()}-{os.getpid()}"
        self.lease = Lease(db, self._name, config.housekeeping.lease_ms)
        fenced = Fenced(db, self.lease)
        self._housekeeper = AcidHouseKeeper(
            fenced, config.housekeeping, config.txn, self._waiters.wake, self.lease.first_look
        )
        self._txn_cleaner = AcidTxnCleaner(fenced, config.housekeeping)
        self._event_cleaner = EventCleaner(fenced, config.events, config.housekeeping)
        self.gauges = Gauges()
        self._metrics = AcidMetrics(
            fenced,
            config.housekeeping,
            self.gauges,
            config.alerts.versions_ms,
            config.compaction.counted_places,
            # Who scrapes them needs no long line of the log as well.
            logging.DEBUG if config.server.metrics_port else logging.INFO,
        )
        self._alerts = AlertLogger(self.gauges, config.alerts, partial(self.meters.age_s, INITIATOR_CYCLE))
        self._compactions = CompactionService(db, config.compaction, self._queued)
        self._compaction_metrics = CompactionMetrics(db)
        self._materializations = Materializations(db)
        self._fenced_compactions = CompactionService(fenced, config.compaction, self._queued)
        self._compaction_housekeeper = CompactionHouseKeeper(fenced, config.housekeeping, self._fenced_compactions)
        self._executor = TimedExecutor(executor_for(config.compaction), self.meters)
        self._make_compactors()
        self._catalog.start()

    def _make_compactors(self) -> None:
        config = self._config.compaction
        catalogue = CatalogueOfCompaction(self._catalog)
        snapshots = Snapshots(self._txns, self._write_ids)
        self._trino_guard = TrinoGuard(catalogue, snapshots) if self._config.lock.refuses_trino else None
        cleaning = CleaningAnswers(self._db, self._compactions, snapshots, catalogue, config)
        self._orphans = Orphans(self._compactions, snapshots, catalogue, catalogue)
        self._why = WhyService(
            self._db, self._compactions, cleaning, catalogue, self._catalog.removals, config, self._config.txn
        )
        self._initiator = Initiator(self._fenced_compactions, snapshots, catalogue, config, self._name, self.meters)
        self._cleaner = Cleaner(
            self._fenced_compactions, snapshots, catalogue, config, self.lease.check, self.lease.term, self.meters
        )
        self._slots = [
            WorkerSlot(
                CompactionWorker(
                    self._compactions,
                    self._txns,
                    snapshots,
                    self._locks,
                    catalogue,
                    self._executor,
                    config,
                    f"{self._name}-{number}",
                    self._config.txn.timeout_ms // HEARTBEATS_PER_TIMEOUT,
                    pool,
                    queue=self._fenced_compactions,
                ),
                config,
            )
            for number, pool in enumerate(slots_by_pool(config))
        ]

    def handlers(
        self, counts: CallCounts, trouble: Callable[[], str | None], is_stopping: Callable[[], bool]
    ) -> Mapping[str, Handler]:
        """RPC name to handler.

        `counts` are those of the calls to this server, `trouble` is what is wrong with it, `is_stopping` whether it is
        ending.
        """
        return {
            **session.handlers(self._config.values(), counts, self._catalog.uuid, trouble, is_stopping),
            **databases.handlers(self._catalog),
            **tables.handlers(self._catalog),
            **table_lists.handlers(self._catalog),
            **partitions.handlers(self._catalog),
            **partition_lists.handlers(self._catalog),
            **functions.handlers(self._catalog.functions),
            **constraints.handlers(self._catalog.constraints),
            **privileges.handlers(self._catalog.roles, self._catalog.privileges),
            **security.handlers(self._catalog.tokens),
            **views.handlers(self._catalog.views, self._materializations),
            **transactions.handlers(self._txns, self._write_ids, self._special_calls),
            **replication.handlers(self._replication),
            **min_history.handlers(self._min_history),
            **rebuilds.handlers(self._rebuilds),
            **locks.handlers(self._locks, self._polling, self._trino_guard, self._txns.abort_txn),
            **compactions.handlers(self._compactions, self._compaction_metrics, self._config.compaction.crowded_deltas),
            **why.handlers(self._why),
            **orphans.handlers(self._orphans),
            **removals.handlers(self._catalog.removals),
            **statistics.handlers(self._catalog),
            **events.handlers(self._events, self._catalog),
        }

    def services(self) -> list[Service]:
        """What runs in the background."""
        housekeeping, compaction, events = self._config.housekeeping, self._config.compaction, self._config.events
        reaper_ms, reaper_delay_ms = housekeeping.reaper_times_ms(self._config.txn.timeout_ms)
        first_alerts_ms = min(FIRST_ALERTS_MS, self._config.alerts.interval_ms)
        found = [
            Service("AcidHouseKeeper", reaper_ms, partial(_done, self._housekeeper.run_once), reaper_delay_ms),
            Service("AcidTxnCleaner", housekeeping.txn_cleaner_interval_ms, partial(_done, self._txn_cleaner.run_once)),
            Service("EventCleaner", events.clean_interval_ms, partial(_done, self._event_cleaner.run_once)),
            Service(
                "CompactionHouseKeeper",
                compaction.housekeeper_interval_ms,
                partial(_done, self._compaction_housekeeper.run_once),
            ),
            Service("removals", REMOVALS_INTERVAL_MS, self._catalog.tidy),
        ]
        if housekeeping.metrics_on:
            found.append(Service("AcidMetrics", housekeeping.metrics_interval_ms, self._metrics.run_once))
            alerts = Service(
                "AcidMetricLogger", self._config.alerts.interval_ms, self._alerts.run_once, first_alerts_ms
            )
            found.append(alerts)
        if compaction.initiator_on:
            found.append(Service("Initiator", compaction.check_interval_ms, self._initiator.run_once))
        if compaction.cleaner_on:
            found.append(Service("Cleaner", compaction.cleaner_interval_ms, self._clean))
        found += [Service(WORKER, compaction.worker_sleep_ms, slot.run_once) for slot in self._slots]
        return [measured(service, self.meters) for service in found]

    def samples(self) -> list[Sample]:
        """All figures of this server; those of the present state are the leader's, which takes them."""
        return [
            *(self.gauges.samples() if self.lease.is_held else ()),
            *self.meters.samples(),
            Sample("leader", self.lease.is_held),
            Sample("database_trips_total", self._db.calls, (), Kind.COUNTER),
        ]

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

    def release_waiters(self, loop: asyncio.AbstractEventLoop) -> None:
        """Answer all calls that wait for a lock; the server stops."""
        loop.call_soon_threadsafe(self._polling.close)

    def _clean(self) -> CleanerRun | None:
        run = self._cleaner.run_once()
        return run if run.removed or run.cleaned or run.failed else None


def _done(run_once: Callable[[], Any]) -> Any:
    """What a run did; None if it did nothing."""
    run = run_once()
    return run if any(dataclasses.astuple(run)) else None
