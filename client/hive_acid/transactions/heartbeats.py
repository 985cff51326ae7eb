"""Heartbeats: one thread per connection keeps its open transactions alive, until they end or their owner is gone.

A reader's lease on its snapshot is a read-only transaction kept alive here. Ending one must be possible from a
finaliser, which may run at any line of any thread: `end_later` only puts the transaction on a queue that is safe there,
and the heartbeat thread commits it.

What is open still when the program ends, or closes its connection, ends with it: snapshots that nobody reads any more
would hold back the Cleaner until their time-out.
"""

from __future__ import annotations

import atexit
import heapq
import itertools
import logging
import queue
import re
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol
from weakref import WeakSet

from hive_acid.errors import HiveAcidError, MetastoreUnreachableError, NoSuchTxnError, TxnAbortedError
from hive_acid.ids import TxnId, WriteId
from hive_acid.transport import Transport
from hive_acid.wire import ttypes

LOG = logging.getLogger(__name__)
FALLBACK_TIMEOUT_MS = 300_000
BEATS_PER_TIMEOUT = 3
ENDED_WITHIN_S = 3.0
"""How long the end of a program, or of a connection, waits for that of its transactions."""
_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d+)\s*(ms|s|m|h|d)?")


class Leased(Protocol):
    """A transaction that is kept alive, as `hive_acid.transactions.transaction` has it."""

    thread: int
    is_block: bool
    locked: set[str]

    @property
    def id(self) -> TxnId: ...

    @property
    def is_ending(self) -> bool: ...

    @property
    def is_held_for_reading(self) -> bool: ...

    @property
    def is_let_go(self) -> bool: ...

    def heartbeat(self) -> None: ...

    def given_up(self, reason: str) -> None: ...

    def commit(self) -> None: ...

    def end_unfinished(self) -> None: ...

    def written_as(self, database: str, table: str) -> WriteId | None: ...


