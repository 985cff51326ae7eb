"""What is logged when a figure has gone too far (transactions.md §4.12)."""

import logging
from typing import Any

import pytest

from metastore.config import Config
from metastore.housekeeping.alert_config import AlertConfig
from metastore.housekeeping.alerts import AlertLogger, alerts
from metastore.observe.gauges import Gauges

HOUR, DAY = 3600, 86_400
WARN, ERROR = logging.WARNING, logging.ERROR


@pytest.mark.parametrize(
    ("figures", "level"),
    [
        ({"compaction_oldest_enqueue_age_in_sec": HOUR - 1}, None),
        ({"compaction_oldest_enqueue_age_in_sec": HOUR}, WARN),
        ({"compaction_oldest_enqueue_age_in_sec": 12 * HOUR}, ERROR),
        ({"oldest_open_non_repl_txn_age_in_sec": DAY}, WARN),
        ({"oldest_open_non_repl_txn_age_in_sec": 3 * DAY}, ERROR),
        ({"oldest_open_repl_txn_age_in_sec": 13 * DAY}, None),
        ({"oldest_open_repl_txn_age_in_sec": 14 * DAY}, WARN),
        ({"oldest_open_repl_txn_age_in_sec": 21 * DAY}, ERROR),
        ({"oldest_aborted_txn_age_in_sec": DAY}, WARN),
        ({"oldest_aborted_txn_age_in_sec": 2 * DAY}, ERROR),
        ({"compaction_num_txn_to_writeid": 499_999}, None),
        ({"compaction_num_txn_to_writeid": 500_000}, WARN),
        ({"compaction_num_txn_to_writeid": 1_000_001}, ERROR),
        ({"compaction_num_completed_txn_components": 500_000}, WARN),
        ({"compaction_num_completed_txn_components": 1_000_000}, ERROR),
        ({"oldest_ready_for_cleaning_age_in_sec": 30 * DAY}, WARN),
        ({"compaction_num_failed": 1, "compaction_num_succeeded": 100}, None),
        ({"compaction_num_failed": 1, "compaction_num_succeeded": 99}, WARN),
        ({"compaction_num_refused": 1}, WARN),
        ({"compaction_num_did_not_initiate": 1}, WARN),
        ({"tables_with_x_aborted_transactions": 1}, None),
        ({"tables_with_x_aborted_transactions": 2}, ERROR),
        ({"compaction_num_worker_versions": 1}, None),
        ({"compaction_num_worker_versions": 2}, WARN),
        ({"num_writes_to_disabled_compaction_table": 1}, WARN),
    ],
)
def test_thresholds_of_the_table(figures: Any, level: Any) -> None:
    found = alerts(figures, AlertConfig())
    assert [alert.level for alert in found] == ([] if level is None else [level])
    assert all(alert.action for alert in found)


@pytest.mark.parametrize(("hours", "level"), [(5.9, None), (6, WARN), (12, ERROR)])
def test_a_long_run_of_the_initiator(hours: Any, level: Any) -> None:
    assert [alert.level for alert in alerts({}, AlertConfig(), hours * HOUR)] == ([] if level is None else [level])


def test_thresholds_are_settings() -> None:
    config = Config.parse(["metastore.compactor.oldest.open.txn.threshold.error=10s"]).alerts
    (alert,) = alerts({"oldest_open_non_repl_txn_age_in_sec": 11, "oldest_open_non_repl_txn_id": 7}, config)
    assert (alert.level, alert.threshold) == (ERROR, 10)
    assert "metastore why --txn 7" in alert.action


def test_they_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    gauges = Gauges()
    logger = AlertLogger(gauges, AlertConfig(), lambda: 0.0)
    assert logger.run_once() == 0
    gauges.replace({"compaction_num_txn_to_writeid": 2_000_000, "oldest_aborted_txn_age_in_sec": DAY})
    with caplog.at_level(logging.WARNING, "metastore.alerts"):
        assert logger.run_once() == 2
    levels = {record.levelno: record.getMessage() for record in caplog.records}
    assert "figure=compaction_num_txn_to_writeid value=2000000 threshold=1000000" in levels[ERROR]
    assert "figure=oldest_aborted_txn_age_in_sec" in levels[WARN]
