"""Hot calls: what is asked at the same time goes to the database together.

A hot RPC is one set-based PL/pgSQL function: it takes arrays, answers many calls in one database transaction and
shares their flush of the log. Calls of one kind wait in a queue; while a batch of it is under way the next one
gathers. Alone, a call goes at once; under load batches grow by themselves. Everything here runs on the event loop, so
there is no thread to hand over to and no lock.
"""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, TypeVar, cast

import psycopg

from hive_acid.errors import MetaError, MetastoreError
from metastore.store.arrays import texts_of
from metastore.store.config import StoreConfig
from metastore.store.connections.address import FIRST_PAUSE_S, LONGEST_PAUSE_S, in_any_order
from metastore.store.connections.failures import cause_of
from metastore.store.hot.connection import HotConnection, Rows

Q = TypeVar("Q")
A = TypeVar("A")

MAX_WAITING = 100_000
"""Calls of one kind that may wait; each connection has one call in flight, so this is a bound on connections."""
_CONFLICT_CODES = frozenset({"40001", "40P01", "23505"})
"""Serialization failure, deadlock, and two that put down the same thing first."""
_DEFERRALS = 1000
WORTH_A_SECOND = 3
"""Beside a batch under way another is begun only for so many calls: fewer wait for it to end, or for more to come."""
TOGETHER = 2
"""Batches under way at a time: fewer make longer batches, which cost less; one would leave Postgres idle in between."""
PATIENCE_S = 0.01
"""A call that has waited for so long goes before longer queues."""
SLOW_S = 0.01
"""A batch that takes longer, as a commit of many partitions, does not hold the others up: it is passed by, as long as
another connection is allowed."""

LOOK_S = 1.0
"""How often what is under way is looked at without a call to do so. When a socket fails, as with a statement that
Postgres has not read before it ended, libuv ceases to watch it and tells nobody."""


class Again:
    """The answer that puts a question at the front of the next batch: it cannot go with those of its own."""


AGAIN: Final = Again()


class HotCall(ABC, Generic[Q, A]):
    """One kind of hot call: how questions become a function's arguments, and its rows their answers."""

    function: ClassVar[str]
    connections: ClassVar[int] = 1
    """Batches under way at a time."""
    max_batch: ClassVar[int | None] = None
    """Calls that may go together; None for as many as are configured."""

    @property
    def queue(self) -> Hashable:
        """What goes together; calls that differ in more than their questions have queues of their own."""
        return self.function

    @abstractmethod
    def arguments(self, questions: Sequence[Q]) -> list[object]:
        """The arguments of the function for a batch; sequences become arrays."""

    @abstractmethod
    def answers(self, questions: Sequence[Q], rows: Rows) -> Sequence[A | MetastoreError | Again]:
        """One answer for each question, in their order; an error is raised to its caller."""

    def is_repeatable(self, question: Q) -> bool:
        """Whether the question may be asked again if the connection was lost meanwhile, its outcome unknown."""
        return True


@dataclass(slots=True)
class _Asked:
    question: Any
    answer: asyncio.Future[Any]
    since_s: float
    deferred: int = 0
    is_sent: bool = False
    """Whether it has been asked before on a connection that was lost, so that it may have taken effect."""


@dataclass(slots=True)
class _Batch:
    asked: list[_Asked]
    is_alone: bool = False
    """Whether its only call was parted from others with which it had failed."""
    conflicts: int = 0


