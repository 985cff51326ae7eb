"""A child process that answers one line of JSON with another, and is never left behind."""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import IO

from metastore.compaction.job import CompactionCancelledError, CompactionJobError

log = logging.getLogger(__name__)

_POLL_S = 0.2
_END_OF_INPUT_S = 5.0
_TERMINATE_S = 5.0
_LAST_WORDS = 20


class JobProcess:
    """The process; what it says on its standard error goes to the log, line by line.

    Answers are lines that begin with ``{``: anything else on its standard output is taken for talk and logged too.
    """

    def __init__(self, command: Sequence[str]) -> None:
        """Start it. Raises CompactionJobError if that is not possible."""
        try:
            # A session of its own: its descendants can be ended with it, and ^C at our terminal is ours.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                text=True,
                errors="replace",
            )
        except OSError as error:
            raise CompactionJobError(f"cannot start {command[0]}: {error}") from error
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._last_words: deque[str] = deque(maxlen=_LAST_WORDS)
        assert self._process.stdin is not None
        self._input = self._process.stdin
        for target, stream in ((self._read_answers, self._process.stdout), (self._read_talk, self._process.stderr)):
            threading.Thread(target=target, args=(stream,), name="compaction-process", daemon=True).start()

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def ask(self, line: str, cancelled: threading.Event, timeout_s: float) -> str:
        """Send a line, wait for the answer.

        Raises CompactionJobError if it dies or does not answer in time, CompactionCancelledError if `cancelled` is set.
        """
        try:
            self._input.write(line + "\n")
            self._input.flush()
        except OSError as error:
            raise self._died() from error
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                answer = self._answers.get(timeout=_POLL_S)
            except queue.Empty:
                if cancelled.is_set():
                    raise CompactionCancelledError("the compaction was cancelled") from None
                if time.monotonic() > deadline:
                    raise CompactionJobError(f"the compaction took more than {timeout_s:.0f} s") from None
                continue
            if answer is None:
                raise self._died()
            return answer

    def stop(self) -> None:
        """End it: by the end of its input, and less gently if that does not help."""
        with contextlib.suppress(OSError):
            self._input.close()
        end_process(self._process, patience_s=_END_OF_INPUT_S)

    def _died(self) -> CompactionJobError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_TERMINATE_S)
        words = " / ".join(self._last_words)
        return CompactionJobError(
            f"the compaction process died with status {self._process.returncode}: {words[-2000:]}"
        )

    def _read_answers(self, stream: IO[str]) -> None:
        for line in stream:
            if line.startswith("{"):
                self._answers.put(line)
            else:
                self._talk(line)
        self._answers.put(None)

    def _read_talk(self, stream: IO[str]) -> None:
        for line in stream:
            self._talk(line)

    def _talk(self, line: str) -> None:
        self._last_words.append(line.rstrip())
        log.debug("compaction process: %s", line.rstrip())


def end_process(process: subprocess.Popen[str] | subprocess.Popen[bytes], patience_s: float = 0.0) -> None:
    """End a process and all of its session, which it must lead, unless it ends by itself within `patience_s`."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(patience_s)
        return  # its number may be somebody else's by now, and what it started ends with its pipes
    for number, wait_s in ((signal.SIGTERM, _TERMINATE_S), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(wait_s)
