"""A real server whose Postgres goes away, has no room or no slots: all calls wait alike and answer truthfully."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg2
import pytest
from sqlalchemy import text

from hive_acid.wire import service, ttypes
from metastore.app import App, ServeOptions
from metastore.config import Config
from metastore.store import watch
from metastore.store.connections.undertaking import repeated
from metastore.store.database import Database
from metastore.store.embedded.server import EmbeddedPostgres, Supervision
from tests.caller import Caller, Refused
from tests.databases import administer, url_of
from tests.fuzz.run import SERVED, Connection
from tests.fuzz.stage import furnish
from tests.fuzz.values import Values
from tests.observe.scrape import get
from tests.ports import free_port
from tests.waiting import stays, until

pytestmark = pytest.mark.sampled

OUTAGE_S = 1.5
UNKNOWN = "the outcome is unknown"
DATABASE = "d"
ORC = {
    "inputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
    "outputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
}


def table(name: str) -> Any:
    storage = ttypes.StorageDescriptor(
        cols=[ttypes.FieldSchema(name="a", type="int")], serdeInfo=ttypes.SerDeInfo(parameters={}), **ORC
    )
    keys = [ttypes.FieldSchema(name="p", type="string")]
    return ttypes.Table(dbName=DATABASE, tableName=name, sd=storage, partitionKeys=keys, parameters={})


def function(name: str) -> Any:
    return ttypes.Function(
        functionName=name, dbName=DATABASE, className="c", ownerName="ann", ownerType=1, functionType=1
    )


def opening() -> Any:
    return ttypes.OpenTxnRequest(num_txns=1, user="ann", hostname="h")


READS: dict[str, tuple[Any, ...]] = {
    "get_databases": ("*",),
    "get_all_databases": (),
    "get_database": (DATABASE,),
    "get_all_tables": (DATABASE,),
    "get_tables": (DATABASE, "*"),
    "get_table": (DATABASE, "kept"),
    "get_table_meta": (DATABASE, "*", []),
    "get_partition_names": (DATABASE, "kept", -1),
    "get_partitions": (DATABASE, "kept", -1),
    "get_functions": (DATABASE, "*"),
    "get_all_functions": (),
    "get_catalogs": (),
    "get_role_names": (),
    "get_master_keys": (),
    "get_open_txns": (),
    "get_open_txns_info": (),
    "show_locks": (ttypes.ShowLocksRequest(),),
    "show_compact": (ttypes.ShowCompactRequest(),),
    "get_current_notificationEventId": (),
    "get_next_notification": (ttypes.NotificationEventRequest(lastEvent=0),),
    "get_metastore_db_uuid": (),
}
WRITES: dict[str, Callable[[str], tuple[Any, ...]]] = {
    "create_table": lambda name: (table(name),),
    "create_function": lambda name: (function(name),),
    "create_database": lambda name: (ttypes.Database(name=name),),
    "create_role": lambda name: (ttypes.Role(roleName=name, ownerName="ann"),),
    "add_master_key": lambda name: (name,),
    "open_txns": lambda name: (opening(),),
    "compact2": lambda name: (ttypes.CompactionRequest(dbname=DATABASE, tablename=name, type=2),),
}


@contextlib.contextmanager
def serving(url: str, warehouse: Path, **settings: str) -> Iterator[str]:
    pairs = {"metastore.housekeeping.threads.on": "false", **settings}
    config = Config.parse([f"{key.replace('__', '.')}={value}" for key, value in pairs.items()])
    app = App(ServeOptions("127.0.0.1", 0, None, url, str(warehouse), config))
    try:
        yield app.start()
    finally:
        app.stop()


class Postgres:
    """One that is started again `OUTAGE_S` after it was killed."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.server = EmbeddedPostgres(home, {"fsync": "off"}, supervision=Supervision(pauses_s=(OUTAGE_S,) * 100))
        self.url = self.server.start()

    def kill(self) -> None:
        os.kill(int((self.home / "cluster" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)

    def end_connections(self) -> None:
        with contextlib.closing(psycopg2.connect(self.url)) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    found = Postgres(tmp_path_factory.mktemp("mortal"))
    yield found
    found.server.stop()


@pytest.fixture(scope="module")
def uri(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving(postgres.url, tmp_path_factory.mktemp("warehouse")) as address:
        with Caller(address) as ann:
            ann.call("create_database", ttypes.Database(name=DATABASE))
            ann.call("create_table", table("kept"))
        yield address


@pytest.mark.parametrize("is_warm", [True, False])
def test_every_call_waits_for_the_database_alike(postgres: Postgres, uri: str, is_warm: bool) -> None:
    callers = [Caller(uri) for _ in (*READS, *WRITES)]
    calls = {**READS, **{name: make(f"{name}_{is_warm}".lower()) for name, make in WRITES.items()}}
    if is_warm:
        for caller, (method, arguments) in zip(callers, READS.items(), strict=False):
            caller.call(method, *arguments)
    postgres.kill()
    time.sleep(0.1)
    started = time.monotonic()
    try:
        for caller, (method, arguments) in zip(callers, calls.items(), strict=True):
            caller.send(method, *arguments)
        for caller in callers:
            caller.receive()
        assert time.monotonic() - started > OUTAGE_S / 2, "there was no outage"
    finally:
        for caller in callers:
            caller.close()


@pytest.mark.parametrize("is_warm", [False, True])
def test_no_method_says_less_while_the_database_is_away(postgres: Postgres, tmp_path: Path, is_warm: bool) -> None:
    """Each method, with arguments by a seed, while Postgres is killed and comes back, twice."""
    name = f"methods_{is_warm}".lower()  # of its own, since hostile calls drop what others need
    administer(postgres.url, f"CREATE DATABASE {name}")
    url = url_of(postgres.url, name)
    with serving(url, tmp_path / "w", metastore__acid__truncate__wait="0ms") as address:
        with Caller(address) as ann:
            ids = furnish(ann)
        where = urlsplit(address)

        def ask(number: int, method: str) -> tuple[str, str]:
            values = Values(random.Random(f"{is_warm}/{method}/{number}"), str(tmp_path), ids)
            connection = Connection(str(where.hostname), int(where.port or 0))
            try:
                return connection.call(method, values.arguments(method, service))
            except (OSError, EOFError) as error:
                return "no answer", str(error)
            finally:
                connection.close()

        if is_warm:
            for method in SERVED:
                ask(0, method)
        with ThreadPoolExecutor(len(SERVED)) as pool:
            found = []
            for number in (1, 2):
                postgres.kill()
                asked = [(method, pool.submit(ask, number, method)) for method in SERVED]
                found += [(method, *answer.result()) for method, answer in asked]
    wrong = [f"{method}: {words}" for method, _, words in found if words]
    assert not wrong, "\n".join(wrong)
    assert sum(outcome == "fine" for _, outcome, _ in found) > len(found) / 10


def test_connections_that_are_lost_under_way(postgres: Postgres, uri: str) -> None:
    """Reads always succeed, writes are done, or not known to be; what is done is there afterwards."""
    ended = threading.Event()
    done: dict[str, set[str]] = {method: set() for method in WRITES}

    def work(number: int) -> int:
        chance = random.Random(number)
        count = 0
        with Caller(uri) as caller:
            while not ended.is_set():
                count += 1
                if chance.random() < 0.5:
                    method = chance.choice(sorted(READS))
                    caller.call(method, *READS[method])
                    continue
                method = chance.choice(sorted(WRITES))
                name = f"n{number}_{count}"
                try:
                    caller.call(method, *WRITES[method](name))
                except Refused as refused:
                    if UNKNOWN not in refused.message:
                        raise
                else:
                    done[method].add(name)
        return count

    with ThreadPoolExecutor(12) as pool:
        workers = [pool.submit(work, number) for number in range(12)]
        try:
            for turn in range(30):
                time.sleep(0.1)
                with contextlib.suppress(psycopg2.OperationalError):
                    postgres.end_connections()
                if turn in (10, 20):
                    postgres.kill()
                    time.sleep(OUTAGE_S)
        finally:
            ended.set()
        counts = [worker.result() for worker in workers]
    assert min(counts) > 3
    with Caller(uri) as caller:
        assert done["create_table"] <= set(caller.call("get_all_tables", DATABASE))
        assert done["create_database"] <= set(caller.call("get_all_databases"))
        assert done["create_function"] <= set(caller.call("get_functions", DATABASE, "*"))
        assert done["create_role"] <= set(caller.call("get_role_names"))
        assert done["compact2"] <= {
            one.tablename for one in caller.call("show_compact", READS["show_compact"][0]).compacts
        }
    assert all(done.values())


SLOW_COMMIT = """
CREATE TABLE IF NOT EXISTS thing (n int);
TRUNCATE thing;
CREATE OR REPLACE FUNCTION linger() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END $$;
DROP TRIGGER IF EXISTS lingers ON thing;
CREATE CONSTRAINT TRIGGER lingers AFTER INSERT ON thing DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION linger();
"""


@pytest.mark.parametrize(("fault", "attempts"), [("cut", 1), ("terminated", 2), ("crash", 2)])
def test_what_became_of_a_commit_is_asked(postgres: Postgres, uri: str, fault: str, attempts: int) -> None:
    """A commit that was done is done, whoever has heard the answer; one that was not is done again."""
    begun: list[tuple[int, int]] = []
    with contextlib.closing(Database(postgres.url)) as db:

        def work() -> None:
            with db.engine.begin() as connection:
                pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
                connection.execute(text("INSERT INTO thing VALUES (1)"))
                begun.append((connection.connection.dbapi_connection.fileno(), pid))  # type: ignore[union-attr]

        def fail() -> None:
            descriptor, pid = begun[0]
            if fault == "cut":
                with socket.fromfd(descriptor, socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                    sock.shutdown(socket.SHUT_RDWR)
            else:
                os.kill(pid, signal.SIGTERM if fault == "terminated" else signal.SIGKILL)

        with db.engine.begin() as connection:
            connection.execute(text(SLOW_COMMIT))
        timer = threading.Timer(0.25, fail)
        timer.start()
        repeated(20.0, work)
        timer.join()
        with db.engine.begin() as connection:
            assert connection.execute(text("SELECT count(*) FROM thing")).scalar_one() == 1
    assert len(begun) == attempts


def test_a_database_that_stays_away_is_one_sentence(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / "data", {"fsync": "off"})
    port = free_port()
    patience = {"hive__hmshandler__retry__interval": "100ms", "metastore__metrics__port": str(port)}
    with serving(server.start(), tmp_path / "w", **patience) as uri:
        callers = [Caller(uri) for _ in (*READS, *WRITES)]
        with Caller(uri) as ann:
            ann.call("create_database", ttypes.Database(name=DATABASE))
            ann.call("create_table", table("kept"))
            assert get(port, "/readyz")[0] == 200
            server.stop()
            calls = {**READS, **{name: make(name) for name, make in WRITES.items()}}
            started = time.monotonic()
            for caller, (method, arguments) in zip(callers, calls.items(), strict=True):
                caller.send(method, *arguments)
            for caller, method in zip(callers, calls, strict=True):
                with pytest.raises(Refused, match="the database does not answer, nothing was done: ") as refused:
                    caller.receive()
                assert not re.fullmatch("Internal error processing [a-z_]*", refused.value.message), method
            assert time.monotonic() - started < 6
            assert ann.call("getStatus") == ttypes.fb_status.WARNING
            assert "connection" in ann.call("getStatusDetails")
            assert get(port, "/readyz")[0] == 503
            assert get(port, "/livez")[0] == 200
        for caller in callers:
            caller.close()


def test_a_server_that_ends_says_so(db_url: str, tmp_path: Path) -> None:
    """It still answers while its services end."""
    port = free_port()
    config = Config.parse([f"metastore.metrics.port={port}", "metastore.housekeeping.threads.on=false"])
    app = App(ServeOptions("127.0.0.1", 0, None, db_url, str(tmp_path), config))
    said: list[Any] = []
    try:
        with Caller(app.start()) as ann:
            assert ann.call("getStatus") == ttypes.fb_status.ALIVE

            def ask() -> None:
                said.extend([ann.call("getStatus"), ann.call("getStatusDetails"), get(port, "/readyz")[0]])

            app._stack.callback(ask)
            app.stop()
    finally:
        app.stop()
    assert said == [ttypes.fb_status.STOPPING, "the server is stopping", 503]


def test_few_slots_are_made_do_with(postgres_url: str, db_url: str, tmp_path: Path) -> None:
    """As with a CONNECTION LIMIT, or when others have taken nearly all of them."""
    name = db_url.rpartition("/")[2].partition("?")[0]
    administer(postgres_url, f"CREATE ROLE few LOGIN CONNECTION LIMIT 5; ALTER DATABASE {name} OWNER TO few")
    administer(
        db_url,
        "DO $$ DECLARE one text; BEGIN FOR one IN SELECT format('%I.%I', schemaname, tablename) FROM pg_tables"
        " WHERE schemaname = 'hive_acid' LOOP EXECUTE 'ALTER TABLE ' || one || ' OWNER TO few'; END LOOP;"
        " FOR one IN SELECT p.oid::regprocedure::text FROM pg_proc p WHERE pronamespace = 'hive_acid'::regnamespace"
        " LOOP EXECUTE 'ALTER FUNCTION ' || one || ' OWNER TO few'; END LOOP;"
        " ALTER SCHEMA hive_acid OWNER TO few; END $$",
    )
    try:
        with serving(db_url.replace("metastore@", "few@"), tmp_path / "w") as uri:
            with Caller(uri) as ann:
                ann.call("create_database", ttypes.Database(name=DATABASE))
                ann.call("create_table", table("kept"))

            def work(number: int) -> float:
                longest = 0.0
                with Caller(uri) as caller:
                    for turn in range(12):
                        started = time.monotonic()
                        for method, arguments in list(READS.items())[turn % 3 :: 3]:
                            caller.call(method, *arguments)
                        caller.commit(caller.begin())
                        longest = max(longest, time.monotonic() - started)
                return longest

            with ThreadPoolExecutor(16) as pool:
                assert max(pool.map(work, range(16))) < 15
    finally:
        administer(postgres_url, f"ALTER DATABASE {name} OWNER TO metastore")
        administer(db_url, "REASSIGN OWNED BY few TO metastore; DROP OWNED BY few")
        administer(postgres_url, "DROP ROLE few")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=220m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("needs to mount a file system")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("is_found_by", ["a call", "a look"])
def test_a_full_disk_is_the_reason_until_there_is_room_again(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_found_by: str
) -> None:
    monkeypatch.setattr(watch, "ROOM_INTERVAL_S", 3600.0 if is_found_by == "a call" else 0.5)
    port = free_port()
    with (
        EmbeddedPostgres(small_disk / "data", {"fsync": "off", "max_wal_size": "64MB"}) as url,
        serving(url, tmp_path / "w", metastore__metrics__port=str(port)) as uri,
        Caller(uri) as ann,
    ):
        ann.call("create_database", ttypes.Database(name=DATABASE))
        filler = small_disk / "filler"
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"x" * 65536)
        if is_found_by == "a call":
            with pytest.raises(Refused, match=r"no disk space left, nothing was done: .*No space left on device"):
                for number in range(2000):
                    ann.call("create_table", table(f"t{number}"))
        else:
            until(lambda: get(port, "/readyz")[0] == 503, 10)
        assert get(port, "/readyz")[0] == 503
        assert "No space left" in get(port, "/readyz")[2]
        assert ann.call("getStatus") == ttypes.fb_status.WARNING
        stays(lambda: get(port, "/readyz")[0] == 503, 2, "it has asked since")
        filler.unlink()
        until(lambda: get(port, "/readyz")[0] == 200, 10)
        ann.call("create_table", table("later"))
