"""Ports on loopback for servers that tests start, and waiting until one listens."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.waiting import until

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

    def told() -> str:
        return log.read_text()[-3000:]

    def is_up_or_ended() -> bool:
        assert process.poll() is None, told()
        return is_up()

    until(is_up_or_ended, within_s, told)


def is_listening(port: int) -> bool:
    """Whether anybody listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
