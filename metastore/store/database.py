"""Connections to Postgres: lanes for hot calls, a pool for single function calls, a SQLAlchemy engine for the rest."""

from __future__ import annotations

import asyncio
import itertools
import random
import select
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import psycopg
import psycopg2
import psycopg2.errors
import sqlalchemy

from hive_acid.errors import MetaError
from metastore.store.arrays import select_from, values_of
from metastore.store.config import StoreConfig
from metastore.store.hot import HotCall, Lanes
from metastore.store.link import LOST_CODES

Q = TypeVar("Q")
A = TypeVar("A")

SCHEMA = "hive_acid"
"""The schema of everything we store."""

_OPTIONS = f"-c jit=off -c search_path={SCHEMA}"
# Planning a lock request anew takes longer than the request itself.
_CALL_OPTIONS = f"{_OPTIONS} -c plan_cache_mode=force_generic_plan"
# Plans are made once, perhaps when a table is empty, and kept: hot calls find single rows by index, whatever it holds.
_HOT_OPTIONS = f"{_CALL_OPTIONS} -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off"
_GREETING = (
    "DO $$ BEGIN IF to_regproc('recover_from_crash') IS NOT NULL THEN PERFORM recover_from_crash(); END IF; END $$"
)
"""What every connection begins with: after a crash of Postgres there are only new ones, so nothing comes before it."""
_WAIT_FOR_CONNECTION_S = 30.0
_ENGINE_CONNECTIONS = 8
STREAMS = 4
"""Long lists that are read at a time, each on a connection of its own: their readers may take their time."""

DATABASE_ERRORS = (psycopg2.Error, psycopg.Error)
"""What the database says of a call, a cold or a hot one."""
_CONFLICTS = (psycopg2.errors.SerializationFailure, psycopg2.errors.DeadlockDetected)


