"""The steps by which services change anything outside of their process, and harm done at any of them.

Steps are found by watching, not listed: all functions of `hive_acid.filesystem.files`, all functions of the database
(hot calls, calls, and those of the lease), transactions of SQLAlchemy, and the executor. Left out are functions of the
database that are declared to read only, and functions of files named here as such; so a new function counts until
someone says
otherwise. A step is named by the service that runs, the function, and for files and transactions the place of the call.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import psycopg2
import psycopg2.extensions
import sqlalchemy
from sqlalchemy import event

from hive_acid.filesystem import files
from metastore.filework.pools import FileSystems
from metastore.store.connections.pool import Connections
from metastore.store.database import Database
from metastore.store.hot.batcher import Batcher, _Queue
from metastore.store.leases import Lease
from metastore.store.schema import functions

READING_FILES = frozenset(
    {
        "copy_range",
        "exists",
        "is_below",
        "join",
        "list_tree",
        "list_trees",
        "opened",
        "parent",
        "plain",
        "read",
        "read_end",
        "rename_is_copy",
    }
)
UNTIMELY = frozenset({"heartbeat_txns", "beat_locks", "heartbeat_locks", "keep_txns"})
"""Calls that come by the clock, so that they have no place among the steps; a lost one is made up for by the next."""

KILL, CUT, TEAR = "kill", "cut", "tear"
"""Harm: the process is killed before the step; the answer of the database is lost, its effect is not; the process is
killed when of a directory to be removed one file is gone."""

_READS_ONLY = re.compile(r"^LANGUAGE[^$]*\b(STABLE|IMMUTABLE)\b", re.MULTILINE)


@functools.cache
def writing_functions() -> frozenset[str]:
    """All functions of the database that may change something: those not declared to leave it as it is."""
    return frozenset(name for name, source in functions.sources().items() if not _READS_ONLY.search(source))


@functools.cache
def changing_files() -> frozenset[str]:
    """All functions of `hive_acid.filesystem.files` but those that only read."""
    found = {name for name, one in inspect.getmembers(files, inspect.isfunction) if one.__module__ == files.__name__}
    return frozenset(name for name in found - READING_FILES if not name.startswith("_"))


class Point(NamedTuple):
    """A step by its name, and which of that name it is, from 1."""

    step: str
    number: int = 1


def points_of(steps: Iterable[str]) -> list[Point]:
    """The points that a process has passed."""
    counts: Counter[str] = Counter()
    found = []
    for step in steps:
        counts[step] += 1
        found.append(Point(step, counts[step]))
    return found


class Steps:
    """Tells each step of this process, and does harm at the point `last`."""

    def __init__(self, tell: Callable[[str], None], last: Point | None, harm: str = KILL) -> None:
        self._tell = tell
        self._last = last
        self._harm = harm
        self._counts: Counter[str] = Counter()
        self._cut: str | None = None
        self.service = "start"
        """Whose steps they are."""

    def end_round(self) -> None:
        """Tell that all services have had their turn."""
        self._tell("")

    def watch(self) -> None:
        """Patch this process, of a server's services, for the rest of its life."""
        self._watch_files()
        self._watch_calls()
        self._watch_hot_calls()
        ask = Lease._ask
        Lease._ask = self._watched(ask, lambda _lease, function, *_: function)  # type: ignore[method-assign]
        event.listen(sqlalchemy.Engine, "commit", lambda _connection: self.step(f"commit in {_place()}"))

    def watch_job(self) -> None:
        """Patch this process, of the Spark program, for the rest of its life: files, writing jobs, and what it says."""
        from pyspark.sql import DataFrameWriter  # here, since a server's process loads no Spark

        from hive_acid.spark.compact.jobs import Jobs

        self._watch_files()
        save, say = DataFrameWriter.save, Jobs._say
        DataFrameWriter.save = self._watched(save, lambda *_: f"save in {_place()}")  # type: ignore[method-assign]
        Jobs._say = self._watched(say, lambda _jobs, answer: f"say {_subject(answer)}")  # type: ignore[method-assign]

    def watch_executor(self, executor: Any) -> None:
        """Make the run of a job a step."""
        executor.run = self._watched(executor.run, lambda *_: "executor.run")

    def step(self, name: str) -> bool:
        """Note a step; whether it is the one whose answer is to be lost."""
        name = f"{self.service}: {name}"
        self._counts[name] += 1
        is_last = self._last == Point(name, self._counts[name])
        if is_last and self._harm == KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        self._tell(name)
        return is_last

    def _watch_files(self) -> None:
        # In the thread that asks, so that its call is seen on the stack.
        FileSystems.run = lambda _self, _location, function, *args, **_more: function(*args)  # type: ignore[method-assign]
        for name in changing_files():
            setattr(files, name, self._watched_file(name, getattr(files, name)))

    def _watched(self, function: Callable[..., Any], name: Callable[..., str]) -> Callable[..., Any]:
        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            self.step(name(*args, **kwargs))
            return function(*args, **kwargs)

        return watched

    def _watched_file(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def watched(location: str, *args: Any, **kwargs: Any) -> Any:
            if self.step(f"files.{name} in {_place()}") and self._harm == TEAR:
                _tear(location)
            return function(location, *args, **kwargs)

        return watched

    def _watch_calls(self) -> None:
        call, made_by = Database._call, Connections._made
        steps = self

        class Cursor(psycopg2.extensions.cursor):
            def fetchall(self) -> list[tuple[Any, ...]]:
                if steps._cut == "call":
                    steps._cut = None
                    self.connection.end()
                    raise psycopg2.OperationalError("the connection was cut before the answer came")
                return super().fetchall()

        def watched(db: Database, function: str, *args: Any, **kwargs: Any) -> Any:
            if function in writing_functions() - UNTIMELY and self.step(function) and self._harm == CUT:
                self._cut = "call"
            return call(db, function, *args, **kwargs)

        def connection(pool: Connections, deadline: float) -> Any:
            made = made_by(pool, deadline)
            if made is not None:
                made.cursor_factory = Cursor
            return made

        Database._call = watched  # type: ignore[method-assign, assignment]
        Connections._made = connection  # type: ignore[assignment, method-assign]

    def _watch_hot_calls(self) -> None:
        ask, done = Batcher.ask, _Queue._done

        def watched(batcher: Batcher, call: Any, question: Any) -> Any:
            if call.function in writing_functions() - UNTIMELY and self.step(call.function) and self._harm == CUT:
                self._cut = call.function
            return ask(batcher, call, question)

        def answered(queue: Any, batch: Any, connection: Any, rows: Any, error: Any) -> None:
            if error is None and self._cut == queue._call.function:
                self._cut, rows = None, None
                error = psycopg2.OperationalError("the connection was cut before the answer came")
                connection.close()
            done(queue, batch, connection, rows, error)

        Batcher.ask = watched  # type: ignore[assignment, method-assign]
        _Queue._done = answered  # type: ignore[assignment, method-assign]


def _place() -> str:
    """The function of ours that is at work: the nearest one that is not about how SQL is sent or steps are watched."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(("metastore.", "hive_acid.", "tests.")) and not module.startswith(
            ("metastore.store.", "metastore.filework.", __name__)
        ):
            return f"{module.partition('.')[2]}.{frame.f_code.co_qualname}"
        frame = frame.f_back
    return "nowhere"


def _subject(answer: Mapping[str, Any]) -> str:
    """What an answer of the Spark program is about: its name in Spark, a phase, or the end."""
    return "progress" if "progress" in answer else "result" if "ok" in answer else "job id"


def _tear(location: str) -> None:
    """Remove one file of a directory, and die; nothing of it for what is no directory."""
    for entry in files.list_tree(location):
        if not entry.is_directory:
            os.remove(files.join(location, entry.path).removeprefix("file:"))
            break
    os.kill(os.getpid(), signal.SIGKILL)
