"""Figures that compactors report of tables and partitions with many deltas (transactions.md §4.12)."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.store.database import Database
from metastore.txn.names import stored_name, stored_partition


@dataclass(frozen=True, slots=True)
class MetricTarget:
    """What a figure is about; `type` is CompactionMetricsMetricType of the Thrift interface."""

    db: str
    table: str
    partition: str | None
    type: int

    def stored(self) -> tuple[str, str, str | None, int]:
        """The key in the database. Raises MetaError for a partition that is not ``key=value``."""
        partition = stored_partition(self.partition) if self.partition else None
        return stored_name(self.db), stored_name(self.table), partition, self.type


class CompactionMetrics:
    """The figures, each kept only while it reaches its threshold."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def update(self, target: MetricTarget, value: int, threshold: int) -> None:
        """Store a figure, or forget it if it is below the threshold."""
        if value < threshold:
            self.remove(target)
        else:
            self._db.call("update_compaction_metric", *target.stored(), value)

    def remove(self, target: MetricTarget) -> None:
        """Forget a figure; one that is not there is fine."""
        self._db.call("remove_compaction_metric", *target.stored())
