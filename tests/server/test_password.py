"""The password of an external Postgres: every way to give it lets a real server in, and nothing shows it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import psycopg2
import pytest

from hive_acid import connect
from hive_acid.errors import MetaError
from hive_acid.wire import ttypes
from metastore.store.connections.address import conninfo_of
from metastore.store.embedded.server import EmbeddedPostgres
from tests.databases import administer
from tests.observe.scrape import get
from tests.ports import free_port
from tests.waiting import until

PASSWORD = "geh:eim/w@rt %5"
"""With what separates the parts of a URL and of a line of .pgpass."""
WRONG = "falsch"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The host of a Postgres that lets nobody in without the password: an address of the loopback of its own."""
    home, number = tmp_path_factory.mktemp("guarded"), os.getpid()
    host = f"127.66.{number >> 8 & 255}.{number & 255 or 1}"
    settings = {"fsync": "off", "listen_addresses": host}
    with EmbeddedPostgres(home, settings) as url:
        with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE ROLE ann LOGIN PASSWORD %s", (PASSWORD,))
            connection.commit()
        hba = home / "cluster" / "pg_hba.conf"
        hba.write_text("local all metastore trust\nhost all all 127.0.0.0/8 scram-sha-256\n")
        administer(url, "CREATE DATABASE guarded OWNER ann")
        administer(url, "SELECT pg_reload_conf()")
        yield host


def ways(host: str, home: Path, password: str) -> Mapping[str, tuple[list[str], dict[str, str]]]:
    """Arguments and environment by the way in which the password is given."""
    home.mkdir()
    plain = f"postgresql://ann@{host}/guarded"
    (home / "file").write_text(f"{password}\n")
    line = f"{host}:5432:guarded:ann:{password.replace(':', chr(92) + ':')}\n"
    for name in (".pgpass", "passfile"):
        (home / name).write_text(line)
        (home / name).chmod(0o600)
    (home / "services").write_text(f"[here]\nhost={host}\nuser=ann\ndbname=guarded\npassword={password}\n")
    in_url = f"postgresql://ann:{quote(password, '')}@{host}/guarded"
    return {
        "file": (["--database-url", plain, "--database-password-file", str(home / "file")], {}),
        "PGPASSWORD": (["--database-url", plain], {"PGPASSWORD": password}),
        "PGPASSFILE": (["--database-url", plain], {"PGPASSFILE": str(home / "passfile")}),
        ".pgpass": (["--database-url", plain], {"HOME": str(home)}),
        "passfile of the URL": (["--database-url", f"{plain}?passfile={home}/passfile"], {}),
        "URL of the environment": ([], {"HIVE_ACID_DATABASE_URL": in_url}),
        "file beside the environment": (
            ["--database-password-file", str(home / "file")],
            {"HIVE_ACID_DATABASE_URL": plain},
        ),
        "service": (["--database-url", "service=here"], {"PGSERVICEFILE": str(home / "services")}),
    }


WAYS = (
    "file",
    "PGPASSWORD",
    "PGPASSFILE",
    ".pgpass",
    "passfile of the URL",
    "URL of the environment",
    "file beside the environment",
    "service",
)


DEARER = ("file", "URL of the environment")
"""Ways that other commands may show, too."""


def command(*arguments: object, home: Path, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    line = [sys.executable, "-m", "metastore.cli", *map(str, arguments)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "HIVE_ACID_"))}
    return subprocess.Popen(
        line,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**kept, "HOME": str(home / "nobody"), "PYTHONPATH": os.getcwd(), **environment},
    )