class _Queue:
    """The calls of one kind that wait, and how to ask for them."""

    def __init__(self, call: HotCall[Any, Any], batcher: Batcher, config: StoreConfig) -> None:
        self._call, self._batcher, self._config = call, batcher, config
        self._loop = batcher.loop
        self._max_batch = call.max_batch or config.batch_size
        self._waiting: deque[_Asked] = deque()
        self._alone: deque[_Asked] = deque()
        self._under_way = 0
        self._is_closed = False
        self.round_trips = 0

    def submit(self, question: Any) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = self._loop.create_future()
        if self._is_closed:
            answer.set_exception(MetaError("the metastore is shutting down"))
        elif len(self._waiting) >= MAX_WAITING:
            answer.set_exception(MetaError(f"{MAX_WAITING} calls of this kind wait already: try again later"))
        else:
            self._waiting.append(_Asked(question, answer, self._loop.time()))
            self._batcher.wake(self)
        return answer

    def close(self) -> None:
        self._is_closed = True
        for asked in (*self._alone, *self._waiting):
            _refuse(asked, MetaError("the metastore is shutting down"))
        self._alone.clear()
        self._waiting.clear()

    @property
    def waits(self) -> bool:
        """Whether anybody does."""
        return bool(self._alone or self._waiting)

    @property
    def ready(self) -> int:
        """How many could go now."""
        return (len(self._alone) or len(self._waiting)) if self._under_way < self._call.connections else 0

    @property
    def waits_since_s(self) -> float:
        """When the first of those who could go now has come."""
        return (self._alone or self._waiting)[0].since_s

    def start(self, connection: HotConnection) -> None:
        """Send the next batch."""
        if self._alone:
            batch = _Batch([self._alone.popleft()], is_alone=True)
        else:
            batch = _Batch([self._waiting.popleft() for _ in range(min(len(self._waiting), self._max_batch))])
        self._under_way += 1
        self._send(batch, connection)

    def _send(self, batch: _Batch, connection: HotConnection) -> None:
        if self._is_closed:
            self._refuse_all(batch, MetaError("the metastore is shutting down"))
            return
        if connection.is_broken:  # while a conflict was waited out
            connection.has_carried = False
            self._lost(batch, connection, psycopg.OperationalError("the connection was closed"))
            return
        self.round_trips += 1
        try:
            parameters = texts_of(self._call.arguments([one.question for one in batch.asked]))
        except Exception as error:
            self._failed(batch, connection, error)
            return
        connection.send(self._call.function, parameters, lambda rows, error: self._done(batch, connection, rows, error))

    def _done(self, batch: _Batch, connection: HotConnection, rows: Rows | None, error: Exception | None) -> None:
        if not connection.is_broken:
            self._batcher.has_answered()
        if error is not None:
            self._failed(batch, connection, error)
            return
        try:
            self._settle(batch, self._call.answers([one.question for one in batch.asked], cast("Rows", rows)))
        except Exception as problem:  # not to be asked again: it has taken effect
            self._refuse_all(batch, problem)
        self._release(connection)

    def _settle(self, batch: _Batch, answers: Sequence[Any]) -> None:
        again = []
        for one, answer in zip(batch.asked, answers, strict=True):
            if answer is AGAIN:
                one.deferred += 1
                if one.deferred <= _DEFERRALS:
                    again.append(one)
                else:
                    _refuse(one, MetaError("too many others ask for the same: try again"))
            elif one.answer.done():
                continue  # the caller has gone
            elif isinstance(answer, BaseException):
                one.answer.set_exception(answer)
            else:
                one.answer.set_result(answer)
        self._waiting.extendleft(reversed(again))

    def _release(self, connection: HotConnection) -> None:
        self._under_way -= 1
        self._batcher.release(connection, self)

    def _failed(self, batch: _Batch, connection: HotConnection, error: Exception) -> None:
        code = error.sqlstate if isinstance(error, psycopg.Error) else None
        if connection.is_broken:
            self._lost(batch, connection, error)
        elif code in _CONFLICT_CODES:
            batch.conflicts += 1
            if batch.conflicts <= self._config.retry_attempts:
                pause_s = random.uniform(0, 0.002 * 2**batch.conflicts)
                self._loop.call_later(pause_s, self._send, batch, connection)
            else:
                words = f"{self._call.function} met {batch.conflicts} conflicts in the database: try again"
                self._refuse_all(batch, MetaError(words))
                self._release(connection)
        elif len(batch.asked) > 1:
            self._alone.extend(batch.asked)  # only the one that is to blame shall fail
            self._release(connection)
        else:
            self._refuse_all(batch, error)
            self._release(connection)

    def _lost(self, batch: _Batch, connection: HotConnection, error: Exception) -> None:
        """The connection broke, or never came up: what may be repeated waits again, before all others."""
        lasting = []
        for one in batch.asked:
            # A connection that never came up has carried nothing.
            if connection.has_carried and not self._call.is_repeatable(one.question):
                words = f"the database connection was lost during {self._call.function}, the outcome is unknown"
                _refuse(one, MetaError(f"{words}: {cause_of(error)}"))
            else:
                one.is_sent = one.is_sent or connection.has_carried
                lasting.append(one)
        (self._alone if batch.is_alone else self._waiting).extendleft(reversed(lasting))
        if self._is_closed:
            self.close()
        else:
            self._batcher.is_away(cause_of(error))
        self._release(connection)

    def refuse_waiting(self, since_s: float, words: str) -> None:
        """Refuse who has waited since then or longer."""
        for queue in (self._alone, self._waiting):
            lasting = [one for one in queue if one.since_s > since_s]
            if len(lasting) < len(queue):
                for one in queue:
                    if one.since_s <= since_s:
                        known = "the outcome is unknown" if one.is_sent else "nothing was done"
                        _refuse(one, MetaError(f"the database does not answer, {known}: {words}"))
                queue.clear()
                queue.extend(lasting)

    def _refuse_all(self, batch: _Batch, error: Exception) -> None:
        for one in batch.asked:
            _refuse(one, error)


