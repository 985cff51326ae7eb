"""The figures of transactions, locks and write ids (transactions.md §4.12)."""

import logging

import pytest

from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.metrics import AcidMetrics, take_gauges
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.states import LockType
from metastore.observe.gauges import Gauges
from metastore.observe.meanings import MEANINGS
from metastore.store.database import Database
from metastore.txn.states import TxnType

from .conftest import OWNER, Clients


def test_a_fresh_system(db: Database) -> None:
    values = take_gauges(db, HousekeepingConfig())
    assert {name: value for name, value in values.items() if value} == {}
    assert {"num_open_transactions", "num_locks", "compaction_num_txn_to_writeid"} <= values.keys()
    assert values.keys() <= MEANINGS.keys()


def test_everything_is_counted(db: Database, clients: Clients) -> None:
    aborted, ordinary, replayed = clients.open(), clients.write(), clients.open(TxnType.REPL_CREATED)
    clients.open(TxnType.READ_ONLY)
    clients.txns.abort_txns([aborted])
    clients.cycle("u")
    clients.locks.lock(LockRequest((LockComponent(LockType.SHARED_READ, "db"),), OWNER))
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            "UPDATE txn SET started_at = started_at - make_interval(hours => txn_id::int) WHERE txn_id <= 3"
        )
        connection.exec_driver_sql("UPDATE lock_component SET acquired_at = acquired_at - interval '1 hour'")
    values = take_gauges(db, HousekeepingConfig())
    counts = {name: value for name, value in values.items() if "_age_" not in name}
    assert counts == {
        "num_open_transactions": 3,
        "num_open_repl_transactions": 1,
        "num_open_non_repl_transactions": 2,
        "oldest_open_repl_txn_id": replayed,
        "oldest_open_non_repl_txn_id": ordinary,
        "num_aborted_transactions": 1,
        "oldest_aborted_txn_id": aborted,
        "num_locks": 2,
        "compaction_num_txn_to_writeid": 2,
        "compaction_num_completed_txn_components": 1,
        "tables_with_x_aborted_transactions": 0,
    }
    hours = {name: int(value) // 3600 for name, value in values.items() if "_age_" in name}
    assert hours == {
        "oldest_aborted_txn_age_in_sec": 1,
        "oldest_open_non_repl_txn_age_in_sec": 2,
        "oldest_open_repl_txn_age_in_sec": 3,
        "oldest_lock_age_in_sec": 1,
        "oldest_ready_for_cleaning_age_in_sec": 0,
    }


def test_tables_crowded_with_aborts(db: Database, clients: Clients) -> None:
    clients.txns.abort_txns([clients.write(table="t") for _ in range(3)])
    clients.txns.abort_txns([clients.write(table="u") for _ in range(2)])
    values = take_gauges(db, HousekeepingConfig(crowded_table_aborts=2))
    assert values["tables_with_x_aborted_transactions"] == 1


def test_gauges_are_filled_and_logged(db: Database, clients: Clients, caplog: pytest.LogCaptureFixture) -> None:
    gauges = Gauges()
    metrics = AcidMetrics(db, HousekeepingConfig(), gauges, versions_ms=86_400_000, most_targets=100)
    assert gauges.snapshot() == {}
    txn_id = clients.open()
    with caplog.at_level(logging.INFO, "metastore.metrics"):
        metrics.run_once()
    assert gauges.snapshot()["num_open_transactions"] == 1
    assert "num_open_transactions=1" in caplog.text
    clients.commit(txn_id)
    metrics.run_once()
    assert gauges.snapshot()["num_open_transactions"] == 0
