"""Settings of the AcidHouseKeeper."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.settings import duration, integer


@dataclass(frozen=True)
class HousekeepingConfig:
    """When the AcidHouseKeeper runs and what it keeps."""

    interval_ms: int = duration("metastore.acid.housekeeper.interval", "60s", "Pause between two runs.")
    finished_retention_ms: int = duration(
        "metastore.txn.finished.retention", "10m", "A finished transaction is remembered at least this long."
    )
    timeout_batch: int = integer(
        "metastore.txn.timeout.batch", "1000", "Transactions timed out in one database transaction."
    )
