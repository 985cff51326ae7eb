"""Says in the log what has gone too far, by the thresholds of Hive (transactions.md §4.12)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from metastore.housekeeping.alert_config import AlertConfig
from metastore.observe.gauges import Gauges
from metastore.observe.log import event

LOG = logging.getLogger("metastore.alerts")


@dataclass(frozen=True, slots=True)
class Alert:
    """A figure beyond its threshold; `level` is one of `logging`, `action` what to do."""

    level: int
    name: str
    value: float
    threshold: float
    action: str


def alerts(values: Mapping[str, float], config: AlertConfig, initiator_s: float = 0.0) -> list[Alert]:
    """What is beyond its threshold in the figures by name; `initiator_s` is the length of the Initiator's run."""
    found: list[Alert] = []

    def check(name: str, warning: float | None, error: float | None, action: str, value: float | None = None) -> None:
        number = values.get(name, 0.0) if value is None else value
        for level, threshold in ((logging.ERROR, error), (logging.WARNING, warning)):
            if threshold is not None and number >= threshold:
                found.append(Alert(level, name, number, threshold, action))
                return

    check(
        "compaction_oldest_enqueue_age_in_sec",
        config.initiated_warning_ms / 1000,
        config.initiated_error_ms / 1000,
        "start more workers: metastore.compactor.worker.threads; `metastore why` of its table says what it waits for",
    )
    check(
        "oldest_open_non_repl_txn_age_in_sec",
        config.open_txn_warning_ms / 1000,
        config.open_txn_error_ms / 1000,
        f"`metastore why --txn {values.get('oldest_open_non_repl_txn_id', 0):.0f}` says whose it is; end or abort it",
    )
    check(
        "oldest_open_repl_txn_age_in_sec",
        config.repl_txn_warning_ms / 1000,
        config.repl_txn_error_ms / 1000,
        "let the replication end it, or abort it and bootstrap again",
    )
    check(
        "oldest_aborted_txn_age_in_sec",
        config.aborted_txn_warning_ms / 1000,
        config.aborted_txn_error_ms / 1000,
        f"`metastore why --txn {values.get('oldest_aborted_txn_id', 0):.0f}` says where its files are; the Cleaner "
        "removes them",
    )
    check(
        "oldest_ready_for_cleaning_age_in_sec",
        config.uncleaned_ms / 1000,
        None,
        "`metastore compactions --status 'ready for cleaning'` lists them, `metastore why` says what they wait for",
    )
    check(
        "compaction_num_txn_to_writeid",
        config.write_ids_warning,
        config.write_ids_error,
        "end old transactions and let the Cleaner remove aborted ones: they keep write ids on record",
    )
    check(
        "compaction_num_completed_txn_components",
        config.components_warning,
        config.components_error,
        "let compactions run: the Initiator and a worker must be on somewhere",
    )
    check(
        "compaction_failed_part", config.failed_part, None, "`metastore compactions --status failed`", _failed(values)
    )
    check(
        "tables_with_x_aborted_transactions",
        None,
        config.crowded_tables + 1,
        "find out why their writers abort; the Cleaner removes what they left",
    )
    check(
        "num_writes_to_disabled_compaction_table",
        config.disabled_writes or None,
        None,
        "take no_auto_compaction away from those tables, or compact them by hand",
    )
    check(
        "compaction_initiator_cycle_age_in_sec",
        config.initiator_warning_ms / 1000,
        config.initiator_error_ms / 1000,
        "look at the file system: the Initiator lists the directories of what was written",
        initiator_s,
    )
    check("compaction_num_worker_versions", 2, None, "bring all workers to the same version")
    return found


class AlertLogger:
    """Looks at the latest figures and logs what is beyond its threshold."""

    def __init__(self, gauges: Gauges, config: AlertConfig, initiator_s: Callable[[], float]) -> None:
        """`initiator_s` says how long the Initiator's run takes, or its last one took."""
        self._gauges = gauges
        self._config = config
        self._initiator_s = initiator_s

    def run_once(self) -> int:
        """Log what there is to say; how many alerts that were."""
        found = alerts(self._gauges.snapshot(), self._config, self._initiator_s())
        for alert in found:
            words = {"figure": alert.name, "value": alert.value, "threshold": alert.threshold, "action": alert.action}
            event(LOG, alert.level, "alert", **words)
        return len(found)


def _failed(values: Mapping[str, float]) -> float:
    """The part of compactions that failed, were refused or not initiated; 0 where none has ended."""
    bad = sum(values.get(f"compaction_num_{state}", 0) for state in ("failed", "refused", "did_not_initiate"))
    ended = bad + values.get("compaction_num_succeeded", 0)
    return bad / ended if bad else 0.0
