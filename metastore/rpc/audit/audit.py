"""The audit log: a line of JSON for each call that changes something or is refused.

Whoever serves calls only puts a tuple into a queue; a thread makes lines of them and writes those that have come
together. If the disk is slower than the calls for long, lines are lost rather than calls held up: how many is in the
next line that is written, and in the log.
"""

from __future__ import annotations

import datetime
import json
import logging
import threading
import time
from queue import SimpleQueue
from typing import Any, NamedTuple

from hive_acid.errors import MetaError
from metastore.observe.calls import Outcome
from metastore.observe.log import event, shortened
from metastore.rpc.audit.changes import is_change
from metastore.rpc.audit.config import AuditConfig
from metastore.rpc.audit.file import RotatedFile
from metastore.rpc.audit.subjects import subjects_of
from metastore.rpc.call import Session
from metastore.rpc.request import Request
from metastore.settings import SettingError

LOG = logging.getLogger("metastore.audit")
MOST_WAITING = 100_000
MOST_LETTERS = 500
"""Of a reason."""
LOGIN, CONNECT = "login", "connect"
"""In the place of a method: who has come in, or was sent away, before the first call."""


class _Entry(NamedTuple):
    """A line that is to be written."""

    at_s: float
    peer: str
    user: str | None
    authenticated: str | None
    method: str
    objects: list[str]
    transactions: list[int]
    outcome: Outcome
    error: str | None
    reason: str | None


class Audit:
    """Writes until `close`."""

    def __init__(self, config: AuditConfig) -> None:
        """Raises SettingError if the file cannot be written."""
        try:
            self._file = RotatedFile(config.file, config.most_bytes, config.files)
        except OSError as error:
            raise SettingError(f"metastore.audit.file {config.file} cannot be written: {error.strerror}") from None
        self._queue: SimpleQueue[_Entry | None] = SimpleQueue()
        self._turned_away = 0  # since the start, by those who serve calls; the next two are the thread's
        self._unwritten = 0
        self._told = 0
        self._has_complained = False
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write what is waiting, and end."""
        self._queue.put(None)
        self._thread.join()
        self._file.close()

    def note(self, request: Request, session: Session, outcome: Outcome, detail: dict[str, Any]) -> None:
        """A call has ended."""
        if is_change(request.method, request.arguments):
            if outcome is Outcome.UNKNOWN:
                return
        elif outcome is not Outcome.REFUSED or detail.get("error") != MetaError.thrift_name:
            return  # what is not there, asked for by a reader, is no refusal
        objects, transactions = request.subjects or subjects_of(request.method, request.arguments)
        if "txnid" in detail:
            transactions = [*transactions, detail["txnid"]]
        self._put(
            _Entry(
                time.time(),
                session.peer,
                session.user,
                session.authenticated,
                request.method,
                objects,
                transactions,
                outcome,
                detail.get("error"),
                detail.get("text"),
            )
        )

    def note_door(self, method: str, peer: str, user: str | None, reason: str | None) -> None:
        """Somebody has come in as `user`, or was sent away with a reason."""
        outcome = Outcome.FINE if reason is None else Outcome.REFUSED
        proven = user if reason is None else None
        self._put(_Entry(time.time(), peer, user, proven, method, [], [], outcome, None, reason))

    def _put(self, entry: _Entry) -> None:
        if self._queue.qsize() < MOST_WAITING:
            self._queue.put(entry)
        else:
            self._turned_away += 1

    def _run(self) -> None:
        while (entry := self._queue.get()) is not None:
            lines = [_line(entry)]
            is_over = False
            while not self._queue.empty() and len(lines) < 1000:
                following = self._queue.get()
                if following is None:
                    is_over = True
                    break
                lines.append(_line(following))
            self._write(lines)
            if is_over:
                return

    def _write(self, lines: list[str]) -> None:
        number, lost = len(lines), self._turned_away + self._unwritten
        if lost > self._told:
            lines.append(json.dumps({"time": _time(time.time()), "lost": lost - self._told}))
        try:
            self._file.write("".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace"))
        except OSError as error:
            self._unwritten += number
            if not self._has_complained:
                event(LOG, logging.ERROR, "audit log not written", reason=error.strerror, lines=number)
            self._has_complained = True
        else:
            self._told = lost
            if self._has_complained:
                event(LOG, logging.WARNING, "audit log written again")
            self._has_complained = False


def _line(entry: _Entry) -> str:
    told = {
        "time": _time(entry.at_s),
        "peer": entry.peer,
        "user": entry.user,
        "authenticated": entry.authenticated,
        "method": entry.method,
        "objects": entry.objects,
        "transactions": entry.transactions,
        "outcome": entry.outcome.value,
        "error": entry.error,
        "reason": None if entry.reason is None else shortened(entry.reason, MOST_LETTERS),
    }
    return json.dumps({key: value for key, value in told.items() if value not in (None, [])}, ensure_ascii=False)


def _time(at_s: float) -> str:
    return datetime.datetime.fromtimestamp(at_s).astimezone().isoformat(timespec="milliseconds")
