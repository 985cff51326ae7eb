"""Processes forked from a Python that is warm: a program that takes orders by lines, and who gives them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self


def forked(work: Callable[[], int | None]) -> int:
    """Do `work` in a process of its own, which exits with what that returns, and with 1 if it raises; its id."""
    child = os.fork()
    if not child:
        status = 1
        try:
            status = work() or 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    return child


def status_of(work: Callable[[], int | None]) -> int:
    """The exit status of a process that does `work`, or less than 0 if a signal has ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(forked(work), 0)[1])


def bounded(work: Callable[[], int | None], seconds: int = 60) -> Callable[[], int | None]:
    """`work`, whose process is killed when it hangs: a child has no other clock."""

    def run() -> int | None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)
        return work()

    return run


class Program:
    """A program that answers each line with a line, until its input ends."""

    def __init__(self, *arguments: str, log: Path, environment: Mapping[str, str] | None = None) -> None:
        self._log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                env={**os.environ, **(environment or {})},
            )  # fmt: skip

    def ask(self, line: str) -> str:
        """The answer to a line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def complaint(self) -> str:
        """The last of what the program has written on its standard error."""
        return self._log.read_text()[-6000:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=20)
        self._process.stdout.close()
