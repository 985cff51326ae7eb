"""A metastore of the demo's own: started as a user would start it, and stopped with nothing left behind."""

from __future__ import annotations

import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Self

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0


class Daemon:
    """``metastore serve`` as a child process; a context manager."""

    def __init__(self, work: Path, settings: Mapping[str, str], database_url: str | None = None) -> None:
        """Its log, warehouse and, without `database_url`, its Postgres are below the directory `work`."""
        self.warehouse = work / "warehouse"
        self.uri = ""
        self._log = work / "metastore.log"
        self._database = ["--database-url", database_url] if database_url else ["--data-dir", str(work / "data")]
        self._settings = settings
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> str:
        """Start and wait for the address. Raises RuntimeError with the daemon's own words when it does not come up."""
        command = [sys.executable, "-m", "metastore.cli", "serve", "--port", "0"]
        command += [*self._database, "--warehouse", str(self.warehouse)]
        for key, value in self._settings.items():
            command += ["--set", f"{key}={value}"]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        line = self._first_line()
        if not line.startswith("listening on "):
            self.stop()
            raise RuntimeError(f"the metastore did not start: {line or self.last_words()}")
        self.uri = line.removeprefix("listening on ").strip()
        return self.uri

    def _first_line(self) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=lambda: lines.put(self._process.stdout.readline()), daemon=True).start()  # type: ignore[union-attr]
        try:
            return lines.get(timeout=START_TIMEOUT_S)
        except queue.Empty:
            return ""

    @property
    def pid(self) -> int:
        """The process id of the daemon, once started."""
        assert self._process is not None
        return self._process.pid

    def memory_mb(self) -> float:
        """Resident memory of the daemon's own process, without Postgres and Spark."""
        assert self._process is not None
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))

    def last_words(self) -> str:
        """The last line of its log."""
        lines = self._log.read_text().strip().splitlines() if self._log.exists() else []
        return lines[-1] if lines else "it said nothing"

    def stop(self) -> int:
        """Stop it as an operator would, by SIGTERM; its exit status."""
        if self._process is None:
            return 0
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
