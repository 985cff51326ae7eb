"""How long compactions took and how many failed, by type (transactions.md §4.12)."""

from __future__ import annotations

import threading

from hive_acid.compaction_job import CompactionJob, CompactionResult, TellProgress, unheard
from metastore.compaction.worker.executor import CompactionExecutor
from metastore.observe.meters import Meters


class TimedExecutor:
    """Another executor's work, measured."""

    def __init__(self, executor: CompactionExecutor, meters: Meters) -> None:
        self._executor = executor
        self._meters = meters

    def run(self, job: CompactionJob, cancelled: threading.Event, report: TellProgress = unheard) -> CompactionResult:
        """See `CompactionExecutor`."""
        with self._meters.compactions.of(job.type).run():
            return self._executor.run(job, cancelled, report)

    def close(self) -> None:
        """See `CompactionExecutor`."""
        self._executor.close()
