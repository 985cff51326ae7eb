"""Time that passes beside services that run."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from metastore.txn.models import TxnOwner
from metastore.txn.service import TxnService
from tests.compaction.crash.table import pass_a_day


def test_time_gives_way_to_who_locks_rows_in_another_order(db: Database) -> None:
    first, last = TxnService(db, TxnConfig()).open_txns(2, TxnOwner("ann", "host1"))
    beat = "UPDATE txn SET heartbeat_at = clock_timestamp() WHERE txn_id = %s"
    times = "SELECT started_at FROM txn WHERE txn_id = %s"
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"

    def started(txn_id: int) -> datetime:
        with db.engine.connect() as connection:
            return connection.exec_driver_sql(times, (txn_id,)).scalar_one()

    before = started(first)
    with ThreadPoolExecutor(1) as pool:
        with db.engine.begin() as service, db.engine.connect() as looking:
            service.exec_driver_sql(beat, (last,))
            day = pool.submit(pass_a_day, db, [])
            while not looking.exec_driver_sql(waiting).scalar_one():
                looking.rollback()
            service.exec_driver_sql(beat, (first,))
        day.result(timeout=30)
    assert [(before - started(txn_id)).days for txn_id in (first, last)] == [1, 1]
