"""Blocking connections to one database, lent to calls and to SQLAlchemy: never more than are allowed.

When no other can be made, as when the database has no slot left, what there is goes around, and growing is tried again
later. Who finds the database away waits for it, as long as anybody: `patience_s`.
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg2
import psycopg2.extensions

from hive_acid.errors import MetaError
from metastore.store.connections.address import FIRST_PAUSE_S, LONGEST_PAUSE_S
from metastore.store.connections.failures import cause_of, is_lost
from metastore.store.connections.outcomes import Life, life_of, transaction_id, was_committed
from metastore.store.connections.undertaking import commit_is_sent, commit_is_undone, deadline

RESERVE = 4
"""Connections that only those take who have one already, so that they do not wait for each other."""


class Connections:
    """Lends connections; safe to use from many threads."""

    def __init__(self, conninfo: str, greet: Callable[[Any], None], most: int, patience_s: float) -> None:
        """`greet` is what a new connection begins with; if it fails, the connection is of no use."""
        self._conninfo = conninfo
        self._greet = greet
        self._most = most
        self._patience_s = patience_s
        self._idle: list[LentConnection] = []  # last in, first out: the fewest connections stay warm
        self._count = 0
        self._may_grow_at = 0.0
        self._pause_s = FIRST_PAUSE_S
        self._words = ""
        self._closed = False
        self._held = threading.local()
        self._changed = threading.Condition()
        self.make_room: Callable[[], None] = lambda: None
        """Called when the database lets nobody in and there is none here, to end one that is idle elsewhere."""

    def take(self, *, autocommit: bool) -> LentConnection:
        """A connection of one's own until `close` gives it back.

        Raises MetaError when there was none for as long as the patience lasts.
        """
        until = deadline(self._patience_s)
        while True:
            connection = self._free(until) or self._made(until)
            if connection is None:
                continue
            try:
                if connection.autocommit != autocommit:
                    connection.autocommit = autocommit
            except psycopg2.Error:
                self._ended(connection)
                continue
            connection.is_lent = True
            self._held.number = self._number_held + 1
            return connection

    def give_back(self, connection: LentConnection) -> None:
        """Take a connection back, or what is left of it."""
        self._held.number = max(0, self._number_held - 1)
        if self._closed or connection.closed:
            self._ended(connection)
            return
        with self._changed:
            self._idle.append(connection)
            self._changed.notify()

    def end_idle(self) -> None:
        """End a connection that nobody uses, so that another may be made elsewhere."""
        with self._changed:
            connection = self._idle.pop(0) if self._idle else None
        if connection is not None:
            self._ended(connection)

    def was_committed(self, transaction: str, life: Life | None) -> bool | None:
        """What became of a transaction whose connection was lost, see `outcomes`; waits while the patience lasts."""
        return was_committed(self, transaction, life, deadline(self._patience_s))

    def close(self) -> None:
        """End those that nobody uses; those that are lent end when they come back."""
        with self._changed:
            self._closed = True
            idle, self._idle = self._idle, []
            self._changed.notify_all()
        for connection in idle:
            self._ended(connection)

    @property
    def _number_held(self) -> int:
        return getattr(self._held, "number", 0)

    def _free(self, until: float) -> LentConnection | None:
        """One that is idle; None if a new one may be made, which is counted from now on."""
        with self._changed:
            while True:
                if self._closed:
                    raise MetaError("the metastore is shutting down")
                most = self._most if self._number_held else max(1, self._most - RESERVE)
                while self._idle and self._count - len(self._idle) < most:
                    connection = self._idle.pop()
                    # An idle connection has nothing to say unless the server closed it.
                    if not connection.closed and not _has_news(connection):
                        return connection
                    self._count -= 1
                    connection.end()
                now = time.monotonic()
                may_be_made = self._count < most
                if may_be_made and now >= self._may_grow_at:
                    self._count += 1
                    return None
                if now > until:
                    raise MetaError(self._refusal(may_be_made))
                self._changed.wait(min(until, self._may_grow_at if may_be_made else until) - now + 0.001)

    def _made(self, until: float) -> LentConnection | None:
        """A new one; None if the database does not let us in, and it is too early to give up."""
        try:
            connection: LentConnection = psycopg2.connect(self._conninfo, connection_factory=LentConnection)
            connection.pool = self
            connection.autocommit = True
        except psycopg2.Error as error:
            with self._changed:
                self._count -= 1
                self._words = cause_of(error)
                self._may_grow_at = time.monotonic() + self._pause_s
                self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
                self._changed.notify()
                is_without = self._count == 0
            if is_without:
                self.make_room()
            if time.monotonic() > until:
                raise MetaError(self._refusal(True)) from error
            return None
        try:
            self._greet(connection)
            connection.life = life_of(connection)
        except psycopg2.Error as error:
            self._words = cause_of(error)
            self._ended(connection)
            if time.monotonic() > until:
                raise MetaError(self._refusal(True)) from error
            time.sleep(self._pause_s)
            return None
        self._pause_s = FIRST_PAUSE_S
        return connection

    def _ended(self, connection: LentConnection) -> None:
        connection.end()
        with self._changed:
            self._count -= 1
            self._changed.notify()

    def _refusal(self, may_be_made: bool) -> str:
        if may_be_made:
            return f"the database does not answer, nothing was done: {self._words}"
        return f"no database connection became free within {self._patience_s:.0f} s, nothing was done: try again"


class LentConnection(psycopg2.extensions.connection):  # type: ignore[misc]
    """A connection that `close` gives back to where it is from; `end` really ends it, and it is still to be closed."""

    pool: Connections
    is_lent = False
    life: Life | None = None
    """See `outcomes`: a connection has one."""

    def commit(self) -> None:
        """Commit; from then on what the thread does has had an effect.

        When the connection is lost meanwhile and the database says afterwards that it was done, it is done.
        """
        if self.info.transaction_status != psycopg2.extensions.TRANSACTION_STATUS_INTRANS:
            super().commit()
            return
        transaction = transaction_id(self)
        if transaction is None:
            super().commit()
            return
        had_committed = commit_is_sent()
        try:
            super().commit()
        except psycopg2.Error as error:
            if not is_lost(self, error):
                raise
            was_done = self.pool.was_committed(transaction, self.life)
            if was_done is None:
                raise
            if not was_done:
                commit_is_undone(had_committed)
                raise

    def rollback(self) -> None:
        """Undo what is not committed; of a connection that was lost there is nothing."""
        if not self.closed:
            super().rollback()

    def close(self) -> None:
        """Give the connection back."""
        if self.is_lent:
            self.is_lent = False
            self.pool.give_back(self)

    def end(self) -> None:
        """End the connection."""
        super().close()


def _has_news(connection: Any) -> bool:
    """Whether there is something to read; `poll`, since `select` fails beside a thousand client sockets."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))