class Heartbeats:
    """Sends a heartbeat for each registered transaction, three times per ``hive.txn.timeout`` of the metastore."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._interval_s: float | None = None
        self._stopped = False
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._transactions: dict[int, Leased] = {}
        self._guard = threading.Lock()
        self._errands: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._timed: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    def renew_in_child(self) -> None:
        """Forget the parent's transactions, which it keeps alive and ends itself."""
        _RUNNING.discard(self)
        self._begin_anew()

    def add(self, transaction: Leased) -> None:
        """Keep a transaction alive from now on."""
        if self._interval_s is None:
            self._interval_s = self._timeout_ms() / 1000 / BEATS_PER_TIMEOUT
        with self._guard:
            self._transactions[transaction.id] = transaction
            if self._thread is None and not self._stopped:
                self._thread = threading.Thread(target=self._run, name="hive-acid-heartbeats", daemon=True)
                self._thread.start()
                _end_at_exit(self)

    def remove(self, transaction: Leased) -> None:
        """The transaction has ended."""
        with self._guard:
            self._transactions.pop(transaction.id, None)

    def end_later(self, transaction: Leased) -> None:
        """Commit a read-only transaction soon, on the heartbeat thread; safe to call from a finaliser."""
        self.do_later(partial(self._end, transaction))

    def do_later(self, errand: Callable[[], None]) -> None:
        """Run something short soon, on the heartbeat thread; it must not raise. Safe to call from a finaliser."""
        self._errands.put(errand)

    def do_after(self, pause_s: float, errand: Callable[[], None]) -> None:
        """As `do_later`, in `pause_s` seconds from now."""
        timed = time.monotonic() + pause_s, next(self._numbers), errand
        self.do_later(lambda: heapq.heappush(self._timed, timed))

    def reading(self, tables: Collection[str]) -> list[Leased]:
        """The snapshots that have a lock on one of the tables (``db.table``) and that nobody has begun to end.

        Of all connections of this process to the metastore.
        """
        return [each for each in self._open() if each.is_held_for_reading and not each.locked.isdisjoint(tables)]

    def blocks(self) -> list[Leased]:
        """The transactions that cannot end before this thread leaves their block.

        Of all connections of this process to the metastore.
        """
        own = threading.get_ident()
        return [each for each in self._open() if each.is_block and each.thread == own and not each.is_ending]

    def settle(self) -> None:
        """Wait until the snapshots have ended that nobody reads any more, but not for long if nobody answers.

        Of all connections of this process to the metastore.
        """
        deadline = time.monotonic() + ENDED_WITHIN_S
        waiting = []
        for one in self._of_process():
            if any(each.is_let_go for each in one._listed()):
                waiting.append(threading.Event())
                one.do_later(waiting[-1].set)
        for done in waiting:
            done.wait(max(0.0, deadline - time.monotonic()))

    def _open(self) -> list[Leased]:
        return [each for one in self._of_process() for each in one._listed()]

    def _of_process(self) -> list[Heartbeats]:
        place = self._transport.host, self._transport.port
        return [one for one in list(_RUNNING) if (one._transport.host, one._transport.port) == place]

    def _listed(self) -> list[Leased]:
        with self._guard:
            return list(self._transactions.values())

    def stop(self) -> None:
        """End all transactions and the thread, after what it was already given to do."""
        self._stopped = True
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            self.end_all(time.monotonic() + ENDED_WITHIN_S)
            self._errands.put(None)
            thread.join(timeout=ENDED_WITHIN_S)

    def end_all(self, deadline: float) -> threading.Event:
        """End what is open, on the heartbeat thread and until `deadline`; the event is set when that is done.

        Snapshots commit, which leaves no trace, and writes are aborted, but for those that somebody is ending.
        """
        done = threading.Event()
        self.do_later(partial(self._end_open, deadline, done))
        return done

    def _timeout_ms(self) -> int:
        """The metastore's own time-out: the client must not go by another (transactions.md §1.9)."""
        try:
            answer = self._transport.call("get_config_value", "hive.txn.timeout", f"{FALLBACK_TIMEOUT_MS}ms")
        except HiveAcidError:
            return FALLBACK_TIMEOUT_MS
        match = _DURATION.fullmatch(str(answer))
        return int(match[1]) * _UNITS_MS[match[2] or "s"] if match else FALLBACK_TIMEOUT_MS

    def _run(self) -> None:
        assert self._interval_s is not None
        next_beat = time.monotonic() + self._interval_s
        while True:
            due = min(next_beat, self._timed[0][0]) if self._timed else next_beat
            try:
                errand = self._errands.get(timeout=max(0.0, due - time.monotonic()))
            except queue.Empty:
                if due < next_beat:
                    heapq.heappop(self._timed)[2]()
                    continue
                self._beat()
                next_beat = time.monotonic() + self._interval_s
                continue
            if errand is None:
                return
            errand()

    def _end(self, transaction: Leased) -> None:
        try:
            transaction.commit()
        except HiveAcidError as error:
            LOG.info("the lease of transaction %d ended without the metastore: %s", transaction.id, error)

    def _end_open(self, deadline: float, done: threading.Event) -> None:
        transactions = self._listed()
        try:
            for transaction in transactions:
                if time.monotonic() > deadline:
                    break
                try:
                    transaction.end_unfinished()
                except MetastoreUnreachableError as error:
                    LOG.info("transactions are left to the metastore's time-out: %s", error)
                    break
                except HiveAcidError as error:
                    LOG.info("transaction %d is left to the metastore: %s", transaction.id, error)
        finally:
            done.set()

    def _beat(self) -> None:
        with self._guard:
            transactions = dict(self._transactions)
        for txn_ids in _runs(transactions):
            try:
                if len(txn_ids) == 1:
                    transactions[txn_ids[0]].heartbeat()
                else:
                    self._beat_range(transactions, txn_ids)
            except (TxnAbortedError, NoSuchTxnError) as error:
                self._forget(transactions[txn_ids[0]], error)
            except HiveAcidError as error:
                LOG.warning("no heartbeat for transactions %d to %d: %s", txn_ids[0], txn_ids[-1], error)

    def _beat_range(self, transactions: Mapping[int, Leased], txn_ids: Sequence[int]) -> None:
        """One call for transactions with ids one after the other, as a stream opens them."""
        request = ttypes.HeartbeatTxnRangeRequest(min=txn_ids[0], max=txn_ids[-1])
        answer = self._transport.call("heartbeat_txn_range", request)
        for txn_id in sorted({*answer.aborted, *answer.nosuch}.intersection(txn_ids)):
            words = f"No transaction {txn_id} is open"
            transactions[txn_id].given_up(words)
            self._forget(transactions[txn_id], words)

    def _forget(self, transaction: Leased, reason: object) -> None:
        # One that its owner has ended meanwhile, or is ending, is no news: the metastore has answered to that, and the
        # answer is still on its way.
        with self._guard:
            is_known = self._transactions.pop(transaction.id, None) is not None
        if is_known and not transaction.is_ending:
            LOG.warning("transaction %d is gone: %s", transaction.id, reason)


_RUNNING: WeakSet[Heartbeats] = WeakSet()


def _end_at_exit(heartbeats: Heartbeats) -> None:
    """Have its transactions ended when the program ends, in whatever way but by a signal."""
    processes = sys.modules.get("multiprocessing.process")
    if not _RUNNING and processes is not None and processes.parent_process() is not None:
        # A child of multiprocessing ends without what is registered with atexit.
        sys.modules["multiprocessing.util"].Finalize(None, _end_all_now, exitpriority=0)
    _RUNNING.add(heartbeats)


def _end_all_now() -> None:
    deadline = time.monotonic() + ENDED_WITHIN_S
    waiting = [heartbeats.end_all(deadline) for heartbeats in list(_RUNNING)]
    for done in waiting:
        done.wait(max(0.0, deadline - time.monotonic()))


atexit.register(_end_all_now)


def _runs(txn_ids: Iterable[int]) -> list[list[int]]:
    """The ids in order, cut where one is missing."""
    runs: list[list[int]] = []
    for txn_id in sorted(txn_ids):
        if runs and txn_id == runs[-1][-1] + 1:
            runs[-1].append(txn_id)
        else:
            runs.append([txn_id])
    return runs
