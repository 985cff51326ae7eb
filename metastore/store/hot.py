"""Hot calls: what is asked at the same time goes to the database together.

A hot RPC is one set-based PL/pgSQL function: it takes arrays, answers many calls in one database transaction and
shares their flush of the log. Calls of one kind wait in a lane; while a batch of the lane is under way the next one
gathers. Alone, a call goes at once; under load batches grow by themselves. Everything here runs on the event loop, so
there is no thread to hand over to and no lock.
"""

from __future__ import annotations

import asyncio
import random
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, TypeVar, cast

import psycopg

from hive_acid.errors import MetaError, MetastoreError
from metastore.store.arrays import texts_of
from metastore.store.config import StoreConfig
from metastore.store.link import Link, Rows

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
MAX_LINKS = 8
"""A batch that takes longer than `SLOW_S`, as a commit of many partitions, does not hold the others up: up to so many
connections it is passed by."""

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
    def lane(self) -> Hashable:
        """What goes together; calls that differ in more than their questions have lanes of their own."""
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


@dataclass(slots=True)
class _Batch:
    asked: list[_Asked]
    conflicts: int = 0
    away_since: float | None = None


class _Lane:
    """The calls of one kind that wait, and how to ask for them."""

    def __init__(self, call: HotCall[Any, Any], lanes: Lanes, config: StoreConfig) -> None:
        self._call, self._lanes, self._config = call, lanes, config
        self._loop = lanes.loop
        self._max_batch = call.max_batch or config.batch_size
        self._waiting: deque[_Asked] = deque()
        self._alone: deque[_Asked] = deque()
        self._under_way = 0
        self._is_closed = False
        self.trips = 0

    def submit(self, question: Any) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = self._loop.create_future()
        if self._is_closed:
            answer.set_exception(MetaError("the metastore is shutting down"))
        elif len(self._waiting) >= MAX_WAITING:
            answer.set_exception(MetaError(f"{MAX_WAITING} calls of this kind wait already: try again later"))
        else:
            self._waiting.append(_Asked(question, answer, self._loop.time()))
            self._lanes.wake()
        return answer

    def close(self) -> None:
        self._is_closed = True
        for asked in (*self._alone, *self._waiting):
            _refuse(asked, MetaError("the metastore is shutting down"))
        self._alone.clear()
        self._waiting.clear()

    @property
    def ready(self) -> int:
        """How many could go now."""
        return (len(self._alone) or len(self._waiting)) if self._under_way < self._call.connections else 0

    @property
    def waits_since_s(self) -> float:
        """When the first of those who could go now has come."""
        return (self._alone or self._waiting)[0].since_s

    def start(self, link: Link) -> None:
        """Send the next batch."""
        if self._alone:
            asked = [self._alone.popleft()]
        else:
            asked = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._max_batch))]
        self._under_way += 1
        self._send(_Batch(asked), link)

    def _send(self, batch: _Batch, link: Link) -> None:
        if self._is_closed:
            self._refuse_all(batch, MetaError("the metastore is shutting down"))
            return
        link = self._lanes.usable(link)
        self.trips += 1
        try:
            parameters = texts_of(self._call.arguments([one.question for one in batch.asked]))
        except Exception as error:
            self._failed(batch, link, error)
            return
        link.send(self._call.function, parameters, lambda rows, error: self._done(batch, link, rows, error))

    def _done(self, batch: _Batch, link: Link, rows: Rows | None, error: Exception | None) -> None:
        if error is not None:
            self._failed(batch, link, error)
            return
        try:
            self._settle(batch, self._call.answers([one.question for one in batch.asked], cast("Rows", rows)))
        except Exception as problem:  # not to be asked again: it has taken effect
            self._refuse_all(batch, problem)
        self._release(link)

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

    def _release(self, link: Link) -> None:
        self._under_way -= 1
        self._lanes.release(link)

    def _failed(self, batch: _Batch, link: Link, error: Exception) -> None:
        code = error.sqlstate if isinstance(error, psycopg.Error) else None
        if link.is_broken:
            self._lost(batch, link, error)
        elif code in _CONFLICT_CODES:
            batch.conflicts += 1
            if batch.conflicts <= self._config.retry_attempts:
                pause_s = random.uniform(0, 0.002 * 2**batch.conflicts)
                self._loop.call_later(pause_s, self._send, batch, link)
            else:
                words = f"{self._call.function} met {batch.conflicts} conflicts in the database: try again"
                self._refuse_all(batch, MetaError(words))
                self._release(link)
        elif len(batch.asked) > 1:
            self._alone.extend(batch.asked)  # only the one that is to blame shall fail
            self._release(link)
        else:
            self._refuse_all(batch, error)
            self._release(link)

    def _lost(self, batch: _Batch, link: Link, error: Exception) -> None:
        """The connection broke: what may be repeated is, until the database has been away for too long."""
        lasting = []
        for one in batch.asked:
            # A link that never connected has carried nothing.
            if link.has_carried and not self._call.is_repeatable(one.question):
                words = f"the database connection was lost during {self._call.function}: outcome unknown"
                _refuse(one, MetaError(words))
            else:
                lasting.append(one)
        batch.asked = lasting
        now = time.monotonic()
        if batch.away_since is None:
            batch.away_since = now
        waited_s = now - batch.away_since
        if waited_s > self._config.patience_s or self._is_closed:
            self._refuse_all(batch, MetaError(f"the database does not answer: {str(error).strip()}"))
            batch.asked = []
        if batch.asked:
            self._loop.call_later(min(0.25, 0.005 + waited_s / 4), self._send, batch, link)
        else:
            self._release(link)

    def _refuse_all(self, batch: _Batch, error: Exception) -> None:
        for one in batch.asked:
            _refuse(one, error)


