"""The ways to Postgres: a batcher for hot calls, and connections for single function calls and for SQLAlchemy."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import psycopg2
import psycopg2.errors
import sqlalchemy
from sqlalchemy.pool import NullPool

from hive_acid.errors import MetaError
from metastore.store.arrays import select_from, values_of
from metastore.store.config import StoreConfig
from metastore.store.connections.address import FIRST_PAUSE_S, LONGEST_PAUSE_S, conninfo_of, with_options
from metastore.store.connections.failures import cause_of, is_lost
from metastore.store.connections.pool import Connections
from metastore.store.connections.undertaking import commit_is_sent, deadline
from metastore.store.hot.batcher import Batcher, HotCall

Q = TypeVar("Q")
A = TypeVar("A")

SCHEMA = "hive_acid"
"""The schema of everything we store."""

_OWN = {
    "jit": "off",
    "search_path": SCHEMA,
    # Who waits for a lock has to see what its holder has done: under others calls fail, or answer from before.
    "default_transaction_isolation": "read committed",
    "idle_session_timeout": "0",
    "idle_in_transaction_session_timeout": "0",  # a long list is read by a client as slowly as it likes
    "array_nulls": "on",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
}
"""Settings of our sessions, whatever the database or the user presets: with others calls mean something else."""
_OPTIONS = " ".join("-c {}={}".format(name, value.replace(" ", "\\ ")) for name, value in _OWN.items())
# Planning a lock request anew takes longer than the request itself.
_CALL_OPTIONS = f"{_OPTIONS} -c plan_cache_mode=force_generic_plan"
# Plans are made once, perhaps when a table is empty, and kept: hot calls find single rows by index, whatever it holds.
# A plain scan of an index marks entries of dead rows, which no later one looks at; a bitmap looks at all till a vacuum.
_HOT_OPTIONS = (
    f"{_CALL_OPTIONS} -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c enable_bitmapscan=off"
)
_GREETING = """DO $$ BEGIN
    IF to_regproc('recover_from_crash') IS NOT NULL THEN PERFORM recover_from_crash(); END IF;
    IF current_setting('transaction_timeout', true) <> '0' THEN
        PERFORM set_config('transaction_timeout', '0', false);  -- a list is read slowly; from Postgres 17
    END IF;
