"""The pool of connections and its retries, on faults that are real."""

import contextlib
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import psycopg2
import pytest

from hive_acid.errors import MetaError
from metastore.store.config import StoreConfig
from metastore.store.connections.failures import is_lost
from metastore.store.connections.pool import RESERVE
from metastore.store.database import Database
from metastore.store.embedded.server import EmbeddedPostgres
from tests.waiting import until

NO_FSYNC = {"fsync": "off"}


@pytest.fixture
def schema(db: Database) -> Database:
    """A database with two functions to fail in."""
    run(
        db,
        "CREATE TABLE attempt (n serial, at timestamptz DEFAULT clock_timestamp())",
        "CREATE SEQUENCE attempts",
        # Sequences are not rolled back: they count the attempts of a statement that fails.
        "CREATE FUNCTION fail_until(good bigint, code text) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN"
        " IF nextval('attempts') < good THEN RAISE EXCEPTION 'made up' USING ERRCODE = code; END IF;"
        " RETURN currval('attempts'); END $$",
        "CREATE FUNCTION count_array(ids bigint[]) RETURNS integer LANGUAGE sql AS 'SELECT cardinality(ids)'",
        "CREATE FUNCTION echo_texts(texts text[]) RETURNS text[] LANGUAGE sql AS 'SELECT texts'",
    )
    return db


def run(db: Database, *statements: str) -> None:
    with db.engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def test_arrays(schema: Database) -> None:
    assert schema.call("count_array", []) == [(0,)]
    assert schema.call("count_array", [1, 2**62, -3]) == [(3,)]
    assert schema.call("count_array", set(range(1000))) == [(1000,)]
    texts = ["plain", "", "quo'te", 'dou"ble', "com,ma", "back\\slash", "{brace}", "per%cent", None]
    assert schema.call_one("echo_texts", texts) == (texts,)
    assert schema.call_one("echo_texts", [None, None]) == ([None, None],)


@pytest.mark.parametrize("code", ["40001", "40P01"])
def test_conflicts_are_repeated_within_limits(schema: Database, code: str) -> None:
    assert schema.call_one("fail_until", 4, code) == (4,)
    with pytest.raises(MetaError, match="11 conflicts"):
        schema.call("fail_until", 1000, code)


def test_other_errors_are_not_repeated(schema: Database) -> None:
    with pytest.raises(psycopg2.Error, match="made up"):
        schema.call("fail_until", 1000, "P0001")
    assert schema.call_one("fail_until", 0, "P0001") == (2,)


def test_connections_are_reused_and_limited(db_url: str) -> None:
    config = StoreConfig(max_connections=16)
    db = Database(db_url, config=config)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: db.call("pg_backend_pid"), range(50)))
        pids = {pid for rows in pool.map(lambda _: db.call("pg_backend_pid"), range(50)) for (pid,) in rows}
    assert 1 <= len(pids) <= config.cold_connections - RESERVE
    assert db.calls == 100
    db.close()
    with pytest.raises(MetaError, match="shutting down"):
        db.call("pg_backend_pid")


def test_broken_idle_connections_are_replaced(db: Database) -> None:
    """Even for calls that may not be repeated."""
    for _ in range(3):
        (pid,) = db.call_once("pg_backend_pid")[0]
        with contextlib.closing(db.dedicated_connection()) as other, other.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))


def test_connection_lost_in_a_call(schema: Database) -> None:
    run(
        schema,
        "CREATE FUNCTION lose() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN IF nextval('attempts') < 3 THEN"
        " PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1); END IF;"
        " RETURN currval('attempts'); END $$",
    )
    with pytest.raises(MetaError, match="lost during lose, the outcome is unknown"):
        schema.call_once("lose")
    assert schema.call_one("lose") == (3,)


@pytest.mark.parametrize(
    ("code", "kind", "lost"),
    [
        (None, psycopg2.DatabaseError, True),  # "server closed the connection unexpectedly", noticed half
        (None, psycopg2.OperationalError, True),
        ("57P01", psycopg2.OperationalError, True),
        ("57P02", psycopg2.OperationalError, True),
        ("08006", psycopg2.OperationalError, True),
        ("53300", psycopg2.OperationalError, False),
        ("22012", psycopg2.DataError, False),
        (None, psycopg2.ProgrammingError, False),
    ],
)
def test_the_end_of_a_connection_is_told_from_an_error_of_a_statement(
    code: str | None, kind: type[psycopg2.Error], lost: bool
) -> None:
    error = type(kind.__name__, (kind,), {"pgcode": code})("as psycopg2 says it") if code else kind("as it says it")
    assert is_lost(SimpleNamespace(closed=0), error) is lost
    assert is_lost(SimpleNamespace(closed=2), error)


def test_rides_through_a_crash_of_postgres_and_gives_up_when_it_is_gone(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / "data", NO_FSYNC)
    db = Database(server.start(), config=StoreConfig(retry_attempts=10, retry_interval_ms=200))
    with ThreadPoolExecutor(4) as pool:
        before = db.calls
        calls = [pool.submit(lambda: [db.call("pg_backend_pid") for _ in range(300)]) for _ in range(4)]
        until(lambda: db.calls > before + 8)
        os.kill(int(db.call("pg_backend_pid")[0][0]), signal.SIGKILL)  # all others are ended by the postmaster
        assert all(len(call.result()) == 300 for call in calls)
    server.stop()
    started = time.monotonic()
    with pytest.raises(MetaError, match="does not answer"):
        db.call("pg_backend_pid")
    assert 1.5 < time.monotonic() - started < 5
    db.close()
