"""The moments of a statement at which somebody else may come, found from outside of it.

A statement is seen by its calls to the metastore, by its renames, and by what lies in its directories. So the moments
stay where they are, however the write path is built.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from hive_acid.connection import Connection
from hive_acid.errors import HiveAcidError
from hive_acid.filesystem import files
from hive_acid.format.names import is_hidden
from hive_acid.protocol import Question
from hive_acid.wire import ttypes

MOMENTS = {
    "start": "after the handle was made, before the statement",
    "lock": "before it asks for its lock",
    "locked": "as soon as it has its lock, and knows the table behind it",
    "staged": "when its files are made, and none has its final name",
    "register": "just before it registers new partitions",
    "rename": "just before the first of its files has its final name",
    "commit": "just before it commits",
}


class Moments:
    """Watches one connection and calls `disturb` once, at one moment; `transactions` are those it has opened."""

    def __init__(self, connection: Connection, root: Path, moment: str, disturb: Callable[[], None]) -> None:
        self.transactions: list[int] = []
        self.came = False
        self._connection = connection
        self._root = root
        self._moment = moment
        self._disturb = disturb
        self._is_locked = self._is_calling = False
        self._owner = threading.get_ident()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Within the block the statement runs, on this thread."""
        ask, rename = self._connection.ask, files.rename

        def watched_ask(*questions: Question) -> list[Any]:
            if threading.get_ident() != self._owner:
                return ask(*questions)
            for question in questions:
                self._before(question.method)
            self._is_calling = True
            try:
                answers = ask(*questions)
            finally:
                self._is_calling = False
            for question, answer in zip(questions, answers, strict=True):
                if not isinstance(answer, HiveAcidError):
                    self._after(question.method, answer)
            return answers

        def watched_rename(source: str, target: str, **how: bool) -> None:
            # The metastore may be in this process: what happens during a call is its own.
            if not self._is_calling and not is_hidden(target.partition(str(self._root))[2]):
                self._at("rename")
            rename(source, target, **how)

        with (
            mock.patch.object(self._connection, "ask", watched_ask),
            mock.patch.object(files, "rename", watched_rename),
        ):
            yield

    def start(self) -> None:
        self._at("start")

    def _before(self, method: str) -> None:
        if method in ("lock", "hive_acid_begin"):
            self._at("lock")
        elif method == "add_partitions_req":
            self._at("register")
        elif method == "commit_txn":
            self._at("commit")
        elif self._moment == "staged" and self._is_locked and (self._has_staged() or method == "truncate_table_req"):
            self._at("staged")

    def _after(self, method: str, answer: Any) -> None:
        if method == "open_txns":
            self.transactions += answer.txn_ids
        if method == "hive_acid_begin":
            self.transactions.append(answer.txnid)
            answer = answer.lock
        locks = method in ("lock", "check_lock", "hive_acid_begin") and answer is not None
        if locks and answer.state == ttypes.LockState.ACQUIRED:
            self._is_locked = True
            self._at("locked")

    def _has_staged(self) -> bool:
        return any(path.is_file() and is_hidden(str(path.relative_to(self._root))) for path in self._root.rglob("*"))

    def _at(self, moment: str) -> None:
        if moment == self._moment and not self.came:
            self.came = True
            self._disturb()
