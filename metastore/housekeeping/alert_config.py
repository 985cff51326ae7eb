"""When figures are worth a warning: Hive's settings (transactions.md §4.12, §7.3)."""

from __future__ import annotations

from dataclasses import dataclass

from metastore.settings import duration, fraction, integer

_WARNING = "Logged as a warning when it is older."
_ERROR = "Logged as an error when it is older."


@dataclass(frozen=True)
class AlertConfig:
    """Thresholds of the alerts that are logged, and how often; ages in milliseconds."""

    interval_ms: int = duration(
        "metastore.compactor.acid.metrics.logger.frequency",
        "360m",
        "Pause between two looks at the thresholds below.",
        least_ms=1,
        hive="360m",
    )
    initiated_warning_ms: int = duration(
        "metastore.compactor.oldest.initiated.compaction.time.threshold.warning",
        "1h",
        f"The oldest compaction that waits for a worker. {_WARNING}",
        hive="1h",
    )
    initiated_error_ms: int = duration(
        "metastore.compactor.oldest.initiated.compaction.time.threshold.error",
        "12h",
        f"The oldest compaction that waits for a worker. {_ERROR}",
        hive="12h",
    )
    open_txn_warning_ms: int = duration(
        "metastore.compactor.oldest.open.txn.threshold.warning",
        "24h",
        f"The oldest open transaction that is no replay. {_WARNING}",
        hive="24h",
    )
    open_txn_error_ms: int = duration(
        "metastore.compactor.oldest.open.txn.threshold.error",
        "72h",
        f"The oldest open transaction that is no replay. {_ERROR}",
        hive="72h",
    )
    repl_txn_warning_ms: int = duration(
        "metastore.compactor.oldest.replication.open.txn.threshold.warning",
        "14d",
        f"The oldest open transaction that replays one. {_WARNING}",
        hive="14d",
    )
    repl_txn_error_ms: int = duration(
        "metastore.compactor.oldest.replication.open.txn.threshold.error",
        "21d",
        f"The oldest open transaction that replays one. {_ERROR}",
        hive="21d",
    )
    aborted_txn_warning_ms: int = duration(
        "metastore.compactor.oldest.uncleaned.aborted.txn.time.threshold.warning",
        "24h",
        f"The oldest aborted transaction that has left files. {_WARNING}",
        hive="24h",
    )
    aborted_txn_error_ms: int = duration(
        "metastore.compactor.oldest.uncleaned.aborted.txn.time.threshold.error",
        "48h",
        f"The oldest aborted transaction that has left files. {_ERROR}",
        hive="48h",
    )
    uncleaned_ms: int = duration(
        "metastore.compactor.oldest.uncleaned.compaction.time.threshold",
        "24h",
        f"The oldest compaction that waits for the Cleaner. {_WARNING}",
        hive="24h",
    )
    write_ids_warning: int = integer(
        "metastore.compactor.txn.to.writeid.record.threshold.warning",
        "500000",
        "Write ids on record. Logged as a warning when there are as many.",
        hive="500000",
    )
    write_ids_error: int = integer(
        "metastore.compactor.txn.to.writeid.record.threshold.error",
        "1000000",
        "Write ids on record. Logged as an error when there are as many.",
        hive="1000000",
    )
    components_warning: int = integer(
        "metastore.compactor.completed.txn.components.record.threshold.warning",
        "500000",
        "Committed writes since the last compactions. Logged as a warning when there are as many.",
        hive="500000",
    )
    components_error: int = integer(
        "metastore.compactor.completed.txn.components.record.threshold.error",
        "1000000",
        "Committed writes since the last compactions. Logged as an error when there are as many.",
        hive="1000000",
    )
    failed_part: float = fraction(
        "metastore.compactor.failed.compaction.ratio.threshold",
        "0.01",
        "Compactions that failed, were refused or not initiated, of all that have ended. Logged when they are more.",
        hive="0.01",
    )
    crowded_tables: int = integer(
        "metastore.compactor.tables.with.aborted.txn.threshold",
        "1",
        "Tables with too many aborted transactions. Logged as an error when there are more.",
        hive="1",
    )
    disabled_writes: int = integer(
        "metastore.compactor.number.of.disabled.compaction.tables.threshold",
        "1",
        "Writes to tables with no_auto_compaction, since their last compaction. Logged when there are as many.",
        hive="1",
    )
    initiator_warning_ms: int = duration(
        "metastore.compactor.long.running.initiator.threshold.warning",
        "6h",
        "A run of the Initiator. Logged as a warning when it takes longer.",
        hive="6h",
    )
    initiator_error_ms: int = duration(
        "metastore.compactor.long.running.initiator.threshold.error",
        "12h",
        "A run of the Initiator. Logged as an error when it takes longer.",
        hive="12h",
    )
    versions_ms: int = duration(
        "metastore.compactor.worker.detect.multiple.versions.threshold",
        "24h",
        "How far back workers of several versions are looked for; several are logged as a warning.",
        hive="24h",
    )
