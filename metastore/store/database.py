"""Connections to Postgres: a pool for single function calls, the hot path, and a SQLAlchemy engine for the rest."""

from __future__ import annotations

import itertools
import random
import select
import threading
import time
from typing import Any

import psycopg2
import psycopg2.errors
import sqlalchemy

from hive_acid.errors import MetaError

SCHEMA = "hive_acid"
"""The schema of everything we store."""

_OPTIONS = f"-c jit=off -c search_path={SCHEMA}"
# Planning a lock request anew takes longer than the request itself.
_CALL_OPTIONS = f"{_OPTIONS} -c plan_cache_mode=force_generic_plan"
_CONFLICT_RETRIES = 10
_RECONNECT_FOR_S = 5.0
_WAIT_FOR_CONNECTION_S = 30.0
_ENGINE_CONNECTIONS = 8

_CONFLICTS = (psycopg2.errors.SerializationFailure, psycopg2.errors.DeadlockDetected)
_LOST_CODES = ("08", "57P")
"""SQLSTATE classes by which the server takes leave: connection failures, shutdowns, and crashes of a neighbour."""


class Database:
    """A Postgres database; safe to use from many threads."""

    def __init__(self, url: str, pool_size: int = 16) -> None:
        """`url` is a libpq URL, ``postgresql://user@/name?host=/socket/directory``."""
        self._dsn = url.replace("postgresql+psycopg2://", "postgresql://", 1)
        self.engine = sqlalchemy.create_engine(
            self._dsn.replace("postgresql://", "postgresql+psycopg2://", 1),
            connect_args={"options": _OPTIONS},
            pool_size=_ENGINE_CONNECTIONS,
            max_overflow=0,
            pool_pre_ping=True,
        )
        self._free = threading.BoundedSemaphore(pool_size)
        self._idle: list[Any] = []  # last in, first out: the fewest connections stay warm
        self._closed = False
        self._round_trips = itertools.count(1)
        self.calls = 0

    def call(self, function: str, *args: object) -> list[tuple[Any, ...]]:
        """The rows of ``SELECT * FROM function(args)``, one round trip and one database transaction.

        Repeated, with a limit, after a deadlock or serialization failure and after a lost connection. The latter
        leaves open whether the first attempt took effect: the function must be safe to repeat, see `call_once`.
        Raises MetaError when the database stays away.
        """
        return self._call(function, args, repeatable=True)

    def call_once(self, function: str, *args: object) -> list[tuple[Any, ...]]:
        """As `call`, for a function whose repetition would do harm: a connection lost meanwhile is an error."""
        return self._call(function, args, repeatable=False)

    def call_one(self, function: str, *args: object) -> tuple[Any, ...] | None:
        """The first row of `call`, None if there is none."""
        rows = self.call(function, *args)
        return rows[0] if rows else None

    def dedicated_connection(self) -> Any:
        """An autocommit psycopg2 connection outside of the pool, as for session-level locks; the caller closes it."""
        connection = psycopg2.connect(self._dsn, options=_CALL_OPTIONS)
        connection.autocommit = True
        return connection

    def close(self) -> None:
        """Close every connection; calls under way end as usual."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()
        self.engine.dispose()

    def _call(self, function: str, args: tuple[object, ...], repeatable: bool) -> list[tuple[Any, ...]]:
        statement = f"SELECT * FROM {function}({', '.join(['%s'] * len(args))})"
        values = [_array(value) if isinstance(value, (list, tuple, set, frozenset)) else value for value in args]
        if not self._free.acquire(timeout=_WAIT_FOR_CONNECTION_S):
            raise MetaError(f"no database connection became free within {_WAIT_FOR_CONNECTION_S:.0f} s: try again")
        try:
            return self._attempt(function, statement, values, repeatable)
        finally:
            self._free.release()

    def _attempt(self, function: str, statement: str, values: list[object], repeatable: bool) -> list[tuple[Any, ...]]:
        conflicts = 0
        deadline = time.monotonic() + _RECONNECT_FOR_S
        pause_s = 0.005
        while True:
            connection = None
            try:
                connection = self._connection()
                with connection.cursor() as cursor:
                    self.calls = next(self._round_trips)
                    cursor.execute(statement, values)
                    rows: list[tuple[Any, ...]] = cursor.fetchall()
            except _CONFLICTS as error:
                self._put_back(connection)
                conflicts += 1
                if conflicts > _CONFLICT_RETRIES:
                    raise MetaError(f"{function} met {conflicts} conflicts in the database: try again") from error
                time.sleep(random.uniform(0, 0.002 * 2**conflicts))
            except psycopg2.Error as error:
                if connection is not None and not _is_lost(connection, error):
                    self._put_back(connection)
                    raise  # an error of the statement, not of the connection
                if connection is not None:
                    connection.close()
                if connection is not None and not repeatable:
                    raise MetaError(f"the database connection was lost during {function}: outcome unknown") from error
                if time.monotonic() > deadline:
                    raise MetaError(f"the database does not answer: {str(error).strip()}") from error
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, 0.25)
            except BaseException:
                self._put_back(connection)
                raise
            else:
                self._put_back(connection)
                return rows

    def _connection(self) -> Any:
        if self._closed:
            raise MetaError("the metastore is shutting down")
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            # An idle connection has nothing to say unless the server closed it.
            if not connection.closed and not _has_news(connection):
                return connection
            connection.close()
        return self.dedicated_connection()

    def _put_back(self, connection: Any) -> None:
        if connection is None:
            return
        if self._closed:
            connection.close()
        elif not connection.closed:
            self._idle.append(connection)


def _is_lost(connection: Any, error: psycopg2.Error) -> bool:
    """Whether an error is the end of its connection; psycopg2 notices some ends only at the next use.

    What the server says of a statement has an SQLSTATE; a broken connection has none, or one of its own.
    """
    if error.pgcode is None:
        return bool(connection.closed) or type(error) in (psycopg2.DatabaseError, psycopg2.OperationalError)
    return bool(connection.closed) or error.pgcode.startswith(_LOST_CODES)


def _has_news(connection: Any) -> bool:
    """Whether there is something to read; `poll`, since `select` fails beside a thousand client sockets."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def _array(values: Any) -> object:
    """A sequence as Postgres takes it: whole numbers as one literal, which is parsed faster than an ARRAY[...]."""
    values = list(values)
    if all(type(value) is int for value in values):
        return "{" + ",".join(map(str, values)) + "}"
    return values
