"""One connection to Postgres on the event loop: a statement at a time, no thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import psycopg2
from psycopg2.extensions import POLL_OK, POLL_READ

Rows = list[tuple[Any, ...]]
Done = Callable[[Rows | None, Exception | None], None]
"""Told the rows of a statement, or why there are none."""


class Link:
    """A psycopg2 connection in its asynchronous mode, in autocommit; made, used and closed on one event loop.

    It connects at its first statement. After an error of the connection it is of no more use: `is_broken`.
    """

    def __init__(self, dsn: str, options: str, loop: asyncio.AbstractEventLoop) -> None:
        self._dsn, self._options, self._loop = dsn, options, loop
        self._connection: Any = None
        self._cursor: Any = None
        self._descriptor = -1
        self._is_connected = False
        self._writes = False
        self._statement: tuple[str, Sequence[object]] | None = None
        self._done: Done | None = None
        self.is_broken = False
        self.has_carried = False
        """Whether the statement under way was sent, so that it may have taken effect."""

    def send(self, statement: str, arguments: Sequence[object], done: Done) -> None:
        """Run a statement; `done` is called from the event loop, later. Only when nothing is under way."""
        assert self._done is None
        self._done = done
        self._statement = (statement, arguments)
        self.has_carried = False
        try:
            if self._connection is None:
                self._connection = psycopg2.connect(self._dsn, options=self._options, async_=True)
                self._advance()
            else:
                self._execute()
        except Exception as error:
            if is_lost(self._connection, error):
                self._unwatch()  # not later: libpq has closed the socket, and the next one may have its number
            self._loop.call_soon(self._finish, None, error)

    def look(self) -> None:
        """See how the statement under way is doing, as if something had been heard."""
        if self._done is not None and self._connection is not None:
            self._advance()

    def close(self) -> None:
        """Let go of the connection; a statement under way is told so."""
        self.is_broken = True
        self._unwatch()
        if self._connection is not None:
            self._connection.close()
        if self._done is not None:
            self._finish(None, psycopg2.OperationalError("the connection was closed"))

    def _execute(self) -> None:
        assert self._statement is not None
        (statement, arguments), self._statement = self._statement, None
        self._cursor = self._connection.cursor()
        self.has_carried = True
        self._cursor.execute(statement, arguments)
        self._advance()

    def _advance(self) -> None:
        """Take the next step of the connection or the statement, as far as it goes without waiting."""
        try:
            state = self._connection.poll()
            if state == POLL_OK:
                self._arrive()
            else:
                self._watch(writes=state != POLL_READ)
        except Exception as error:
            self._finish(None, error)

    def _arrive(self) -> None:
        if not self._is_connected:
            self._watch(writes=False)
            self._is_connected = True
            self._execute()
        elif self._cursor is not None:
            self._watch(writes=False)
            self._finish(self._cursor.fetchall(), None)

    def _readable(self) -> None:
        if self._done is None:
            self.close()  # nothing was asked: what the server has to say is goodbye
        else:
            self._advance()

    def _watch(self, *, writes: bool) -> None:
        descriptor = self._connection.fileno()
        # While libpq connects it may take another socket, perhaps with the number of the one before.
        if descriptor != self._descriptor or not self._is_connected:
            self._unwatch()
            self._descriptor = descriptor
            self._loop.add_reader(descriptor, self._readable)
        if writes != self._writes:
            self._writes = writes
            if writes:
                self._loop.add_writer(descriptor, self._advance)
            else:
                self._loop.remove_writer(descriptor)

    def _unwatch(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            if self._writes:
                self._loop.remove_writer(self._descriptor)
        self._descriptor, self._writes = -1, False

    def _finish(self, rows: Rows | None, error: Exception | None) -> None:
        done, self._done, self._cursor, self._statement = self._done, None, None, None
        if error is not None and is_lost(self._connection, error):
            self.is_broken = True
            self._unwatch()
            if self._connection is not None:
                self._connection.close()
        if done is not None:
            done(rows, error)


_LOST_CODES = ("08", "57P")
"""SQLSTATE classes by which the server takes leave: connection failures, shutdowns, and crashes of a neighbour."""


def is_lost(connection: Any, error: Exception) -> bool:
    """Whether an error is the end of its connection; psycopg2 notices some ends only at the next use.

    What the server says of a statement has an SQLSTATE; a broken connection has none, or one of its own.
    """
    if not isinstance(error, psycopg2.Error):
        return False
    if error.pgcode is None:
        lost = (psycopg2.DatabaseError, psycopg2.OperationalError, psycopg2.InterfaceError)
        return connection is None or bool(connection.closed) or type(error) in lost
    return connection is None or bool(connection.closed) or error.pgcode.startswith(_LOST_CODES)