class Lanes:
    """All hot calls of one server, and the few links that carry them; on one event loop."""

    def __init__(
        self, dsn: str, options: str, greeting: str, loop: asyncio.AbstractEventLoop, config: StoreConfig
    ) -> None:
        self._dsn, self._options, self._greeting, self._config = dsn, options, greeting, config
        self.loop = loop
        self._lanes: dict[Hashable, _Lane] = {}
        self._idle: list[Link] = []
        self._busy: dict[Link, float] = {}
        """Links by when their batch was begun."""
        self._is_woken = False
        self._is_late = False
        self._timer: asyncio.TimerHandle | None = None

    def ask(self, call: HotCall[Q, A], question: Q) -> asyncio.Future[A]:
        """The answer to come; on the event loop."""
        lane = self._lanes.get(call.lane)
        if lane is None:
            lane = self._lanes[call.lane] = _Lane(call, self, self._config)
        return lane.submit(question)

    @property
    def trips(self) -> int:
        """Round trips to the database so far."""
        return sum(lane.trips for lane in self._lanes.values())

    def wake(self) -> None:
        """Send what waits, at the end of this turn of the loop: whatever else has arrived in it goes along."""
        if not self._is_woken:
            self._is_woken = True
            self.loop.call_soon(self._start)

    def usable(self, link: Link) -> Link:
        """The link itself, or a new one in its place if it is broken."""
        if not link.is_broken:
            return link
        fresh = self._new_link()
        self._busy[fresh] = self._busy.pop(link)
        return fresh

    def release(self, link: Link) -> None:
        """Take a link back that has nothing under way."""
        del self._busy[link]
        if not link.is_broken:
            self._idle.append(link)  # last in, first out: what is warm is used
        self._start()  # at once: Postgres works on the next batch while the answers of this one are made

    def close(self) -> None:
        """End all connections; who still waits is refused. On the event loop."""
        for lane in self._lanes.values():
            lane.close()
        for link in (*self._busy, *self._idle):
            link.close()
        if self._timer is not None:
            self._timer.cancel()

    def _start(self) -> None:
        self._is_woken = False
        while True:
            ready = [lane for lane in self._lanes.values() if lane.ready]
            if not ready:
                return
            if self._busy and not self._may_pass(max(lane.ready for lane in ready)):
                return
            link = self._idle.pop() if self._idle else self._new_link()
            self._busy[link] = self.loop.time()
            self._next(ready).start(link)

    def _next(self, ready: list[_Lane]) -> _Lane:
        """The longest queue, since the others grow meanwhile and a long batch costs less for each call; but first, who
        has waited for too long.
        """
        first = min(ready, key=lambda lane: lane.waits_since_s)
        if self.loop.time() - first.waits_since_s > PATIENCE_S:
            return first
        return max(ready, key=lambda lane: lane.ready)

    def _may_pass(self, longest: int) -> bool:
        """Whether another batch may be begun beside those under way, of which slow ones do not count."""
        now = self.loop.time()
        quick = sum(now - since < SLOW_S for since in self._busy.values())
        if len(self._busy) < MAX_LINKS and quick < (TOGETHER if longest >= WORTH_A_SECOND else 1):
            return True
        if not self._is_late:
            self._is_late = True
            self.loop.call_later(SLOW_S, self._look_again)
        return False

    def _look_again(self) -> None:
        self._is_late = False
        self.wake()

    def _look_at_all(self) -> None:
        for link in list(self._busy):
            link.look()
        self._timer = self.loop.call_later(LOOK_S, self._look_at_all)

    def _new_link(self) -> Link:
        if self._timer is None:
            self._timer = self.loop.call_later(LOOK_S, self._look_at_all)
        return Link(self._dsn, self._options, self.loop, self._greeting)


def _refuse(asked: _Asked, error: Exception) -> None:
    if not asked.answer.done():
        asked.answer.set_exception(error)