class Database:
    """A Postgres database; safe to use from many threads."""

    def __init__(
        self,
        url: str,
        pool_size: int = 16,
        loop: asyncio.AbstractEventLoop | None = None,
        config: StoreConfig = StoreConfig(),  # noqa: B008 - frozen
    ) -> None:
        """`url` is a libpq URL, ``postgresql://user@/name?host=/socket/directory``.

        `engine` is for cold work; `streams` for lists that are read while they are sent (`rows`).

        Hot calls run on `loop`; without one the database runs a loop of its own when the first is made.
        """
        self._config = config
        self._dsn = url.replace("postgresql+psycopg2://", "postgresql://", 1)
        self.engine = self._engine(_ENGINE_CONNECTIONS)
        self.streams = self._engine(STREAMS)
        self._free = threading.BoundedSemaphore(pool_size)
        self._idle: list[Any] = []  # last in, first out: the fewest connections stay warm
        self._closed = False
        self._loop = loop
        self._own_loop_thread: threading.Thread | None = None
        self._lanes: Lanes | None = None
        self._lanes_guard = threading.Lock()
        self._round_trips = itertools.count(1)
        self._calls = 0

    @property
    def calls(self) -> int:
        """Round trips to the database so far, those of SQLAlchemy not counted."""
        return self._calls + (self._lanes.trips if self._lanes is not None else 0)

    def wait(self, work: Coroutine[Any, Any, A]) -> A:
        """The outcome of a coroutine that runs on the event loop; from any other thread."""
        return asyncio.run_coroutine_threadsafe(work, self._hot()[1]).result()

    def ask(self, call: HotCall[Q, A], question: Q) -> A:
        """The answer to a hot call; from any thread but the event loop's. Raises what the answer says."""
        return self.wait(_asked(self._hot()[0], call, question))

    def ask_soon(self, call: HotCall[Q, A], question: Q) -> asyncio.Future[A]:
        """The answer to a hot call, to be awaited; on the event loop."""
        return self._hot()[0].ask(call, question)

    async def run(self, function: Callable[..., A], *args: Any) -> A:
        """The outcome of blocking work, done on a thread of the event loop's; on the event loop."""
        return await asyncio.get_running_loop().run_in_executor(None, function, *args)

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

    def call_behind(
        self, guard: str, guarded_by: Sequence[object], function: str, *args: object
    ) -> list[tuple[Any, ...]]:
        """As `call`, in the same round trip and database transaction behind a function that may raise.

        Statements sent together are one transaction: nothing is done if the guard raises, and what it has locked stays
        locked to the end.
        """
        return self._call(function, args, repeatable=True, guard=(guard, guarded_by))

    def call_one(self, function: str, *args: object) -> tuple[Any, ...] | None:
        """The first row of `call`, None if there is none."""
        rows = self.call(function, *args)
        return rows[0] if rows else None

    def dedicated_connection(self) -> Any:
        """An autocommit psycopg2 connection outside of the pool, as for session-level locks; the caller closes it."""
        connection = psycopg2.connect(self._dsn, options=_CALL_OPTIONS)
        connection.autocommit = True
        _greet(connection)
        return connection

    def close(self) -> None:
        """Close every connection; calls under way end as usual."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()
        self.engine.dispose()
        self.streams.dispose()
        lanes, self._lanes = self._lanes, None
        if lanes is not None and self._loop is not None:
            asyncio.run_coroutine_threadsafe(_closed(lanes), self._loop).result()
        if self._own_loop_thread is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._own_loop_thread.join()
            self._loop.close()
            self._own_loop_thread = None

    def _engine(self, connections: int) -> sqlalchemy.Engine:
        engine = sqlalchemy.create_engine(
            self._dsn.replace("postgresql://", "postgresql+psycopg2://", 1),
            connect_args={"options": _OPTIONS},
            pool_size=connections,
            max_overflow=0,
            pool_pre_ping=True,
        )
        sqlalchemy.event.listen(engine, "connect", lambda connection, _: _greet(connection))
        return engine

    def _hot(self) -> tuple[Lanes, asyncio.AbstractEventLoop]:
        lanes, loop = self._lanes, self._loop
        if lanes is not None and loop is not None:
            return lanes, loop
        if self._closed:
            raise MetaError("the metastore is shutting down")
        with self._lanes_guard:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._own_loop_thread = threading.Thread(target=self._loop.run_forever, name="hot-calls", daemon=True)
                self._own_loop_thread.start()
            if self._lanes is None:
                self._lanes = Lanes(self._dsn, _HOT_OPTIONS, _GREETING, self._loop, self._config)
            return self._lanes, self._loop

    def _call(
        self,
        function: str,
        args: tuple[object, ...],
        repeatable: bool,
        guard: tuple[str, Sequence[object]] | None = None,
    ) -> list[tuple[Any, ...]]:
        statement = select_from(function, args)
        if guard is not None:
            statement, args = f"{select_from(*guard)}; {statement}", (*guard[1], *args)
        if not self._free.acquire(timeout=_WAIT_FOR_CONNECTION_S):
            raise MetaError(f"no database connection became free within {_WAIT_FOR_CONNECTION_S:.0f} s: try again")
        try:
            return self._attempt(function, statement, values_of(args), repeatable)
        finally:
            self._free.release()

    def _attempt(self, function: str, statement: str, values: list[object], repeatable: bool) -> list[tuple[Any, ...]]:
        conflicts = 0
        deadline = time.monotonic() + self._config.patience_s
        pause_s = 0.005
        while True:
            connection = None
            try:
                connection = self._connection()
                with connection.cursor() as cursor:
                    self._calls = next(self._round_trips)
                    cursor.execute(statement, values)
                    rows: list[tuple[Any, ...]] = cursor.fetchall()
            except _CONFLICTS as error:
                self._put_back(connection)
                conflicts += 1
                if conflicts > self._config.retry_attempts:
                    raise MetaError(f"{function} met {conflicts} conflicts in the database: try again") from error
                time.sleep(random.uniform(0, 0.002 * 2**conflicts))
            except psycopg2.Error as error:
                if connection is not None and not is_lost(connection, error):
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


def _greet(connection: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_GREETING)
    if not connection.autocommit:
        connection.commit()


def _has_news(connection: Any) -> bool:
    """Whether there is something to read; `poll`, since `select` fails beside a thousand client sockets."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


async def _asked(lanes: Lanes, call: HotCall[Q, A], question: Q) -> A:
    return await lanes.ask(call, question)


async def _closed(lanes: Lanes) -> None:
    lanes.close()


def is_lost(connection: Any, error: psycopg2.Error) -> bool:
    """Whether an error is the end of its connection; psycopg2 notices some ends only at the next use.

    What the server says of a statement has an SQLSTATE; a broken connection has none, or one of its own.
    """
    if error.pgcode is None:
        lost = (psycopg2.DatabaseError, psycopg2.OperationalError, psycopg2.InterfaceError)
        return bool(connection.closed) or type(error) in lost
    return bool(connection.closed) or error.pgcode.startswith(LOST_CODES)
