"""Databases that will not do are refused at the start by one sentence."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg2
import pytest

from hive_acid.errors import MetaError
from metastore.store.config import StoreConfig
from metastore.store.database import Database
from metastore.store.schema.fitness import examine, examine_owner
from metastore.store.schema.migrate import upgrade
from tests.databases import administer, url_of
from tests.ports import free_port
from tests.waiting import until


def examined(url: str) -> None:
    with opened(url) as db:
        examine(db, StoreConfig())


def opened(url: str) -> closing[Database]:
    return closing(Database(url))


def test_a_sound_database(db_url: str) -> None:
    examined(db_url)


def test_one_that_is_not_utf_8(postgres_url: str) -> None:
    administer(postgres_url, "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    try:
        with pytest.raises(MetaError, match=r"the database latin keeps text as LATIN1, .*ENCODING 'UTF8'"):
            examined(url_of(postgres_url, "latin"))
    finally:
        administer(postgres_url, "DROP DATABASE latin WITH (FORCE)")


MAKE = (
    "the user ann may not make the schema hive_acid in the database rights: .* GRANT CREATE ON DATABASE rights TO ann"
)
USE = "the user ann may not use the schema hive_acid of the database rights, which metastore has made: .*"
CHANGE = (
    "the schema hive_acid .* tables or functions that belong to metastore, and the user ann may not change them: .*"
)
MEMBER = "run GRANT metastore TO ann"
ALL_OF_SCHEMA = (
    "GRANT ALL ON SCHEMA hive_acid TO ann",
    "GRANT ALL ON ALL TABLES IN SCHEMA hive_acid TO ann",
    "GRANT ALL ON ALL SEQUENCES IN SCHEMA hive_acid TO ann",
)


@pytest.mark.parametrize(
    ("is_used", "granted", "told"),
    [
        (False, (), MAKE),
        (False, ("GRANT CREATE ON DATABASE rights TO ann",), None),
        (False, ("CREATE SCHEMA hive_acid AUTHORIZATION ann",), None),
        (False, ("CREATE SCHEMA hive_acid", "GRANT USAGE ON SCHEMA hive_acid TO ann"), USE + MEMBER),
        (True, ("GRANT CREATE ON DATABASE rights TO ann",), USE + MEMBER),
        (True, ALL_OF_SCHEMA, CHANGE + MEMBER),
        (True, ("GRANT metastore TO ann",), None),
        (
            False,
            ("REVOKE CONNECT ON DATABASE rights FROM PUBLIC",),
            'may not connect .* GRANT CONNECT ON DATABASE "rights"',
        ),
        (False, ("ALTER ROLE ann NOLOGIN",), 'lets nobody in by this address: role "ann" is not permitted to log in'),
        (False, ("ALTER ROLE ann CONNECTION LIMIT 0",), "lets nobody in by this address: too many connections"),
        (
            False,
            ("GRANT CREATE ON DATABASE rights TO ann", "DROP EXTENSION plpgsql"),
            'language "plpgsql" does not exist',
        ),
        (False, ("GRANT CREATE ON DATABASE rights TO ann", "ALTER ROLE ann SET statement_timeout = 900"), None),
    ],
)
def test_what_a_user_may_not_do_is_told_with_what_helps(
    postgres_url: str, is_used: bool, granted: tuple[str, ...], told: str | None
) -> None:
    """It was the driver's text: (psycopg2.errors.InsufficientPrivilege) permission denied for database."""
    administer(postgres_url, "CREATE ROLE ann LOGIN")
    administer(postgres_url, "CREATE DATABASE rights")
    url = url_of(postgres_url, "rights")
    try:
        if is_used:
            with opened(url) as db:
                upgrade(db)
        for statement in granted:
            administer(url, statement)
        with opened(url.replace("://metastore@", "://ann@")) as db:
            if told is None:
                examine(db, StoreConfig())
                upgrade(db)
                return
            with pytest.raises(MetaError, match=told) as caught:
                examine(db, StoreConfig())
                examine_owner(db)  # which an upgrade needs; who need not change anything does without
            assert "psycopg" not in str(caught.value)
    finally:
        administer(postgres_url, "DROP DATABASE rights WITH (FORCE)")
        administer(postgres_url, "DROP ROLE ann")


