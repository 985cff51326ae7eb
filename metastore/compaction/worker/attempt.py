"""One attempt at a compaction: what is to be undone if it fails, and the watch that is kept over it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from hive_acid.compaction_job import JobProgress
from hive_acid.errors import HiveAcidError, MetaError
from hive_acid.ids import TxnId
from metastore.compaction.models import Compaction
from metastore.compaction.queue.service import CompactionService, NotInHandError
from metastore.filework import files
from metastore.store.connections.failures import DATABASE_ERRORS
from metastore.txn.service import TxnService

log = logging.getLogger(__name__)

_LOOK_EVERY_S = 1.0
"""How soon it is noticed that nobody wants the result any more; progress is stored no more often."""
_MEASURE_EVERY_S = 10.0
"""How often the output is looked at while it grows: a job itself tells of no more than its phases."""


@dataclass
class Attempt:
    """What has been done so far for a compaction. `deadline` is of `time.monotonic`."""

    compaction: Compaction
    worker: str
    deadline: float
    location: str = ""
    staging: str = ""
    outputs: tuple[str, ...] = ()
    txn_id: TxnId | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when the transaction is lost, time is up, or the server stops: nobody wants the result any more."""
    why: str = ""
    """Why it was cancelled, for the history."""
    job_id: str | None = None
    figures: Mapping[str, Any] | None = None

    def cancel(self, why: str) -> None:
        """Have the work end; the first reason counts."""
        self.why = self.why or why
        self.cancelled.set()

    def report(self, progress: JobProgress) -> None:
        """Take what the job tells of itself; the watch stores it."""
        self.job_id = progress.job_id or self.job_id
        self.figures = progress.figures or self.figures


class Watch:
    """Keeps the transaction of an attempt alive while the attempt goes on, stores its progress, and cancels it when the
    transaction is lost, the compaction is somebody else's, or its time is up. A lost connection cancels nothing.
    """

    def __init__(
        self,
        attempt: Attempt,
        txns: TxnService,
        service: CompactionService,
        heartbeat_s: float,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        """`look` is called about once a second as well; it may cancel the attempt."""
        self._attempt = attempt
        self._look_too = look
        self._txns = txns
        self._service = service
        self._heartbeat_s = heartbeat_s
        self._ended = threading.Event()
        self._stored: tuple[str | None, Mapping[str, Any] | None] = (None, None)
        self._measure_at = time.monotonic() + _MEASURE_EVERY_S
        self._thread = threading.Thread(target=self._keep, name="compaction-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _keep(self) -> None:
        attempt = self._attempt
        beat_at = time.monotonic() + self._heartbeat_s
        is_failing = False
        while not self._ended.wait(min(_LOOK_EVERY_S, self._heartbeat_s)):
            if time.monotonic() > attempt.deadline:
                attempt.cancel("it took longer than hive.compactor.worker.timeout")
                return
            try:
                beat_at = self._look(beat_at)
                self._look_too()
                self._store()
                is_failing = False
            except (MetaError, OSError, *DATABASE_ERRORS) as error:
                if not is_failing:
                    log.warning("compaction %d: no heartbeat, %s", attempt.compaction.id, error)
                is_failing = True
            except HiveAcidError as error:
                log.warning("compaction %d lost its transaction: %s", attempt.compaction.id, error)
                attempt.cancel("its transaction was aborted, or timed out")
                return

    def _look(self, beat_at: float) -> float:
        """See whether the transaction is open, with a heartbeat when that is due; when the next one is."""
        txn_id = self._attempt.txn_id
        assert txn_id is not None
        if time.monotonic() < beat_at:
            self._txns.check_open(txn_id)
            return beat_at
        self._txns.heartbeat(txn_id)
        return time.monotonic() + self._heartbeat_s

    def _store(self) -> None:
        """Put down what is new; cancel what is not this worker's any more."""
        attempt = self._attempt
        self._measure()
        told = attempt.job_id, attempt.figures
        if told == self._stored:
            return
        try:
            self._service.set_progress(
                attempt.compaction.id, attempt.worker, job_id=attempt.job_id, progress=attempt.figures
            )
        except NotInHandError as error:
            attempt.cancel(str(error))
        self._stored = told

    def _measure(self) -> None:
        """Count what lies in the staging directory by now, now and then."""
        attempt = self._attempt
        if not attempt.staging or not attempt.figures or time.monotonic() < self._measure_at:
            return
        self._measure_at = time.monotonic() + _MEASURE_EVERY_S
        grown = sum(entry.size for entry in files.list_tree(attempt.staging))
        if grown > attempt.figures.get("bytes_written", 0):
            attempt.figures = {**attempt.figures, "bytes_written": grown}
