"""The steps of a client's work that change anything outside of it, and a kill between any two of them.

Steps are found by watching all functions of `hive_acid.filesystem.files`, all calls to the metastore and all writing
jobs of Spark. Those known to read only are left out by name, so that a new function counts until someone says
otherwise.
"""

from __future__ import annotations

import inspect
import os
import signal
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

from pyspark.sql import DataFrameWriter

from hive_acid.connection import Connection
from hive_acid.filesystem import files
from hive_acid.protocol import Question

ALL_STEPS = os.environ.get("HIVE_ACID_TEST_ALL_STEPS") == "1"
"""A long run; without it, of the steps of one name (as the renames of many files) the first and the last are taken."""

READING_FUNCTIONS = {"join", "parent", "exists", "list_tree", "read", "read_range", "rename_is_copy", "size", "plain"}
READING_CALLS = ("get", "show", "heartbeat", "check_lock", "find_", "hive_acid_why", "hive_acid_pressure")


class Steps:
    """Counts the steps of this process, tells each one, and kills it before number `last`."""

    def __init__(self, tell: Callable[[str], None], last: int | None) -> None:
        self._tell = tell
        self._last = last
        self._count = 0
        self._one_at_a_time = threading.Lock()

    def watch(self) -> None:
        """Patch this process, which is for one statement only."""
        for name, function in inspect.getmembers(files, inspect.isfunction):
            if function.__module__ == files.__name__ and not name.startswith("_") and name not in READING_FUNCTIONS:
                setattr(files, name, self._counted(function, f"files.{name}"))
        ask = Connection.ask

        @wraps(ask)
        def counted_ask(connection: Connection, *questions: Question) -> list[Any]:
            for question in questions:
                if not question.method.startswith(READING_CALLS):
                    self._step(f"metastore.{question.method}")
            return ask(connection, *questions)

        Connection.ask = counted_ask  # type: ignore[assignment, method-assign]
        DataFrameWriter.save = self._counted(DataFrameWriter.save, "spark.save")  # type: ignore[method-assign]

    def _counted(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        @wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self._step(name)
            return function(*args, **kwargs)

        return counted

    def _step(self, name: str) -> None:
        with self._one_at_a_time:
            if self._count == self._last:
                os.kill(os.getpid(), signal.SIGKILL)
            self._count += 1
            self._tell(name)
