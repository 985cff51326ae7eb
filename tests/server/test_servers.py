"""Several servers on one database: any of them serves any call, one of them keeps house, and another one follows."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from metastore.store.database import Database
from tests.caller import Caller, refused
from tests.waiting import until

SETTINGS = {
    "hive.txn.timeout": "1s",
    "metastore.acid.housekeeper.interval": "100ms",
    "metastore.acid.txn.cleaner.interval": "100ms",
    "metastore.housekeeping.lease.time": "1s",
    "metastore.compactor.worker.threads": "0",
}


class Server:
    """A daemon in a process of its own."""

    def __init__(self, db_url: str, warehouse: Path) -> None:
        settings = [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]
        place = ["--port", "0", "--database-url", db_url, "--warehouse", str(warehouse)]
        command = [sys.executable, "-m", "metastore.cli", "serve", *place, *settings]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self.process.stdout is not None
        self.uri = self.process.stdout.readline().strip().removeprefix("listening on ")

    def end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.communicate(timeout=60)


@pytest.fixture
def servers(db_url: str, tmp_path: Path) -> Iterator[list[Server]]:
    started = [Server(db_url, tmp_path / "warehouse") for _ in range(2)]
    yield started
    for server in started:
        if server.process.poll() is None:
            server.end(signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
def test_a_leader_that_is_gone_is_followed(servers: list[Server], db: Database, number: signal.Signals) -> None:
    until(lambda: holder(db) is not None)
    leader = next(server for server in servers if f"-{server.process.pid}-" in str(holder(db)))
    (other,) = [server for server in servers if server is not leader]
    with Caller(leader.uri) as client, Caller(other.uri) as elsewhere:
        (silent,) = client.open()
        elsewhere.heartbeat(silent)
        (committed,) = client.open()
        elsewhere.commit(committed)
        if number is signal.SIGSTOP:
            leader.process.send_signal(number)
        else:
            leader.end(number)
        # Whoever keeps house times the silent one out.
        until(lambda: silent in aborted(db))
        assert f"-{other.process.pid}-" in str(holder(db))
        with refused("TxnAbortedException"):
            elsewhere.commit(silent)
        if number is signal.SIGSTOP:
            leader.process.send_signal(signal.SIGCONT)
            (following,) = client.open()
            elsewhere.heartbeat(following)
            assert f"-{other.process.pid}-" in str(holder(db)), "the woken one does not take it back"


def test_a_server_without_services_leaves_them_to_others(metastore: Callable[..., str], db: Database) -> None:
    with Caller(metastore(**{"metastore.housekeeping.threads.on": "false"})) as client:
        client.open()
    assert holder(db) is None
    with Caller(metastore()) as client:
        client.open()
    until(lambda: holder(db) is not None)


def holder(db: Database) -> str | None:
    """Who holds the lease now."""
    with db.engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT holder FROM lease WHERE expires_at > clock_timestamp()").scalar()
    return None if found is None else str(found)


def aborted(db: Database) -> list[int]:
    with db.engine.connect() as connection:
        return list(connection.exec_driver_sql("SELECT txn_id FROM txn WHERE state = 'a'").scalars())
