"""Settings of the services that keep house (transactions.md §5, §7.3)."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.settings import boolean, duration, integer

MAX_BATCHES = 2000
"""Batches of one kind in one run of a service that purges; what is left over is for the next."""

_RUNS_PER_TIMEOUT = 10
_LEAST_INTERVAL_MS, _LARGEST_INTERVAL_MS = 1_000, 60_000
_HEARTBEATS_PER_TIMEOUT = 3
"""So many clients send, Hive's and ours."""


@dataclass(frozen=True)
class HousekeepingConfig:
    """When the housekeeping runs, where, and what it keeps."""

    services_on: bool = boolean(
        "metastore.housekeeping.threads.on",
        "true",
        "Run the background services on this server when it is the leader.",
        hive="false",
        why="Somebody must keep house, and of several servers only the leader does.",
    )
    lease_ms: int = duration(
        "metastore.housekeeping.lease.time",
        "10s",
        "A leader that has not renewed its lease for this long is followed by another server.",
        least_ms=100,
    )
    interval_ms: int = duration(
        "metastore.acid.housekeeper.interval",
        "0s",
        "Pause between two runs of the AcidHouseKeeper, which ends what nobody heartbeats any more; 0: a tenth of "
        "hive.txn.timeout, but no less than 1 s and no more than 60 s.",
        aliases={"hive.timedout.txn.reaper.interval": "ms"},
        hive="60s",
        wiki="180s",
        why="A tenth of the time-out: locks of dead writers go soon after it, however short it is.",
    )
    first_run_delay_ms: int = duration(
        "hive.timedout.txn.reaper.start",
        "100s",
        "The AcidHouseKeeper's first run comes so long after the start, or after one interval if that is set and "
        "shorter, or after a third of hive.txn.timeout if it is not: clients that outlived a stop of the server can "
        "heartbeat first.",
        hive="gone",
        wiki="100s",
    )
    txn_cleaner_interval_ms: int = duration(
        "metastore.acid.txn.cleaner.interval",
        "10s",
        "Pause between two runs of the AcidTxnCleaner, which forgets what nobody needs of ended transactions.",
        least_ms=1,
        hive="10s",
    )
    finished_retention_ms: int = duration(
        "metastore.txn.finished.retention", "10m", "A finished transaction is remembered at least this long."
    )
    timeout_batch: int = integer(
        "metastore.txn.timeout.batch", "1000", "Transactions timed out in one database transaction.", least=1
    )
    purge_batch: int = integer(
        "metastore.txn.purge.batch", "5000", "Rows that one statement of the housekeeping removes.", least=1
    )
    metrics_on: bool = boolean(
        "metastore.acidmetrics.thread.on", "true", "Count transactions, locks and rows for the gauges.", hive="true"
    )
    metrics_interval_ms: int = duration(
        "metastore.acidmetrics.check.interval",
        "300s",
        "Pause between two such counts.",
        least_ms=1,
        hive="300s",
    )
    crowded_table_aborts: int = integer(
        "metastore.acidmetrics.table.aborted.txns.threshold",
        "1500",
        "Tables with more aborted write ids than this are counted in a gauge.",
        hive="1500",
    )

    def reaper_times_ms(self, txn_timeout_ms: int) -> tuple[int, int]:
        """The AcidHouseKeeper's interval and the delay of its first run, for this time-out of transactions."""
        if self.interval_ms:
            return self.interval_ms, min(self.first_run_delay_ms, self.interval_ms)
        interval_ms = min(max(txn_timeout_ms // _RUNS_PER_TIMEOUT, _LEAST_INTERVAL_MS), _LARGEST_INTERVAL_MS)
        return interval_ms, min(self.first_run_delay_ms, max(interval_ms, txn_timeout_ms // _HEARTBEATS_PER_TIMEOUT))
