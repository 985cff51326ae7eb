"""Many compactions at a time in one process, each in a thread and a Spark session of its own; each can be cancelled.

Lines of JSON go in and out. ``{"id": 7, "type": "major", …}`` is a job; ``{"cancel": 7}`` ends it. Of each job comes,
first, ``{"id": 7, "job_id": …}`` with its name in Spark, then what it tells of itself, ``{"id": 7, "progress": {…}}``,
and at last one line with ``"ok"``. An answer that is not ok says ``"lost": true`` if Spark itself is gone.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TextIO

from pyspark.sql import SparkSession

from hive_acid.compaction_job import JobProgress, TellProgress
from hive_acid.spark.jvm.causes import last_cause
from hive_acid.spark.values.timezone import jvm_zone

_INTERRUPT_EVERY_S = 0.5


class CancelledError(Exception):
    """Nobody wants the result of the job any more."""


class Sessions(Protocol):
    """Where the session of each job comes from."""

    def begin(self, name: str, pool: str) -> SparkSession:
        """A session for the job of this thread, called `name` where that is to be seen, in a scheduler pool."""

    def end(self, session: SparkSession) -> None:
        """The job is done with its session."""


class OwnSessions:
    """Sessions of one Spark application that this process drives."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def begin(self, name: str, pool: str) -> SparkSession:
        """A session beside the others; name and pool go with the thread."""
        session = self._spark.newSession()
        session.sparkContext.setJobDescription(name)
        session.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
        return session

    def end(self, session: SparkSession) -> None:
        """It goes when nobody refers to it any more."""


class RemoteSessions:
    """Sessions of a Spark Connect server, each with a connection of its own: a server that was restarted is found."""

    def __init__(self, url: str) -> None:
        self._url = url

    def begin(self, name: str, pool: str) -> SparkSession:
        """A session in the zone of the server's JVM; the name is a tag of what it runs, pools are the server's own."""
        session = SparkSession.builder.remote(self._url).create()
        session.addTag(name.replace(",", "_") or "compaction")
        session.conf.set("spark.sql.session.timeZone", jvm_zone(session))
        return session

    def end(self, session: SparkSession) -> None:
        """Let the server forget it."""
        with contextlib.suppress(Exception):
            session.stop()


@dataclass
class _Running:
    """A job under way; `place` is the smallest number that no other one has."""

    place: int
    session: SparkSession | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)


class Jobs:
    """The jobs of one process."""

    def __init__(
        self,
        sessions: Sessions,
        answers: TextIO,
        run: Callable[[SparkSession, Mapping[str, Any], TellProgress], dict[str, Any]],
    ) -> None:
        """`run` carries out a job and gives its answer, a failure too."""
        self._sessions = sessions
        self._run_job = run
        self._answers = answers
        self._lock = threading.Lock()
        self._running: dict[Any, _Running] = {}

    def take(self, lines: Iterable[str]) -> None:
        """Begin or cancel what each line says; returns when the lines have ended and all jobs with them."""
        threads: list[threading.Thread] = []
        for line in filter(str.strip, lines):
            try:
                message = json.loads(line)
                if not isinstance(message, dict):
                    raise ValueError("a job is an object")
            except ValueError as error:
                self._say(failure(None, error))
                continue
            if "cancel" in message:
                self._cancel(message["cancel"])
                continue
            threads = [thread for thread in threads if thread.is_alive()]
            threads.append(self._begin(message))
        for thread in threads:
            thread.join()

    def _begin(self, message: Mapping[str, Any]) -> threading.Thread:
        job_id = message.get("id")
        with self._lock:
            taken = {running.place for running in self._running.values()}
            running = _Running(next(place for place in range(len(taken) + 1) if place not in taken))
            self._running[job_id] = running
        thread = threading.Thread(target=self._run, args=(message, running), name=f"job-{job_id}", daemon=True)
        thread.start()
        return thread

    def _run(self, message: Mapping[str, Any], running: _Running) -> None:
        try:
            answer = self._answer(message, running)
        finally:
            running.ended.set()
            with self._lock:
                self._running.pop(message.get("id"), None)
        self._say(answer)

    def _answer(self, message: Mapping[str, Any], running: _Running) -> dict[str, Any]:
        job_id = message.get("id")
        # A pool of its own per place: in one pool, the tasks of a long compaction would go before all others.
        pool = message.get("queue") or f"place-{running.place}"
        try:
            session = self._sessions.begin(message.get("name") or f"compaction-{job_id}", pool)
            name = f"{session.conf.get('spark.app.id')}:{job_id}"
        except Exception as error:
            return {**failure(job_id, error), "lost": True}
        try:
            with self._lock:
                running.session = session
            self._say({"id": job_id, **JobProgress(name).to_message()})
            answer = self._run_job(session, message, lambda progress: self._tell(job_id, running, progress))
            if not answer["ok"] and not is_alive(session):
                answer["lost"] = True
            return answer
        finally:
            with self._lock:
                running.session = None
            self._sessions.end(session)

    def _tell(self, job_id: object, running: _Running, progress: JobProgress) -> None:
        if running.cancelled.is_set():
            raise CancelledError("cancelled")
        self._say({"id": job_id, **progress.to_message()})

    def _cancel(self, job_id: object) -> None:
        with self._lock:
            running = self._running.get(job_id)
        if running is not None and not running.cancelled.is_set():
            running.cancelled.set()
            threading.Thread(target=self._interrupt, args=(running,), name=f"cancel-{job_id}", daemon=True).start()

    def _interrupt(self, running: _Running) -> None:
        """Interrupt what the session runs, again and again: between two operations there is nothing to interrupt."""
        while not running.ended.is_set():
            with self._lock:
                session = running.session
            if session is not None:
                with contextlib.suppress(Exception):
                    session.interruptAll()
            running.ended.wait(_INTERRUPT_EVERY_S)

    def _say(self, answer: Mapping[str, Any]) -> None:
        line = json.dumps(answer) + "\n"
        with self._lock:
            self._answers.write(line)
            self._answers.flush()


def failure(job_id: object, error: Exception) -> dict[str, Any]:
    """The answer to a job that failed."""
    return {"id": job_id, "ok": False, "error": f"{type(error).__name__}: {last_cause(error)}"}


def is_alive(session: SparkSession) -> bool:
    """Whether Spark still answers."""
    try:
        session.conf.get("spark.app.id")
    except Exception:
        return False
    return True