class Batcher:
    """The request batcher: all hot calls of one server, and the few connections that carry them; on one event loop."""

    def __init__(
        self, dsn: str, options: str, greeting: str, loop: asyncio.AbstractEventLoop, config: StoreConfig
    ) -> None:
        self._dsn, self._options, self._greeting, self._config = dsn, options, greeting, config
        self._away_since: float | None = None
        """When the database failed to answer for the first time since its last answer."""
        self._may_grow_at = 0.0
        self._pause_s = FIRST_PAUSE_S
        self.make_room: Callable[[], None] = lambda: None
        """Called when nobody is let in and no connection is left, to end a connection that is idle elsewhere."""
        self.loop = loop
        self._queues: dict[Hashable, _Queue] = {}
        self._idle: list[HotConnection] = []
        self._busy: dict[HotConnection, float] = {}
        """Connections by when their batch was begun."""
        self._pending: dict[_Queue, None] = {}
        """Queues in which somebody may wait."""
        self._is_woken = False
        self._is_late = False
        self._is_paused = False
        self._timer: asyncio.TimerHandle | None = None

    def ask(self, call: HotCall[Q, A], question: Q) -> asyncio.Future[A]:
        """The answer to come; on the event loop."""
        queue = self._queues.get(call.queue)
        if queue is None:
            queue = self._queues[call.queue] = _Queue(call, self, self._config)
        return queue.submit(question)

    @property
    def round_trips(self) -> int:
        """Round round_trips to the database so far."""
        return sum(queue.round_trips for queue in self._queues.values())

    def wake(self, queue: _Queue | None = None) -> None:
        """Send what waits, at the end of this turn of the loop: whatever else has arrived in it goes along.

        `queue` is the one to which something has been added, if any.
        """
        if queue is not None:
            self._pending[queue] = None
        if not self._is_woken:
            self._is_woken = True
            self.loop.call_soon(self._start)

    def has_answered(self) -> None:
        """The database is there."""
        self._away_since = None

    def is_away(self, words: str) -> None:
        """A connection was lost or did not come up. What there is goes on; another one is made after a pause.

        Who has waited for as long as the patience lasts, while the database was away, is refused.
        """
        now = self.loop.time()
        if self._away_since is None:
            self._away_since = now
        self._may_grow_at = now + self._pause_s
        self._pause_s = min(LONGEST_PAUSE_S, 2 * self._pause_s)
        if now - self._away_since > self._config.patience_s:
            for queue in self._queues.values():
                queue.refuse_waiting(now - self._config.patience_s, words)
        if not self._idle and len(self._busy) <= 1:
            self.make_room()

    def end_idle(self) -> None:
        """End a connection that carries nothing, so that a connection may be made elsewhere."""
        if self._idle:
            self._idle.pop(0).close()

    def release(self, connection: HotConnection, queue: _Queue) -> None:
        """Take a connection back that has nothing under way; in its queue somebody may wait again."""
        del self._busy[connection]
        if queue.waits:
            self._pending[queue] = None
        if not connection.is_broken:
            if not connection.is_proven:
                connection.is_proven = True
                self._pause_s = FIRST_PAUSE_S
            self._idle.append(connection)  # last in, first out: what is warm is used
        self._start()  # at once: Postgres works on the next batch while the answers of this one are made

    def close(self) -> None:
        """End all connections; who still waits is refused. On the event loop."""
        for queue in self._queues.values():
            queue.close()
        for connection in (*self._busy, *self._idle):
            connection.close()
        if self._timer is not None:
            self._timer.cancel()

    def _start(self) -> None:
        self._is_woken = False
        while True:
            ready = [queue for queue in self._pending if queue.ready]
            if not ready:
                return
            if self._busy and not self._may_pass(max(queue.ready for queue in ready)):
                return
            connection = self._connection()
            if connection is None:
                return
            self._busy[connection] = self.loop.time()
            queue = ready[0] if len(ready) == 1 else self._next(ready)
            queue.start(connection)
            if not queue.waits:
                self._pending.pop(queue, None)

    def _next(self, ready: list[_Queue]) -> _Queue:
        """The longest queue, since the others grow meanwhile and a long batch costs less for each call; but first, who
        has waited for too long.
        """
        first = min(ready, key=lambda queue: queue.waits_since_s)
        if self.loop.time() - first.waits_since_s > PATIENCE_S:
            return first
        return max(ready, key=lambda queue: queue.ready)

    def _may_pass(self, longest: int) -> bool:
        """Whether another batch may be begun beside those under way, of which slow ones do not count."""
        now = self.loop.time()
        quick = sum(now - since < SLOW_S for since in self._busy.values())
        if len(self._busy) < self._config.hot_connections and quick < (TOGETHER if longest >= WORTH_A_SECOND else 1):
            return True
        if not self._is_late:
            self._is_late = True
            self.loop.call_later(SLOW_S, self._look_again)
        return False

    def _look_again(self) -> None:
        self._is_late = False
        self.wake()

    def _look_at_all(self) -> None:
        for connection in list(self._busy):
            connection.look()
        self._timer = self.loop.call_later(LOOK_S, self._look_at_all)

    def _connection(self) -> HotConnection | None:
        """One that is idle, or a new one; None while it is too early to try again."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_broken:
                return connection
        pause_s = self._may_grow_at - self.loop.time()
        if pause_s > 0:
            if not self._is_paused:
                self._is_paused = True
                self.loop.call_later(pause_s, self._try_again)
            return None
        if self._timer is None:
            self._timer = self.loop.call_later(LOOK_S, self._look_at_all)
        dsn = self._dsn if self._away_since is None else in_any_order(self._dsn)
        return HotConnection(dsn, self._options, self.loop, self._greeting)

    def _try_again(self) -> None:
        self._is_paused = False
        self.wake()


def _refuse(asked: _Asked, error: Exception) -> None:
    if not asked.answer.done():
        asked.answer.set_exception(error)