def test_an_upgrade_takes_longer_than_a_statement_may(postgres_url: str) -> None:
    administer(postgres_url, "CREATE DATABASE presets")
    try:
        for setting in ("statement_timeout = 2", "lock_timeout = 1"):
            administer(postgres_url, f"ALTER DATABASE presets SET {setting}")
        with opened(url_of(postgres_url, "presets")) as db:
            upgrade(db)
    finally:
        administer(postgres_url, "DROP DATABASE presets WITH (FORCE)")


def test_one_that_is_away_is_not_waited_for() -> None:
    started = time.monotonic()
    with pytest.raises(MetaError, match=r"does not answer: .*Connection refused"):
        examined("postgresql://nobody@127.0.0.1:1/none")
    assert time.monotonic() - started < 3


def test_what_is_no_address_of_a_postgres() -> None:
    for url in ("mysql://root:secret@h/db", "h", "postgresql://h/d?nonsense=1"):
        with pytest.raises(MetaError, match="is not the address of a Postgres") as caught:
            Database(url)
        assert "secret" not in str(caught.value)


def test_of_several_hosts_the_one_that_takes_writes_is_found(db_url: str, postgres_url: str, tmp_path: Path) -> None:
    socket = parse_qs(urlsplit(postgres_url).query)["host"][0]
    name = urlsplit(db_url).path
    db = Database(f"postgresql://metastore@/{name[1:]}?host={tmp_path},127.0.0.1,{socket}&port=5432,1,5432")
    try:
        examine(db, StoreConfig())
        assert db.call("pg_is_in_recovery") == [(False,)]
        with db.engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT 1").scalar_one() == 1
    finally:
        db.close()


@pytest.fixture(
    params=[
        ("transaction", "options", False),
        ("transaction", "", False),
        ("session", "options", False),
        ("transaction", "options", True),
    ],
    ids=str,
)
def bouncer(request: pytest.FixtureRequest, db_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """PgBouncer in a pool mode, that drops some settings of a session; the database may have ours of its own."""
    mode, ignored, has_own = request.param
    if has_own:
        with closing(psycopg2.connect(db_url)) as connection, connection.cursor() as cursor:
            cursor.execute(f"ALTER DATABASE {urlsplit(db_url).path[1:]} SET search_path = hive_acid")
            connection.commit()
    program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
    if not os.path.exists(program):
        pytest.skip("needs pgbouncer")
    place = Path("/tmp") / f"hive-acid-bouncer-{os.getpid()}"
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    port, parts = free_port(), urlsplit(db_url)
    socket, name = parse_qs(parts.query)["host"][0], parts.path[1:]
    (place / "users").write_text('"metastore" ""\n')
    (place / "bouncer.ini").write_text(
        f"[databases]\n{name} = host={socket} dbname={name} user=metastore\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nauth_type = trust\nauth_file = {place}/users\nunix_socket_dir =\n"
        f"pool_mode = {mode}\nignore_startup_parameters = {ignored}\ndefault_pool_size = 4\n"
    )
    command = [program, str(place / "bouncer.ini")]
    if os.geteuid() == 0:  # it must not run as root, and has to reach the socket's directory as we do
        group = os.stat(socket).st_gid
        user = pwd.getpwnam("nobody").pw_uid
        _let_in("nobody", db_url)
        running = subprocess.Popen(command, user=user, group=group, stderr=subprocess.DEVNULL)
    else:
        running = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        url = f"postgresql://metastore@127.0.0.1:{port}/{name}"
        until(lambda: _answers(url), 10)
        yield url
    finally:
        running.terminate()
        running.wait()
        shutil.rmtree(place)


def test_a_pooler_is_refused(bouncer: str) -> None:
    with pytest.raises(MetaError, match="a connection pooler stands before the database"):
        examined(bouncer)


def _let_in(user: str, url: str) -> None:
    """The embedded Postgres lets nobody in but its owner."""
    with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW ident_file")
        with open(cursor.fetchone()[0], "a") as file:
            file.write(f"owner {user} metastore\n")
        cursor.execute("SELECT pg_reload_conf()")


def _answers(url: str) -> bool:
    with suppress(psycopg2.OperationalError):
        psycopg2.connect(url).close()
        return True
    return False
