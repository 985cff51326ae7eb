"""What the metastore does by itself, done by the test: compactions in the test's own Spark session, Cleaner, time-outs.

The services are the real ones, over the database of a running server that has its own switched off.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import SparkSession

from hive_acid.compaction_job import CompactionJob, CompactionResult, TellProgress, unheard
from hive_acid.spark.compact.compaction import compact
from hive_acid.spark.limits import DEFAULT, Limits
from metastore.catalog.config import CatalogConfig
from metastore.catalog.service import CatalogService
from metastore.compaction.cleaner.cleaner import Cleaner, CleanerRun
from metastore.compaction.config import CompactionConfig
from metastore.compaction.models import CompactionRequest
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.snapshots import Snapshots
from metastore.compaction.states import CompactionState, CompactionType
from metastore.compaction.worker.worker import CompactionWorker
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.housekeeper import AcidHouseKeeper
from metastore.lock.service import LockService
from metastore.slices.compaction_catalogue import CatalogueOfCompaction
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from metastore.txn.service import TxnService
from metastore.txn.write_ids.service import WriteIdService


class SessionExecutor:
    """Runs compaction jobs in a Spark session that is there already."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self.limits = Limits()

    def run(self, job: CompactionJob, cancelled: threading.Event, report: TellProgress = unheard) -> CompactionResult:
        return compact(self._spark, CompactionJob.from_json(json.loads(job.to_json())), limits=self.limits)

    def close(self) -> None:
        pass


class House:
    """The services of one metastore."""

    def __init__(self, db: Database, warehouse: Path, spark: SparkSession) -> None:
        self._db = db
        config = CompactionConfig(aborted_threshold=0, cleaner_retry_ms=0, staging_age_ms=0)
        txns, write_ids, locks = TxnService(db, TxnConfig()), WriteIdService(db), LockService(db)
        snapshots = Snapshots(txns, write_ids)
        self._catalog = CatalogService(db, str(warehouse), CatalogConfig())
        catalogue = CatalogueOfCompaction(self._catalog)
        self._compactions = CompactionService(db, config)
        self._executor = SessionExecutor(spark)
        self._worker = CompactionWorker(
            self._compactions, txns, snapshots, locks, catalogue, self._executor, config, "here", 1000
        )
        self._cleaner = Cleaner(self._compactions, snapshots, catalogue, config)

    def compact(
        self, table: str, kind: str, partitions: Iterable[str | None], limits: Limits = DEFAULT
    ) -> set[CompactionState]:
        """Compact some partitions of ``db.table``, None for an unpartitioned one; how that ended."""
        self._executor.limits = limits
        db, _, name = table.partition(".")
        states = set()
        for partition in partitions:
            asked = self._compactions.compact(CompactionRequest(CompactionType[kind.upper()], db, name, partition))
            while self._worker.run_once():
                pass
            states.add(self._compactions.get(asked.id).state)
        return states

    def work(self) -> None:
        """Run what is asked for already."""
        while self._worker.run_once():
            pass

    def clean(self) -> CleanerRun:
        """Remove what nobody can need any more."""
        return self._cleaner.run_once()

    def tidy(self) -> None:
        """Drop what nobody finishes any more, and remove the directories of what is dropped."""
        self._catalog.tidy()

    def time_out(self) -> None:
        """Abort all transactions that are open, as if no heartbeat had come for a day."""
        with self._db.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE txn SET heartbeat_at = heartbeat_at - interval '1 day'")
        AcidHouseKeeper(self._db, HousekeepingConfig(), TxnConfig()).run_once()
