"""A child process that runs jobs given as lines of JSON, several at a time, and is never left behind."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import IO, Any

from hive_acid.compaction_job import JobProgress, TellProgress
from metastore.compaction.worker.job import BackendLostError, CompactionCancelledError

log = logging.getLogger(__name__)

_POLL_S = 0.2
_END_OF_INPUT_S = 5.0
_TERMINATE_S = 5.0
_LAST_WORDS = 20

Message = Mapping[str, Any]


class JobProcess:
    """The process; what it says on its standard error goes to the log, line by line.

    Lines of its standard output that begin with ``{`` answer a job by the ``id`` under which it was sent: with its name
    in Spark (``job_id``), its ``progress``, and at last its result, which has ``ok``. Anything else is taken for talk
    and logged too.
    """

    def __init__(self, command: Sequence[str], cancel_within_s: float) -> None:
        """Start it. Raises BackendLostError if that is not possible.

        When it takes longer than `cancel_within_s` to end a job, it is ended itself, with all its jobs.
        """
        self._cancel_within_s = cancel_within_s
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
            raise BackendLostError(f"cannot start {command[0]}: {error}") from error
        self._lock = threading.Lock()
        self._turn_to_write = threading.Lock()
        self._tickets = itertools.count(1)
        self._waiting: dict[str, queue.SimpleQueue[Message | None]] = {}
        self._has_ended = False
        self._last_words: deque[str] = deque(maxlen=_LAST_WORDS)
        assert self._process.stdin is not None
        self._input = self._process.stdin
        for target, stream in ((self._read_answers, self._process.stdout), (self._read_talk, self._process.stderr)):
            threading.Thread(target=target, args=(stream,), name="compaction-process", daemon=True).start()

    @property
    def is_alive(self) -> bool:
        """Whether it runs, and can be understood."""
        return not self._has_ended and self._process.poll() is None

    def ask(self, job: Message, cancelled: threading.Event, report: TellProgress) -> Message:
        """Have it run a job to its end; what it tells meanwhile goes to `report`.

        Raises BackendLostError if it dies, CompactionCancelledError if `cancelled` is set and the job has ended.
        """
        # An attempt that is being cancelled may still be there when the same compaction comes again.
        ticket = f"{job['id']}.{next(self._tickets)}"
        answers: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        with self._lock:
            if self._has_ended:
                answers.put(None)
            self._waiting[ticket] = answers
        try:
            self._send({**job, "id": ticket})
            return {**self._result(ticket, answers, cancelled, report), "id": job["id"]}
        finally:
            with self._lock:
                self._waiting.pop(ticket, None)

    def stop(self) -> None:
        """End it: by the end of its input, and less gently if that does not help."""
        with contextlib.suppress(OSError):
            self._input.close()
        end_process(self._process, patience_s=_END_OF_INPUT_S)

    def _result(
        self, ticket: str, answers: queue.SimpleQueue[Message | None], cancelled: threading.Event, report: TellProgress
    ) -> Message:
        give_up_at = None
        while True:
            if cancelled.is_set() and give_up_at is None:
                give_up_at = time.monotonic() + self._cancel_within_s
                self._send({"cancel": ticket})
            try:
                answer = answers.get(timeout=_POLL_S)
            except queue.Empty:
                if give_up_at is not None and time.monotonic() > give_up_at:
                    log.warning("the compaction process does not end a job: it is ended itself")
                    self.stop()
                continue
            if give_up_at is not None and (answer is None or "ok" in answer):
                raise CompactionCancelledError("the compaction was cancelled")
            if answer is None:
                raise self._died()
            if "ok" in answer:
                return answer
            report(JobProgress.from_message(answer))

    def _send(self, message: Message) -> None:
        line = json.dumps(message) + "\n"
        # A process that has gone is found out by the end of its answers.
        with self._turn_to_write, contextlib.suppress(OSError, ValueError):
            self._input.write(line)
            self._input.flush()

    def _died(self) -> BackendLostError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_TERMINATE_S)
        words = " / ".join(self._last_words)
        return BackendLostError(f"the compaction process died with status {self._process.returncode}: {words[-2000:]}")

    def _read_answers(self, stream: IO[str]) -> None:
        for line in stream:
            if not line.startswith("{"):
                self._talk(line)
            elif not self._deliver(line):
                self._talk(line)
                break
        self._end()

    def _deliver(self, line: str) -> bool:
        """Hand a message to who waits for it; False if it makes no sense, and so whose job fails is not known."""
        try:
            message = json.loads(line)
            ticket = str(message["id"])
        except (ValueError, KeyError):
            return False
        with self._lock:
            answers = self._waiting.get(ticket)
        if answers is not None:
            answers.put(message)
        return message["id"] is not None

    def _end(self) -> None:
        """Nothing that could be understood comes any more."""
        with self._lock:
            self._has_ended = True
            waiting = list(self._waiting.values())
        end_process(self._process, patience_s=_POLL_S)
        for answers in waiting:
            answers.put(None)

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
