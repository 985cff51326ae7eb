"""The demo's other process, seen from the first: commands to it, answers from it, and its violent end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any


class SecondWriter:
    """``hive_acid.demo.actor`` as a child process in a process group of its own, so that all of it can be killed."""

    def __init__(self, uri: str, work: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "hive_acid.demo.actor", uri, str(work)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def answer(self) -> dict[str, Any]:
        """Its next answer. Raises RuntimeError if it has died."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the second writer ended before its time")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def tell(self, **command: Any) -> None:
        """Give it a command."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """End it and its JVM as a power cut would."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