def command_lines() -> str:
    """Of all processes of the machine."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_text(errors="replace"))
        except OSError:
            continue
    return "\n".join(lines)


def shown(password: str, words: str) -> bool:
    return any(form in words for form in (password, quote(password, ""), quote(password)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.sampled
def test_a_server_is_let_in_and_nothing_shows_the_password(way: str, guarded: str, tmp_path: Path) -> None:
    arguments, environment = ways(guarded, tmp_path / "home", PASSWORD)[way]
    place = ["--warehouse", tmp_path / "w", *arguments]
    port = free_port()
    running = command(
        "serve", "--port", 0, "--log-level", "debug", "--set", f"metastore.metrics.port={port}", *place,
        home=tmp_path, environment=environment,
    )  # fmt: skip
    assert running.stdout is not None
    seen = ""
    try:
        line = running.stdout.readline()
        assert line.startswith("listening on "), running.communicate(timeout=60)[1]
        with connect(line.strip().removeprefix("listening on "), timeout_ms=60_000) as connection:
            for round_ in range(2):  # every kind of connection, new, and again after all of them were lost
                connection.create_database(f"{way.replace(' ', '').replace('.', '').lower()}{round_}")
                connection.call("open_txns", ttypes.OpenTxnRequest(num_txns=1, user="u", hostname="h"))
                _end_all(guarded)
            until(lambda: get(port, "/readyz")[0] == 200)
        seen += command_lines() + "".join(get(port, page)[1] for page in ("/readyz", "/livez", "/metrics"))
        others = [
            ["config"],
            ["config", "--set", f"javax.jdo.option.ConnectionPassword={PASSWORD}"],
            ["doctor", *place],
        ]
        for other in others if way in DEARER else others[-1:]:
            seen += "".join(command(*other, home=tmp_path, environment=environment).communicate(timeout=120))
        asked = command(
            "export",
            tmp_path / "x.json",
            "--open-transactions",
            "aborted",
            *place,
            home=tmp_path,
            environment=environment,
        )
        seen += "".join(asked.communicate(timeout=60))
        assert asked.returncode == 0, seen
        seen += (tmp_path / "x.json").read_text()
    finally:
        running.send_signal(signal.SIGTERM)
        seen += "".join(running.communicate(timeout=60))
    assert running.returncode == 0
    assert "external Postgres" in seen
    assert not shown(PASSWORD, seen)


@pytest.mark.sampled
@pytest.mark.parametrize("way", WAYS)
def test_a_wrong_password_is_one_sentence_without_it(way: str, guarded: str, tmp_path: Path) -> None:
    arguments, environment = ways(guarded, tmp_path / "home", WRONG)[way]
    asked = command(
        "serve", "--port", 0, "--warehouse", tmp_path / "w", *arguments, home=tmp_path, environment=environment
    )
    out, words = asked.communicate(timeout=60)
    assert (asked.returncode, out) == (1, "")
    lines = words.strip().splitlines()
    assert len(lines) == 1, words
    assert lines[0].startswith("metastore: ")
    assert 'password authentication failed for user "ann"' in lines[0]
    assert not shown(WRONG, words)


def test_none_at_all(guarded: str, tmp_path: Path) -> None:
    url = f"postgresql://ann@{guarded}/guarded"
    asked = command(
        "serve", "--port", 0, "--warehouse", tmp_path / "w", "--database-url", url, home=tmp_path, environment={}
    )
    words = asked.communicate(timeout=60)[1]
    assert asked.returncode == 1
    assert words.startswith("metastore: ")
    assert "it wants a password, and none was given: name a file of it by --database-password-file" in words
    assert "not answer" not in words


@pytest.mark.parametrize(
    "url",
    [
        "host=h password=secret nonsense=1",
        "host=h password=se cret",
        "host=h PASSWORD='secret",
        "host=127.0.0.1 port=x password=secret",
        "postgresql://h/d?password=secret&nonsense=1",
        "postgresql://h/d?password=se&cret",
        "postgresql:///d?host=/x&password=secret&port=abc",
        "postgresql://u:secret@h/d?nonsense=1",
        "postgresql://u:se@cret@h/d",
        "postgresql://u:secret@h:x/d",
        "postgresql://u:sec/ret@h/d",
        "postgresql://u:123/cret@h/d",
        "postgresql://u:sec%zzret@h/d",
        "postgresql://u:secret@[::1/d",
        "mysql://u:secret@h/d?x@y",
        "jdbc:postgresql://u:secret@h/d",
        "u:secret@h",
    ],
)
def test_an_address_that_cannot_be_read_is_said_without_its_password(url: str) -> None:
    with pytest.raises(MetaError) as caught:
        conninfo_of(url)
    words = str(caught.value)
    for part in ("sec", "cret", "123"):
        assert part not in words


def _end_all(host: str) -> None:
    """End the server's connections, as a restart of the database does."""
    with closing(psycopg2.connect(host=host, user="ann", password=PASSWORD, dbname="guarded")) as one:
        one.autocommit = True
        with one.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND usename = 'ann'"
            )
