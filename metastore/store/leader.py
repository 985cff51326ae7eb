"""Which of several servers on one database runs the background services.

The leader holds a session-level advisory lock on a connection of its own; Postgres frees the lock with the connection,
so a killed leader is followed at once. On any doubt a server is no leader.
"""

from __future__ import annotations

import threading
from typing import Any

import psycopg2

from metastore.store.database import Database

SERVICES_LOCK = 4_083_001
"""The key of the advisory lock, distinct from the one that guards migrations."""


class Leader:
    """Ask `is_leader` before each run of a service."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._guard = threading.Lock()
        self._connection: Any = None
        self._leads = False

    def is_leader(self) -> bool:
        """Whether this server holds the leadership now; takes it if it is free."""
        with self._guard:
            try:
                if self._connection is None:
                    self._connection = self._db.dedicated_connection()
                with self._connection.cursor() as cursor:
                    # A held lock is only asked after: taking it again would have to be undone as often.
                    cursor.execute("SELECT 1" if self._leads else f"SELECT pg_try_advisory_lock({SERVICES_LOCK})::int")
                    self._leads = cursor.fetchone()[0] == 1
            except psycopg2.Error:
                self._drop()
            return self._leads

    def resign(self) -> None:
        """Give the leadership up, at the stop of the server."""
        with self._guard:
            self._drop()

    def _drop(self) -> None:
        self._leads = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None
