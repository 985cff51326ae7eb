"""The clock is put back by hours while no server runs: the next one goes on with everything, at once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from metastore.app import App, ServeOptions
from metastore.config import Config
from metastore.store.database import Database
from tests.caller import Caller, refused
from tests.catalog.conftest import ACID, table
from tests.waiting import stays, until

SETTINGS = {
    "hive.txn.timeout": "2s",
    "metastore.acid.housekeeper.interval": "100ms",
    "metastore.acid.txn.cleaner.interval": "100ms",
    "metastore.compactor.cleaner.run.interval": "100ms",
    "hive.compactor.cleaner.retention.time.seconds": "1s",
    "metastore.housekeeping.lease.time": "1s",
    "metastore.compactor.worker.threads": "0",
}
AT_REST = {"metastore.housekeeping.threads.on": "false"}


def put_back(db: Database, hours: int) -> None:
    """As if the clock had been put back: all that happened, and is to be, looks later by as much."""
    with db.engine.begin() as connection:
        connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
        times = connection.exec_driver_sql(
            "SELECT table_schema, table_name, string_agg(format('%%1$I = %%1$I + make_interval(hours => %%2$s)',"
            f" column_name, {hours}), ', ') FROM information_schema.columns"
            " WHERE data_type = 'timestamp with time zone' AND table_schema NOT IN ('pg_catalog', 'information_schema')"
            " AND (table_schema, table_name) IN (SELECT table_schema, table_name FROM information_schema.tables"
            " WHERE table_type = 'BASE TABLE') GROUP BY 1, 2"
        ).all()
        assert {"txn", "lock_component", "lease", "compaction", "directory_removal"} <= {name for _, name, _ in times}
        for schema, name, moved in times:
            connection.exec_driver_sql(f'UPDATE "{schema}"."{name}" SET {moved}')


@pytest.mark.slow
@pytest.mark.parametrize("is_killed", [False, True])
def test_the_next_server_goes_on(db_url: str, db: Database, tmp_path: Path, is_killed: bool) -> None:
    warehouse = tmp_path / "warehouse"

    @contextmanager
    def server(settings: dict[str, str]) -> Iterator[Caller]:
        config = Config.parse([f"{key}={value}" for key, value in settings.items()])
        app = App(ServeOptions("127.0.0.1", 0, None, db_url, str(warehouse), config))
        try:
            with Caller(app.start()) as client:
                yield client
        finally:
            app.stop()

    with server(SETTINGS | AT_REST) as client:
        for name in ("gone", "kept"):
            client.call("create_table", table(name, parameters=ACID))
            (warehouse / name / "data").write_text("row")
        silent, reader = client.open(2)
        client.lock("r default/kept")
        client.call("drop_table", "default", "gone", True)
        assert (warehouse / "gone" / "data").exists(), "the reader may need it"
        client.commit(reader)
        (alive,) = client.open()  # behind the drop, and so in nobody's way
        last_event = client.call("get_current_notificationEventId").eventId
        last_lock = max(lock.lockid for lock in client.locks())
    with db.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE compaction SET clean_after = clock_timestamp() + interval '1 minute'")
        connection.exec_driver_sql(
            "INSERT INTO lease (name, holder, epoch, expires_at) VALUES ('services', %s, 7, clock_timestamp())",
            ("host-1-dead" if is_killed else "",),
        )
    put_back(db, 5)

    with server(SETTINGS) as client:
        started = time.monotonic()
        (new,) = client.open()
        assert new > alive

        def living(*txn_ids: int) -> bool:
            for txn_id in txn_ids:
                client.heartbeat(txn_id)
            return True

        stays(lambda: living(alive, new), 4)
        until(lambda: not (warehouse / "gone").exists(), between=lambda: living(alive, new))
        until(lambda: silent in aborted(db), between=lambda: living(alive, new))
        until(lambda: client.locks() == [], between=lambda: living(alive, new))
        assert time.monotonic() - started < 25
        with refused("TxnAbortedException"):
            client.commit(silent)
        client.commit(alive)
        client.commit(new)
        assert client.lock("r default/kept").lockid > last_lock
        client.call("create_table", table("after"))
        assert client.call("get_current_notificationEventId").eventId > last_event


def aborted(db: Database) -> list[int]:
    with db.engine.connect() as connection:
        return list(connection.exec_driver_sql("SELECT txn_id FROM txn WHERE state = 'a'").scalars())
