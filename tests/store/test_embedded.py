"""The embedded Postgres: its data outlives everything, its processes do not."""

import contextlib
import os
import pwd
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import psycopg2
import pytest

from metastore.store.embedded import server as embedded
from metastore.store.embedded.server import EmbeddedPostgres, EmbeddedPostgresError, Supervision
from tests.waiting import stays, until

NO_FSYNC = {"fsync": "off"}
OWNER = """
import signal, sys
from metastore.store.embedded.server import EmbeddedPostgres
print(EmbeddedPostgres(sys.argv[1], settings={"fsync": "off"}).start(), flush=True)
signal.pause()
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "data"
    until(lambda: postgres_of(tmp_path) == [], 10, lambda: postgres_of(tmp_path))


def postgres_of(below: Path) -> list[int]:
    """Postgres servers on data directories below a directory."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if arguments and arguments[0].endswith(b"/postgres") and any(arg.startswith(bytes(below)) for arg in arguments):
            found.append(int(entry.name))
    return found


def query(url: str, statement: str) -> list[tuple[object, ...]]:
    connection = psycopg2.connect(url)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(statement)
        rows = list(cursor.fetchall()) if cursor.description else []
    connection.close()
    return rows


def postmaster(home: Path) -> int:
    """The process of Postgres; while it is started again it has none for a moment."""

    def pid() -> int:
        with contextlib.suppress(FileNotFoundError, IndexError):
            return int((home / "cluster" / "postmaster.pid").read_text().split()[0])
        return 0

    return until(pid)


def test_data_outlives_a_restart(home: Path) -> None:
    with EmbeddedPostgres(home) as url:
        query(url, "CREATE TABLE kept AS SELECT 1 AS one")
        names = ("fsync", "synchronous_commit", "full_page_writes", "listen_addresses", "server_encoding", "jit")
        settings = [query(url, f"SHOW {name}")[0][0] for name in names]
        assert settings == ["on", "on", "on", "", "UTF8", "off"]
        socket_directory = Path(str(query(url, "SHOW unix_socket_directories")[0][0]))
        assert socket_directory.stat().st_mode & 0o007 == 0
    assert not socket_directory.exists()
    with EmbeddedPostgres(home) as url:
        assert query(url, "SELECT * FROM kept") == [(1,)]


def test_stop_twice_and_start_again(home: Path) -> None:
    server = EmbeddedPostgres(home, NO_FSYNC)
    server.start()
    with pytest.raises(EmbeddedPostgresError, match="started already"):
        server.start()
    server.stop()
    server.stop()
    assert query(server.start(), "SELECT 1") == [(1,)]
    server.stop()


def test_second_owner_is_refused(home: Path) -> None:
    with (
        EmbeddedPostgres(home, NO_FSYNC) as url,
        pytest.raises(EmbeddedPostgresError, match=f"in use by the process {os.getpid()}"),
    ):
        EmbeddedPostgres(home, NO_FSYNC).start()
    del url


@pytest.mark.parametrize("victim", ["postmaster", "owner", "both"])
def test_recovers_from_kill(home: Path, victim: str) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(home)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    url = owner.stdout.readline().strip()
    query(url, "CREATE TABLE kept AS SELECT 1 AS one")
    left_sockets = Path(str(query(url, "SHOW unix_socket_directories")[0][0]))
    killed = postmaster(home)
    if victim != "owner":
        os.kill(killed, signal.SIGKILL)
    if victim == "postmaster":
        until(partial(is_another, home, killed))
    owner.kill()
    owner.wait()
    started = time.monotonic()
    with EmbeddedPostgres(home, NO_FSYNC) as url:
        assert query(url, "SELECT * FROM kept") == [(1,)]
    assert time.monotonic() - started < 15
    assert not left_sockets.exists()


def is_another(home: Path, former: int) -> bool:
    """Whether a Postgres has come up since `former`."""
    return (home / "cluster" / "postmaster.pid").exists() and postmaster(home) != former


def ask(url: str) -> int:
    """The process of the server that answers, which may take its time."""

    def pid() -> int:
        with contextlib.suppress(psycopg2.OperationalError):
            return int(str(query(url, "SELECT pg_backend_pid()")[0][0]))
        return 0

    return until(pid, 20)


def test_a_server_that_ends_is_started_again_at_the_same_address(home: Path) -> None:
    with EmbeddedPostgres(home, NO_FSYNC) as url:
        query(url, "CREATE TABLE kept AS SELECT 1 AS one")
        for _ in range(2):
            started = time.monotonic()
            former = postmaster(home)
            os.kill(former, signal.SIGKILL)
            until(partial(is_another, home, former))
            assert ask(url)
            assert time.monotonic() - started < 10
            assert query(url, "SELECT * FROM kept") == [(1,)]