END $$"""
"""What every connection begins with: after a crash of Postgres there are only new ones, so nothing comes before it."""
STREAMS, WAITING_STREAMS = 4, 4
"""Long lists that are read at a time, each on a connection of its own; and those that wait for a slow client."""
_MAKE_ROOM_PAUSE_S = 0.05
_CONFLICTS = (psycopg2.errors.SerializationFailure, psycopg2.errors.DeadlockDetected)


class Database:
    """A Postgres database; safe to use from many threads."""

    def __init__(
        self,
        url: str,
        loop: asyncio.AbstractEventLoop | None = None,
        config: StoreConfig = StoreConfig(),  # noqa: B008 - frozen
    ) -> None:
        """`url` is a libpq URL, ``postgresql://user@/name?host=/socket/directory``; there may be several hosts.

        Never more than ``config.max_connections`` connections are open. `engine` is for cold work.

        Hot calls run on `loop`; without one the database runs a loop of its own when the first is made.

        Raises MetaError for what is no address of a Postgres.
        """
        self.patience_s = config.patience_s
        self._config = config
        self._conninfo = conninfo_of(url)
        self._connections = Connections(
            with_options(self._conninfo, _CALL_OPTIONS), _greet, config.cold_connections, config.patience_s
        )
        self._connections.make_room = self._end_idle_connection
        self.engine = sqlalchemy.create_engine(
            "postgresql+psycopg2://",
            creator=lambda: self._connections.take(autocommit=False),
            poolclass=NullPool,  # the connections are pooled below
            use_native_hstore=False,
        )
        self._closed = False
        self._loop = loop
        self._own_loop_thread: threading.Thread | None = None
        self._batcher: Batcher | None = None
        self._batcher_guard = threading.Lock()
        self._round_trips = itertools.count(1)
        self._calls = 0

    @property
    def calls(self) -> int:
        """Round trips to the database so far, those of SQLAlchemy not counted."""
        return self._calls + (self._batcher.round_trips if self._batcher is not None else 0)

    def wait(self, work: Coroutine[Any, Any, A]) -> A:
        """The outcome of a coroutine that runs on the event loop; from any other thread."""
        return asyncio.run_coroutine_threadsafe(work, self._hot()[1]).result()

    def ask(self, call: HotCall[Q, A], question: Q) -> A:
        """The answer to a hot call; from any thread but the event loop's. Raises what the answer says."""
        answer = self.wait(_asked(self._hot()[0], call, question))
        if not call.is_repeatable(question):
            commit_is_sent()
        return answer

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
        rows = self._call(function, args, repeatable=False)
        commit_is_sent()
        return rows

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

    def dedicated_connection(self, greets: bool = True) -> Any:
        """An autocommit psycopg2 connection of its own, as for session-level locks; the caller closes it.

        One that does not greet is only for questions about the database itself.
        """
        conninfo = with_options(self._conninfo, _CALL_OPTIONS)
        try:
            connection = psycopg2.connect(conninfo)
        except psycopg2.OperationalError:
            # The database may have no slot left, or no place for us, while there are connections that nobody uses.
            self._connections.end_idle()
            time.sleep(_MAKE_ROOM_PAUSE_S)
            connection = psycopg2.connect(conninfo)
        connection.autocommit = True
        if greets:
            _greet(connection)
        return connection

    def close(self) -> None:
        """Close every connection; calls under way end as usual. May be repeated."""
        self._closed = True
        self._connections.close()
        batcher, self._batcher = self._batcher, None
        if batcher is not None and self._loop is not None:
            asyncio.run_coroutine_threadsafe(_closed(batcher), self._loop).result()
        if self._own_loop_thread is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._own_loop_thread.join()
            self._loop.close()
            self._own_loop_thread = None

    def _hot(self) -> tuple[Batcher, asyncio.AbstractEventLoop]:
        batcher, loop = self._batcher, self._loop
        if batcher is not None and loop is not None:
            return batcher, loop
        if self._closed:
            raise MetaError("the metastore is shutting down")
        with self._batcher_guard:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._own_loop_thread = threading.Thread(target=self._loop.run_forever, name="hot-calls", daemon=True)
                self._own_loop_thread.start()
            if self._batcher is None:
                self._batcher = Batcher(self._conninfo, _HOT_OPTIONS, _GREETING, self._loop, self._config)
                self._batcher.make_room = self._connections.end_idle
            return self._batcher, self._loop

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
        return self._attempt(function, statement, values_of(args), repeatable)

    def _attempt(self, function: str, statement: str, values: list[object], repeatable: bool) -> list[tuple[Any, ...]]:
        conflicts = 0
        until = deadline(self.patience_s)
        pause_s = FIRST_PAUSE_S
        while True:
            connection = self._connections.take(autocommit=True)
            try:
                with connection.cursor() as cursor:
                    self._calls = next(self._round_trips)
                    cursor.execute(statement, values)
                    rows: list[tuple[Any, ...]] = cursor.fetchall()
                    return rows
            except _CONFLICTS as error:
                conflicts += 1
                if conflicts > self._config.retry_attempts:
                    raise MetaError(f"{function} met {conflicts} conflicts in the database: try again") from error
                pause_s = random.uniform(0, 0.002 * 2**conflicts)
            except psycopg2.Error as error:
                if not is_lost(connection, error):
                    raise  # an error of the statement, not of the connection
                connection.end()
                if not repeatable:
                    words = f"the database connection was lost during {function}, the outcome is unknown"
                    raise MetaError(f"{words}: {cause_of(error)}") from error
                if time.monotonic() > until:
                    words = "the database does not answer, the outcome is unknown"
                    raise MetaError(f"{words}: {cause_of(error)}") from error
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
            finally:
                connection.close()
            time.sleep(pause_s)

    def _end_idle_connection(self) -> None:
        batcher, loop = self._batcher, self._loop
        if batcher is not None and loop is not None:
            loop.call_soon_threadsafe(batcher.end_idle)


def _greet(connection: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_GREETING)


async def _asked(batcher: Batcher, call: HotCall[Q, A], question: Q) -> A:
    return await batcher.ask(call, question)


async def _closed(batcher: Batcher) -> None:
    batcher.close()
