"""One connection to Postgres on the event loop: a call of a stored function at a time, no thread.

It speaks by psycopg's `pq`, libpq itself: functions are prepared once in a connection, so a call is neither parsed nor
planned. Preparing and calling go together, so that the first call takes one round trip as well.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

import psycopg
from psycopg import errors, pq
from psycopg.adapt import Transformer

from metastore.store.connections.address import CONNECT_S, with_options
from metastore.store.connections.failures import LOST_CODES

Rows = list[tuple[Any, ...]]
Done = Callable[[Rows | None, Exception | None], None]
"""Told the rows of a call, or why there are none."""

_STALE: Final = frozenset({"0A000", "26000", "25006"})
"""A function has another signature now, the prepared statements are gone, or the server is a standby now: a new
connection knows better."""


class HotConnection:
    """A connection that carries calls of stored functions; made, used and closed on one event loop.

    It connects at its first call. After an error of the connection it is of no more use: `is_broken`.
    """

    def __init__(self, dsn: str, options: str, loop: asyncio.AbstractEventLoop, greeting: str = "SELECT 1") -> None:
        """`greeting` is a statement that a new connection begins with; if it fails, the connection is broken."""
        self._conninfo = with_options(dsn, options)
        self._greeting = greeting.encode()
        self._loop = loop
        self._connection: pq.abc.PGconn | None = None
        self._descriptor = -1
        self._is_connected = False
        self._began_s = 0.0
        self._is_greeted = False
        self._writes = False
        self._prepared: set[str] = set()
        self._transformer = Transformer()
        self._call: tuple[str, Sequence[bytes | None]] = "", ()
        self._done: Done | None = None
        self._awaited: deque[str | None] = deque()
        """What is under way, in its order: None for the call, else what is prepared."""
        self._rows: Rows = []
        self._error: Exception | None = None
        self.is_broken = False
        self.is_proven = False
        """Whether it has carried a call to its end; its user says so."""
        self.has_carried = False
        """Whether the call under way was sent, so that it may have taken effect."""

    def send(self, function: str, parameters: Sequence[bytes | None], done: Done) -> None:
        """Call a function with its parameters as texts; `done` is called from the event loop, later.

        Only when nothing is under way.
        """
        assert self._done is None
        self._done = done
        self._call = function, parameters
        self.has_carried = False
        try:
            if self._connection is None:
                self._began_s = self._loop.time()
                self._connection = pq.PGconn.connect_start(self._conninfo.encode())
                self._connect(pq.PollingStatus.WRITING)
            else:
                self._execute()
        except Exception as error:
            self._unwatch()  # not later: libpq has closed the socket, and the next one may have its number
            self._loop.call_soon(self._finish, None, error)

    def look(self) -> None:
        """See how the call under way is doing, as if something had been heard; give up connecting after a while."""
        if self._done is None or self._connection is None:
            return
        if not self._is_greeted and self._loop.time() - self._began_s > CONNECT_S:
            # libpq leaves this limit to whoever connects by steps; the next try may begin with another host.
            self._end()
            self._finish(None, psycopg.OperationalError(f"no connection within {CONNECT_S} s"))
            return
        self._advance()

    def close(self) -> None:
        """Let go of the connection; a call under way is told so."""
        self._end()
        if self._done is not None:
            self._finish(None, psycopg.OperationalError("the connection was closed"))

    def _connect(self, state: pq.PollingStatus) -> None:
        """Take the next step of connecting."""
        assert self._connection is not None
        if state == pq.PollingStatus.OK:
            self._watch_socket()
            self._is_connected = True
            self._connection.nonblocking = 1
            self._connection.enter_pipeline_mode()
            self._connection.send_query_params(self._greeting, None)
            self._connection.pipeline_sync()
            self._watch_writes(self._connection.flush() != 0)
        elif state == pq.PollingStatus.FAILED:
            raise psycopg.OperationalError(self._connection.get_error_message())
        else:
            self._watch_socket()
            self._watch_writes(state == pq.PollingStatus.WRITING)

    def _execute(self) -> None:
        connection, awaited = self._connection, self._awaited
        assert connection is not None
        function, parameters = self._call
        self._rows, self._error = [], None
        self.has_carried = True
        name = function.encode()
        if function not in self._prepared:
            places = b", ".join([b"$%d" % place for place in range(1, len(parameters) + 1)])
            connection.send_prepare(name, b"SELECT * FROM %s(%s)" % (name, places))
            awaited.append(function)
        connection.send_query_prepared(name, parameters)
        awaited.append(None)
        connection.pipeline_sync()
        self._watch_writes(connection.flush() != 0)

    def _advance(self) -> None:
        """Take the next step of the connection or the call, as far as it goes without waiting."""
        connection = self._connection
        assert connection is not None
        try:
            if not self._is_connected:
                self._connect(pq.PollingStatus(connection.connect_poll()))
                return
            if self._writes:
                self._watch_writes(connection.flush() != 0)
            connection.consume_input()
            while not connection.is_busy():
                result = connection.get_result()
                if result is None:  # behind each part
                    if connection.status == pq.ConnStatus.BAD:
                        raise psycopg.OperationalError(connection.get_error_message())
                elif result.status != pq.ExecStatus.PIPELINE_SYNC:
                    self._take(result)
                elif self._is_greeted:
                    self._finish(self._rows if self._error is None else None, self._error)
                    return
                elif self._error is not None:
                    self._end()
                    self._finish(None, self._error)
                    return
                else:
                    self._is_greeted = True
                    self._execute()
        except Exception as error:
            self._finish(None, self._error or error)

    def _take(self, result: pq.abc.PGresult) -> None:
        """The answer to the next of what is awaited; the first error counts."""
        part = self._awaited.popleft() if self._awaited else ""  # the greeting
        if result.status == pq.ExecStatus.TUPLES_OK:
            if part is None:
                self._transformer.set_pgresult(result)
                self._rows = self._transformer.load_rows(0, result.ntuples, tuple)
        elif result.status == pq.ExecStatus.COMMAND_OK:
            if part:
                self._prepared.add(part)
        elif self._error is None:
            self._error = errors.error_from_result(result)

    def _readable(self) -> None:
        if self._done is None:
            self.close()  # nothing was asked: what the server has to say is goodbye
        else:
            self._advance()

    def _watch_socket(self) -> None:
        """While libpq connects it may take another socket, perhaps with the number of the one before."""
        assert self._connection is not None
        self._unwatch()
        self._descriptor = self._connection.socket
        self._loop.add_reader(self._descriptor, self._readable)

    def _watch_writes(self, writes: bool) -> None:
        if writes != self._writes:
            self._writes = writes
            if writes:
                self._loop.add_writer(self._descriptor, self._advance)
            else:
                self._loop.remove_writer(self._descriptor)

    def _unwatch(self) -> None:
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            if self._writes:
                self._loop.remove_writer(self._descriptor)
        self._descriptor, self._writes = -1, False

    def _finish(self, rows: Rows | None, error: Exception | None) -> None:
        done, self._done = self._done, None
        self._awaited.clear()
        if error is not None and self._is_lost(error):
            self._end()
        if done is not None:
            done(rows, error)

    def _is_lost(self, error: Exception) -> bool:
        """Whether an error is the end of the connection: it is not what the server says of a statement."""
        connection = self._connection
        if connection is None or connection.status == pq.ConnStatus.BAD:
            return True
        if not isinstance(error, psycopg.Error) or error.sqlstate is None:
            return True
        if error.sqlstate in _STALE:
            self.has_carried = False  # refused before it had an effect
            return True
        return error.sqlstate.startswith(LOST_CODES)

    def _end(self) -> None:
        self.is_broken = True
        self._unwatch()
        if self._connection is not None:
            self._connection.finish()
