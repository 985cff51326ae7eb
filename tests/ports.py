"""Ports on loopback for servers that tests start, and waiting until one listens."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

START_WITHIN_S = 90.0


def free_port() -> int:
    """A port that nobody has at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def await_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until somebody listens there."""
    await_started(lambda: is_listening(port), process, log)


def await_started(
    is_up: Callable[[], bool], process: subprocess.Popen[bytes], log: Path, within_s: float = START_WITHIN_S
) -> None:
    """Wait for a process that has to get ready first; what it logged is the error if it does not."""
    deadline = time.monotonic() + within_s
    while not is_up():
        assert process.poll() is None, log.read_text()[-3000:]
        assert time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.1)


def is_listening(port: int) -> bool:
    """Whether anybody listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
