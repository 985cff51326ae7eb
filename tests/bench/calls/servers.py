"""The metastores that are measured: ours, started here with an empty database, and another one by its address."""

from __future__ import annotations

import contextlib
import itertools
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import psycopg2

from hive_acid.demo.daemon import Daemon
from metastore.store.embedded.server import EmbeddedPostgres
from tests.authority import Authority
from tests.bench.calls.driver import ask, connect
from tests.bench.machine import cpu_s

SETTINGS = {"hive.compactor.initiator.on": "false"}
"""No table of the bench exists, so there is nothing to compact."""
_POSTGRES = {"max_connections": "240"}
_databases = itertools.count(1)


@dataclass(frozen=True)
class Server:
    """One metastore. `process` and `postgres` are process ids; 0 for a server that was not started here."""

    name: str
    uri: str
    process: int = 0
    postgres: int = 0

    @property
    def processes(self) -> list[int]:
        """The roots of its process trees."""
        return [process for process in (self.process, self.postgres) if process]

    def cpu_s(self) -> tuple[float, float]:
        """CPU time used until now by the metastore and by its Postgres."""
        return (
            cpu_s([self.process]) if self.process else 0.0,
            cpu_s([self.postgres]) if self.postgres else 0.0,
        )


class Machine:
    """One Postgres in a directory of its own, and our metastores on it."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._postgres = EmbeddedPostgres(work / "postgres", _POSTGRES)
        self.postgres_url = ""
        self.postgres_process = 0

    def __enter__(self) -> Machine:
        self.postgres_url = self._postgres.start()
        self.postgres_process = int((self._work / "postgres/cluster/postmaster.pid").read_text().split()[0])
        return self

    def __exit__(self, *_: object) -> None:
        self._postgres.stop()

    @contextlib.contextmanager
    def server(self, name: str = "hive-acid", settings: Mapping[str, str] = SETTINGS) -> Iterator[Server]:
        """Our metastore on a fresh database."""
        with self.daemon(self.fresh_database(), settings) as daemon:
            yield Server(name, daemon.uri, daemon.pid, self.postgres_process)

    def guarded(self) -> Mapping[str, Mapping[str, str]]:
        """The settings of metastores that are guarded in one way each, and of one that is not."""
        enforced = {
            "metastore.authorization": "grants",
            "metastore.authorization.trust.set.ugi": "true",
            "hive.users.in.admin.role": "root",
        }
        encrypted = Authority(self._work / "ca").issue("metastore", "IP:127.0.0.1").shown_by_a_server
        audited = {"metastore.audit.file": str(self._work / "audit")}
        every = {"open": {}, "rights": enforced, "audit": audited, "TLS": encrypted}
        every["all three"] = {**enforced, **audited, **encrypted}
        return {name: {**SETTINGS, **settings} for name, settings in every.items()}

    def fresh_database(self) -> str:
        """The URL of a new, empty database."""
        name = f"bench_{next(_databases)}"
        connection = psycopg2.connect(self.postgres_url)
        connection.autocommit = True
        with contextlib.closing(connection), connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
        return self.postgres_url.replace("/metastore?", f"/{name}?")

    @contextlib.contextmanager
    def daemon(self, database_url: str, settings: Mapping[str, str] = SETTINGS) -> Iterator[Daemon]:
        """``metastore serve`` on a database."""
        with Daemon(Path(tempfile.mkdtemp(dir=self._work)), settings, database_url) as daemon:
            yield daemon

    @contextlib.contextmanager
    def scraped(self) -> Iterator[tuple[str, int]]:
        """Our metastore with an HTTP port for figures and health: its address."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address: tuple[str, int] = free.getsockname()
        with self.daemon(self.fresh_database(), {**SETTINGS, "metastore.metrics.port": str(address[1])}):
            yield address

    def start_seconds(self, database_url: str) -> float:
        """From the command to its first answered call."""
        began_at = time.monotonic()
        with self.daemon(database_url) as daemon, contextlib.closing(connect(daemon.uri)) as sock:
            ask(sock, "get_open_txns")
            return time.monotonic() - began_at
