"""Databases that will not do are refused at the start by one sentence."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg2
import pytest

from hive_acid.errors import MetaError
from metastore.store.config import StoreConfig
from metastore.store.database import Database
from metastore.store.fitness import examine
from tests.databases import administer, url_of
from tests.ports import free_port


def examined(url: str) -> None:
    db = Database(url)
    try:
        examine(db, StoreConfig())
    finally:
        db.close()


def test_a_sound_database(db_url: str) -> None:
    examined(db_url)


def test_one_that_is_not_utf_8(postgres_url: str) -> None:
    administer(postgres_url, "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    try:
        with pytest.raises(MetaError, match=r"the database latin keeps text as LATIN1, .*ENCODING 'UTF8'"):
            examined(url_of(postgres_url, "latin"))
    finally:
        administer(postgres_url, "DROP DATABASE latin WITH (FORCE)")


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
        running = subprocess.Popen(command, user=user, group=group, stderr=subprocess.DEVNULL)
    else:
        running = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        url = f"postgresql://metastore@127.0.0.1:{port}/{name}"
        deadline = time.monotonic() + 10
        while True:
            try:
                psycopg2.connect(url).close()
                break
            except psycopg2.OperationalError:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield url
    finally:
        running.terminate()
        running.wait()
        shutil.rmtree(place)


def test_a_pooler_is_refused(bouncer: str) -> None:
    with pytest.raises(MetaError, match="a connection pooler stands before the database"):
        examined(bouncer)
