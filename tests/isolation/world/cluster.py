"""A Postgres that can be restarted, and servers on it that can be killed: processes as an operator would run them."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Self
from urllib.parse import quote, unquote

from metastore.store.embedded.server import EmbeddedPostgres
from tests.ports import free_port
from tests.waiting import comes

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0

Address = tuple[str, int]


class Postgres:
    """A Postgres whose URL stays the same over restarts: its socket directory is reached by a link."""

    def __init__(self, work: Path) -> None:
        self._home = work / "postgres"
        self._link = work / "socket"
        self._running: EmbeddedPostgres | None = None
        self.url = ""

    def start(self) -> None:
        """Start it on what the last one left."""
        # Killed processes lose nothing that they gave to the operating system: no fsync is needed for these tests.
        self._running = EmbeddedPostgres(self._home, settings={"fsync": "off", "max_connections": "200"})
        url = self._running.start()
        place = unquote(url.partition("host=")[2])
        fresh = self._link.with_suffix(".new")
        fresh.symlink_to(place)
        fresh.rename(self._link)
        self.url = url.replace(quote(place, safe=""), quote(str(self._link), safe=""))

    def stop(self, immediately: bool = False) -> None:
        """Shut it down; `immediately` as by a crash: what was not flushed is lost."""
        if self._running is None:
            return
        if immediately:
            pid_file = self._home / "cluster" / "postmaster.pid"
            with contextlib.suppress(OSError, ValueError):
                os.kill(int(pid_file.read_text().splitlines()[0]), signal.SIGQUIT)
            comes(lambda: not pid_file.exists(), STOP_TIMEOUT_S)
        self._running.stop()
        self._running = None


class Server:
    """``metastore serve`` on a port that stays the same."""

    def __init__(self, name: str, work: Path, database_url: str, settings: Mapping[str, str]) -> None:
        self.name = name
        self.address: Address = ("127.0.0.1", free_port())
        self.log = work / f"{name}.log"
        self._command = [sys.executable, "-m", "metastore.cli", "serve", "--port", str(self.address[1])]
        self._command += ["--database-url", database_url, "--warehouse", str(work / "warehouse")]
        self._command += ["--log-level", "warning"]
        for key, value in settings.items():
            self._command += ["--set", f"{key}={value}"]
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> bool:
        """Start it and wait until it listens; False if it gives up, as it does when there is no database."""
        with self.log.open("a") as log:
            self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log, text=True)
        return self._first_line().startswith("listening on ")

    def _first_line(self) -> str:
        process = self._process
        assert process is not None
        assert process.stdout is not None
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=lambda: lines.put(process.stdout.readline()), daemon=True).start()  # type: ignore[union-attr]
        try:
            return lines.get(timeout=START_TIMEOUT_S)
        except queue.Empty:
            return ""

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def freeze(self) -> None:
        """Stop it in the middle of whatever it does, to go on with that later: a machine that was suspended."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """End it as an operator would."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.kill()

    def crashes(self) -> list[str]:
        """The last lines of all tracebacks in its log."""
        found, inside = [], False
        for line in self.log.read_text().splitlines() if self.log.exists() else ():
            if line.startswith("Traceback "):
                inside = True
            elif inside and line[:1].strip():
                found.append(line)
                inside = False
        return found


class Proxy:
    """The fault proxy before one server, as a process of its own."""

    def __init__(self, target: Address, seed: str, rate: float) -> None:
        self.address: Address = ("127.0.0.1", free_port())
        options = ["--port", str(self.address[1]), "--target", str(target[1]), "--seed", seed, "--rate", str(rate)]
        command = [sys.executable, "-m", "tests.isolation.world.proxy", *options]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def stop(self) -> str:
        """End it; returns what it did."""
        if self._process.poll() is None:
            self._process.terminate()
        return self._process.communicate(timeout=STOP_TIMEOUT_S)[0].strip()


class Cluster:
    """One Postgres, several servers, a fault proxy before each of them; a context manager."""

    def __init__(self, work: Path, *, servers: int, settings: Mapping[str, str], seed: int, fault_rate: float) -> None:
        self._work, self._count, self._settings = work, servers, settings
        self._seed, self._fault_rate = seed, fault_rate
        self.warehouse = work / "warehouse"
        self.postgres = Postgres(work)
        self.servers: list[Server] = []
        self._proxies: list[Proxy] = []
        self.faults: list[str] = []

    def __enter__(self) -> Self:
        try:
            self.postgres.start()
            for number in range(self._count):
                server = Server(f"server{number}", self._work, self.postgres.url, self._settings)
                self.servers.append(server)
                if not server.start():
                    raise RuntimeError(f"{server.name} did not start: {server.log.read_text()[-2000:]}")
                if self._fault_rate:
                    self._proxies.append(Proxy(server.address, f"{self._seed}/{number}", self._fault_rate))
        except BaseException:
            self.stop()
            raise
        return self

    def addresses(self, by_proxy: bool) -> list[Address]:
        """Where clients connect."""
        if by_proxy and self._proxies:
            return [proxy.address for proxy in self._proxies]
        return [server.address for server in self.servers]

    def crashes(self) -> list[str]:
        """The last lines of all tracebacks in the servers' logs."""
        return [line for server in self.servers for line in server.crashes()]

    def stop(self) -> None:
        """End everything."""
        self.faults += [proxy.stop() for proxy in self._proxies]
        self._proxies = []
        for server in self.servers:
            server.stop()
        self.postgres.stop()

    def __exit__(self, *_: object) -> None:
        self.stop()