@pytest.mark.slow
def test_whichever_of_its_processes_ends_it_answers_again(home: Path) -> None:
    """One that read for others, killed during a recovery, was not started again: every connection hung for ever."""
    chance = random.Random(31)
    with EmbeddedPostgres(home, NO_FSYNC) as url:
        query(url, "CREATE TABLE kept AS SELECT 1 AS one")
        for _ in range(12):
            for _ in range(chance.randint(1, 4)):
                children = children_of(postmaster(home))
                readers = [pid for pid, name in children.items() if "io worker" in name]
                if children:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(chance.choice(readers or sorted(children)), signal.SIGKILL)
                time.sleep(chance.uniform(0, 0.4))
            assert ask(f"{url}&connect_timeout=5")
        assert query(url, "SELECT * FROM kept") == [(1,)]


_COMES = """
import os, sys, psycopg2
os.setgid(int(sys.argv[1]))
os.setuid(int(sys.argv[2]))
psycopg2.connect(sys.argv[3])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize("user", ["postgres", "nobody", "daemon"])
def test_no_other_user_comes_in_by_the_socket(home: Path, user: str) -> None:
    """Nor one that Postgres runs as, in data from when everybody who reached the socket came in as well."""
    try:
        other = pwd.getpwnam(user)
    except KeyError:
        pytest.skip(f"there is no user {user}")
    with EmbeddedPostgres(home, NO_FSYNC):
        pass
    (home / "cluster" / "pg_hba.conf").write_text("local all all trust\n")
    with EmbeddedPostgres(home, NO_FSYNC) as url:
        group = os.stat(unquote(url.partition("host=")[2])).st_gid  # whose members reach the socket
        command = [sys.executable, "-c", _COMES, str(group), str(other.pw_uid), url]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/")
        assert "Peer authentication failed" in done.stderr or "Permission denied" in done.stderr
        assert query(url, "SELECT current_user") == [("metastore",)]
    for name in ("pg_hba.conf", "pg_ident.conf"):
        status = (home / "cluster" / name).stat()
        assert (status.st_uid, status.st_mode & 0o777) == ((home / "cluster").stat().st_uid, 0o600)


def children_of(parent: int) -> dict[int, str]:
    """The processes of a server, with their names."""
    found = {}
    for pid in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        with contextlib.suppress(OSError):
            found[int(pid)] = Path(f"/proc/{pid}/cmdline").read_text()
    return found


@pytest.mark.slow
def test_one_that_lets_nobody_in_is_ended_and_started_again(home: Path) -> None:
    """Some deaths of its processes during a recovery leave one that recovers for ever."""
    with EmbeddedPostgres(home, NO_FSYNC, supervision=Supervision(look_s=1.0, hung_s=2.0)) as url:
        query(url, "CREATE TABLE kept AS SELECT 1 AS one")
        former = postmaster(home)
        stays(lambda: postmaster(home) == former, 5, "one that lets us in goes on")
        os.kill(former, signal.SIGSTOP)
        until(lambda: is_another(home, former))
        assert ask(f"{url}&connect_timeout=2")
        assert query(url, "SELECT * FROM kept") == [(1,)]


def test_a_server_that_keeps_ending_is_given_up(home: Path) -> None:
    told: list[str] = []
    ended = threading.Event()

    def given_up(reason: str) -> None:
        told.append(reason)
        ended.set()

    server = EmbeddedPostgres(home, NO_FSYNC, given_up, Supervision(pauses_s=(0.0,) * 5))
    with server as url:
        former = 0

        def kill() -> None:
            nonlocal former
            with contextlib.suppress(OSError, ValueError, IndexError):
                if postmaster(home) != former and Path(f"/proc/{postmaster(home)}").exists():
                    former = postmaster(home)
                    os.kill(former, signal.SIGKILL)

        until(ended.is_set, between=kill)
    assert len(told) == 1
    assert "has ended 6 times within 10 min" in told[0]
    with pytest.raises(psycopg2.OperationalError):
        query(url, "SELECT 1")


def test_a_server_whose_directory_was_taken_away_leaves_the_next_one_alone(home: Path) -> None:
    """As by ``rm -r`` under a running metastore, and another one started there."""
    told: list[str] = []
    ended = threading.Event()
    first = EmbeddedPostgres(home, NO_FSYNC, given_up=lambda reason: (told.append(reason), ended.set()))  # type: ignore[arg-type]
    first.start()
    (former,) = postgres_of(home)
    home.rename(home.with_name("away"))
    with EmbeddedPostgres(home, NO_FSYNC) as url:
        os.kill(former, signal.SIGKILL)
        assert ended.wait(30)
        assert "has been removed or replaced under the running server" in told[0]
        assert query(url, "SELECT 1") == [(1,)]
    first.stop()


def test_a_server_whose_data_was_taken_away_is_not_started_again(home: Path) -> None:
    """It failed five times more, and said last that it could not open a file."""
    told: list[str] = []
    ended = threading.Event()
    server = EmbeddedPostgres(home, NO_FSYNC, given_up=lambda reason: (told.append(reason), ended.set()))  # type: ignore[arg-type]
    server.start()
    (former,) = postgres_of(home)
    (home / "cluster").rename(home / "away")
    os.kill(former, signal.SIGKILL)
    assert ended.wait(20)
    assert "has been removed or replaced under the running server" in told[0]
    server.stop()


def test_server_follows_its_owner(home: Path, tmp_path: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, str(home)], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline().startswith("postgresql://")
    assert postgres_of(tmp_path)
    owner.kill()
    owner.wait()
    until(lambda: postgres_of(tmp_path) == [], 10, lambda: postgres_of(tmp_path))
    assert not (home / "cluster" / "postmaster.pid").exists()


def test_orphaned_server_is_stopped_first(home: Path) -> None:
    """One that did not follow its owner, as under an init that does not pass the signal on."""
    with EmbeddedPostgres(home, NO_FSYNC) as url:
        query(url, "CREATE TABLE kept AS SELECT 1 AS one")
    command = [str(embedded.binaries() / "postgres"), "-D", str(home / "cluster"), "-c", "listen_addresses="]
    command += ["-c", f"unix_socket_directories=@hive-acid-test-{os.getpid()}", "-c", "fsync=off"]
    orphan = subprocess.Popen(
        EmbeddedPostgres(home)._unprivileged(command, home / "cluster"), stderr=subprocess.DEVNULL
    )
    until((home / "cluster" / "postmaster.pid").exists)
    assert orphan.poll() is None
    # The orphan is our child and not waited for: after its end it is a zombie, which must not count.
    with EmbeddedPostgres(home, NO_FSYNC) as url:
        assert query(url, "SELECT * FROM kept") == [(1,)]
    assert orphan.wait() == 0


def test_pid_of_another_process_in_the_way(home: Path) -> None:
    with EmbeddedPostgres(home, NO_FSYNC):
        pass
    (home / "cluster" / "postmaster.pid").write_text(f"{os.getpid()}\n{home}/cluster\n0\n5432\n\n\n0 0\n")
    with EmbeddedPostgres(home, NO_FSYNC) as url:
        assert query(url, "SELECT 1") == [(1,)]


def test_an_empty_trace_of_a_power_cut_is_not_in_the_way(home: Path) -> None:
    server = EmbeddedPostgres(home / "data", {"fsync": "off"})
    server.start()
    server.stop()
    (home / "data" / "cluster" / "postmaster.pid").touch()
    url = server.start()
    try:
        assert ask(url)
    finally:
        server.stop()


def test_the_reason_is_that_of_this_start(home: Path) -> None:
    server = EmbeddedPostgres(home / "data", {"fsync": "off"})
    server.start()
    server.stop()
    (home / "data" / "cluster" / "PG_VERSION").write_text("12\n")
    with pytest.raises(EmbeddedPostgresError, match=r"initialized by PostgreSQL version 12") as caught:
        server.start()
    assert "shut down" not in str(caught.value)


def test_half_made_cluster_is_made_anew(home: Path) -> None:
    (home / "cluster.new" / "base").mkdir(parents=True)
    with EmbeddedPostgres(home, NO_FSYNC) as url:
        assert query(url, "SELECT 1") == [(1,)]
    assert not (home / "cluster.new").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts Postgres as another user")
def test_closed_directories_stay_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    package = embedded.binaries().parents[1]
    for part in package.parent.glob(f"{package.name}*"):  # its shared libraries lie beside it
        shutil.copytree(part, closed / part.name, symlinks=True)
    monkeypatch.setenv("HIVE_ACID_POSTGRES_BIN", str(closed / package.name / "pginstall" / "bin"))
    with EmbeddedPostgres(closed / "data", NO_FSYNC) as url:
        assert query(url, "SELECT 1") == [(1,)]
        status = Path(f"/proc/{postmaster(closed / 'data')}/status").read_text()
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert "0" not in fields["Uid"].split()
        assert int(fields["CapEff"], 16) in (1 << 2, 1 << 1)
        assert fields["CapPrm"] == fields["CapEff"]
    assert closed.stat().st_mode & 0o777 == 0o700
    assert closed.stat().st_uid == 0


def test_no_binaries(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIVE_ACID_POSTGRES_BIN", str(tmp_path))
    with pytest.raises(EmbeddedPostgresError, match=r"no initdb in .*HIVE_ACID_POSTGRES_BIN"):
        EmbeddedPostgres(home).start()


def test_refused_start_says_why(home: Path) -> None:
    with pytest.raises(EmbeddedPostgresError, match="shared_buffers"):
        EmbeddedPostgres(home, {"shared_buffers": "nonsense"}).start()
    with EmbeddedPostgres(home, NO_FSYNC) as url:
        assert query(url, "SELECT 1") == [(1,)]


@pytest.mark.slow
def test_a_stop_in_the_middle_of_a_crash_recovery_ends(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / "data", NO_FSYNC)
    connection = psycopg2.connect(server.start())
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        os.kill(int(cursor.fetchone()[0]), signal.SIGKILL)  # the postmaster restarts them all
    until(lambda: "reinitializing" in (tmp_path / "data" / "postgres.log").read_text())
    started = time.monotonic()
    server.stop()
    assert time.monotonic() - started < 40
    with server:
        pass
