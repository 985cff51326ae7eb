"""Figures that compactors report of tables and partitions with many deltas (transactions.md §4.12)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from metastore.observe.gauges import Figure, labels
from metastore.store.database import Database
from metastore.store.leases import Calls
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


@dataclass(frozen=True, slots=True)
class CrowdedTable:
    """A table with too many deltas: the place with the most, in how many places, and what the Initiator says of it."""

    db: str
    table: str
    partition: str | None
    deltas: int
    places: int
    decision: str | None


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

    def crowded(self, tables: Collection[tuple[str, str]], more_than: int) -> list[CrowdedTable]:
        """Those of the tables (database, name) with more than so many deltas in one place, when last looked at."""
        dbs, names = [stored_name(db) for db, _ in tables], [stored_name(table) for _, table in tables]
        rows = self._db.call("crowded_tables", dbs, names, more_than)
        return [CrowdedTable(*row) for row in rows]


def take_compaction_gauges(db: Calls, versions_ms: int, most_targets: int, at_most: int) -> list[Figure]:
    """The figures of queue and history (transactions.md §4.12); counts end at `at_most`, ages are in seconds.

    Workers and Initiators are looked for as far back as `versions_ms`. Of each figure of deltas the `most_targets`
    tables and partitions with the most are named.
    """
    rows = db.call("compaction_gauges", versions_ms, most_targets, at_most)
    return [Figure(name, value, labels(**labelled)) for name, labelled, value in rows]
