"""Knows whether the database can be used: it is asked every second, by a thread on a connection of its own."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import Any

import psycopg2

from metastore.observe.log import event
from metastore.store.connections.failures import NO_ROOM, cause_of, code_of, refusal_of
from metastore.store.database import Database

LOG = logging.getLogger("metastore.store")
INTERVAL_S = 1.0
STALE_S = 5.0
"""An answer that is older says nothing any more."""
ROOM_INTERVAL_S = 10.0
"""How often it is tried to write, so that a full disk is noticed before a client is refused."""
_LOOK = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean"
_MAKE_ROOM = "CREATE TEMP TABLE IF NOT EXISTS room (x name)"
_NEED_ROOM = (
    "DO $$ BEGIN INSERT INTO pg_temp.room SELECT 'x' FROM generate_series(1, 12000); TRUNCATE pg_temp.room; END $$"
)
"""A megabyte: small writes may find room where larger ones do not, so this one takes new pages. They are given back."""


class DatabaseWatch:
    """Asks from `start` to `stop`."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._connection: Any = None
        self._answered_at = float("-inf")
        self._trouble: str | None = "the database has not been asked yet"
        self._wants_room: str | None = None
        self._wrote_at = float("-inf")
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Ask for the first time, then on a thread until `stop`."""
        self._look()
        self._thread = threading.Thread(target=self._watch, name="database-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask no more. May be repeated."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(INTERVAL_S)  # it may hang in a question that nobody answers
            self._thread = None

    def trouble(self) -> str | None:
        """Why the database cannot be used at present; None if it has answered within `STALE_S`."""
        if self._trouble is None and time.monotonic() - self._answered_at > STALE_S:
            return f"the database has not answered for {STALE_S:.0f} s"
        return self._trouble

    def has_no_room(self, reason: str) -> None:
        """A call was refused for want of disk space: that is the trouble until there is room again."""
        self._wants_room = self._trouble = reason

    def _watch(self) -> None:
        while not self._ended.wait(INTERVAL_S):
            self._look()
        if self._connection is not None:
            self._connection.close()

    def _look(self) -> None:
        wanted = self._wants_room
        trouble = None
        try:
            if self._connection is None:
                self._connection = self._db.dedicated_connection()
            with self._connection.cursor() as cursor:
                cursor.execute(_LOOK)
                if cursor.fetchone()[0]:
                    trouble = "the database is read-only at present: it may be the standby of another one"
                elif wanted is not None or time.monotonic() - self._wrote_at > ROOM_INTERVAL_S:
                    self._write(cursor)
        except psycopg2.Error as error:
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            trouble = cause_of(error)
            if code_of(error) == NO_ROOM:
                wanted = self._wants_room = str(refusal_of(error))
        self._answered_at = time.monotonic()
        if trouble is None and self._wants_room is wanted:
            self._wants_room = None
        trouble = trouble or self._wants_room
        before, self._trouble = self._trouble, trouble
        if trouble is not None and before != trouble:
            event(LOG, logging.WARNING, "database in trouble", reason=trouble)
        elif trouble is None and before is not None:
            event(LOG, logging.INFO, "database answers")

    def _write(self, cursor: Any) -> None:
        """Take new pages and give them back."""
        with contextlib.suppress(psycopg2.errors.InsufficientPrivilege):  # then only calls find out
            cursor.execute(_MAKE_ROOM)
            cursor.execute(_NEED_ROOM)
        self._wrote_at = time.monotonic()
