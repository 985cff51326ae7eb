"""Waiting inside the server: through the handlers, on an event loop."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from statistics import median
from typing import Any, TypeVar

import pytest

from hive_acid.errors import NoSuchLockError, TxnAbortedError
from hive_acid.ids import LockId, TxnId
from hive_acid.wire import ttypes
from metastore.lock.config import LockConfig
from metastore.lock.listener import lock_listener
from metastore.lock.polling import DEADLOCK_AFTER_S, LockPolling
from metastore.lock.service import LockService
from metastore.lock.waiters import MAX_REMEMBERED, LockWaiters
from metastore.rpc.call import Call, Session
from metastore.rpc.handlers import locks as lock_handlers
from metastore.rpc.limits.workers import Workers
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from metastore.txn.service import TxnService
from tests.lock.conftest import OWNER

T = TypeVar("T")
PROMPT_S = 10.0
"""Far less than anybody would wait who is not woken, even on a machine that is busy with other things."""
ACQUIRED, WAITING = ttypes.LockState.ACQUIRED, ttypes.LockState.WAITING


class Server:
    """The lock handlers with everything they need, without the wire, on the event loop of a database of its own."""

    def __init__(self, db_url: str, poll_wait_ms: int) -> None:
        self.db = Database(db_url)
        self.waiters = LockWaiters()
        self.txns = TxnService(self.db, TxnConfig(), self.waiters.wake)
        self.locks = LockService(self.db, self.waiters.wake)
        listener = lock_listener(self.db, self.waiters)
        self.polling = LockPolling(self.locks, self.waiters, listener, LockConfig(poll_wait_ms))
        self.handlers = lock_handlers.handlers(self.locks, self.polling, None, self.txns.abort_txn)
        self.workers = Workers(4)

    def run(self, scenario: Coroutine[Any, Any, T]) -> T:
        return self.db.wait(asyncio.wait_for(scenario, 30))

    def close(self) -> None:
        async def stop() -> None:
            self.polling.close()

        self.db.wait(stop())
        self.workers.shutdown()
        self.db.close()

    def call(self, method: str, request: Any) -> Any:
        return self.handlers[method](Call(method, Session("test"), self.workers), request)

    def lock(self, letter: str, txn_id: TxnId, table: str = "t") -> Any:
        kinds = {"r": ttypes.LockType.SHARED_READ, "e": ttypes.LockType.EXCLUSIVE}
        component = ttypes.LockComponent(
            type=kinds[letter],
            level=ttypes.LockLevel.TABLE,
            dbname="db",
            tablename=table,
            operationType=ttypes.DataOperationType.SELECT,
        )
        return self.call("lock", ttypes.LockRequest(component=[component], txnid=txn_id, user="u", hostname="h"))


@pytest.fixture
def serve(db_url: str) -> Iterator[Callable[[int], Server]]:
    servers: list[Server] = []

    def start(poll_wait_ms: int) -> Server:
        servers.append(Server(db_url, poll_wait_ms))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def only_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks again by himself, but for the one look after a short while."""
    monkeypatch.setattr("metastore.lock.polling.RECHECK_S", 60.0)


@pytest.mark.usefixtures("only_woken")
def test_freed_lock_wakes_who_waits(serve: Callable[[int], Server]) -> None:
    server = serve(20_000)
    holder, waiter = server.txns.open_txns(2, OWNER)

    async def scenario() -> float:
        await server.lock("e", holder)
        waiting = asyncio.create_task(server.lock("r", waiter))
        await asyncio.sleep(0.15)
        assert not waiting.done()
        released = time.monotonic()
        await server.txns.commit_soon(holder)
        assert (await waiting).state == ACQUIRED
        return time.monotonic() - released

    assert server.run(scenario()) < PROMPT_S


def test_who_waits_asks_nothing_meanwhile(serve: Callable[[int], Server], monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks that are freed elsewhere, in the same database too, wake nobody."""
    monkeypatch.setattr("metastore.lock.polling.DEADLOCK_AFTER_S", 60.0)
    server = serve(60_000)
    holder, waiter, *others = server.txns.open_txns(20, OWNER)

    async def scenario() -> int:
        await server.lock("e", holder)
        for txn_id in others:
            await server.lock("r", txn_id, "u")
        waiting = asyncio.create_task(server.lock("r", waiter))
        await asyncio.sleep(0.2)  # until it waits, and the listener has connected
        before = server.db.calls
        for txn_id in others:
            await server.txns.commit_soon(txn_id)
        asked = server.db.calls - before - len(others)
        await server.txns.commit_soon(holder)
        assert (await waiting).state == ACQUIRED
        return asked

    assert server.run(scenario()) == 0


def test_answers_waiting_after_the_poll_time(serve: Callable[[int], Server]) -> None:
    server = serve(300)
    holder, waiter = server.txns.open_txns(2, OWNER)

    async def scenario() -> tuple[Any, float]:
        await server.lock("e", holder)
        started = time.monotonic()
        answer = await server.lock("r", waiter)
        return answer, time.monotonic() - started

    answer, took_s = server.run(scenario())
    assert answer.state == WAITING
    assert 0.3 <= took_s < 1


@pytest.mark.usefixtures("only_woken")
def test_lock_freed_by_another_server_wakes(serve: Callable[[int], Server]) -> None:
    server, other = serve(20_000), serve(20_000)
    holder, waiter = server.txns.open_txns(2, OWNER)

    async def scenario() -> float:
        await server.lock("e", holder)
        waiting = asyncio.create_task(server.lock("r", waiter))
        await asyncio.sleep(DEADLOCK_AFTER_S * 2)
        released = time.monotonic()
        await asyncio.to_thread(other.txns.commit_txn, holder)
        assert (await waiting).state == ACQUIRED
        return time.monotonic() - released

    assert server.run(scenario()) < PROMPT_S


@pytest.mark.usefixtures("only_woken")
def test_listener_connects_again(serve: Callable[[int], Server], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("metastore.store.listener.RECONNECT_S", 0.05)
    server, other = serve(20_000), serve(20_000)
    holder, waiter = server.txns.open_txns(2, OWNER)

    def kill_listeners() -> None:
        with other.db.engine.begin() as connection:
            connection.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND query LIKE 'LISTEN %%'"
            )

    async def scenario() -> None:
        await server.lock("e", holder)
        waiting = asyncio.create_task(server.lock("r", waiter))
        await asyncio.sleep(DEADLOCK_AFTER_S * 2)
        await asyncio.to_thread(kill_listeners)
        await asyncio.sleep(0.3)
        await asyncio.to_thread(other.txns.commit_txn, holder)
        assert (await waiting).state == ACQUIRED

    server.run(scenario())


def test_no_wake_up_is_missed(serve: Callable[[int], Server], monkeypatch: pytest.MonkeyPatch) -> None:
    """Many requests for one lock, each freed as soon as it is taken, with nobody looking again by himself."""
    monkeypatch.setattr("metastore.lock.polling.DEADLOCK_AFTER_S", 60.0)
    server = serve(20_000)
    ids = server.txns.open_txns(60, OWNER)

    async def scenario() -> None:
        async def work(txn_id: TxnId) -> None:
            answer = await server.lock("e", txn_id)
            assert answer.state == ACQUIRED
            await server.txns.commit_soon(txn_id)

        await asyncio.gather(*(work(txn_id) for txn_id in ids))

    started = time.monotonic()
    server.run(scenario())
    assert time.monotonic() - started < 10


def test_closing_lets_everybody_answer(serve: Callable[[int], Server]) -> None:
    server = serve(20_000)
    holder, waiter, late = server.txns.open_txns(3, OWNER)

    async def scenario() -> None:
        await server.lock("e", holder)
        waiting = asyncio.create_task(server.lock("r", waiter))
        await asyncio.sleep(0.1)
        server.waiters.close()
        assert (await asyncio.wait_for(waiting, 0.5)).state == WAITING
        assert (await asyncio.wait_for(server.lock("r", late), 0.5)).state == WAITING

    server.run(scenario())


def test_waking_after_the_loop_has_ended_is_harmless() -> None:
    waiters = LockWaiters()

    async def wait_a_little() -> bool:
        with waiters.register(LockId(2)) as waiter:
            return await waiter.sleep(LockId(1), 0.01)

    assert asyncio.run(wait_a_little()) is False
    thread = threading.Thread(target=waiters.wake, args=([LockId(1)],))
    thread.start()
    thread.join()
    waiters.wake_all()


def test_blocker_that_went_before_the_wait_wakes_at_once() -> None:
    waiters = LockWaiters()

    async def wait_for_what_is_gone() -> tuple[bool, bool]:
        waiters.wake([LockId(1)])
        with waiters.register(LockId(2)) as waiter:
            return await waiter.sleep(LockId(1), 5), await waiter.sleep(LockId(3), 0.01)

    assert asyncio.run(wait_for_what_is_gone()) == (True, False)


def test_memory_of_freed_locks_is_bounded() -> None:
    waiters = LockWaiters()

    async def forgotten() -> bool:
        waiters.wake([LockId(1)])
        waiters.wake([LockId(number) for number in range(10, 10 + MAX_REMEMBERED)])
        with waiters.register(LockId(2)) as waiter:
            return await waiter.sleep(LockId(1), 0.01)

    assert asyncio.run(forgotten()) is False


def test_check_lock_waits_too(serve: Callable[[int], Server]) -> None:
    server = serve(400)
    holder, waiter = server.txns.open_txns(2, OWNER)

    async def scenario() -> None:
        await server.lock("e", holder)
        answer = await server.lock("r", waiter)
        assert answer.state == WAITING
        checking = asyncio.create_task(server.call("check_lock", ttypes.CheckLockRequest(lockid=answer.lockid)))
        await asyncio.sleep(0.1)
        await asyncio.to_thread(server.txns.abort_txn, holder)
        assert (await checking).state == ACQUIRED

    server.run(scenario())


@pytest.mark.usefixtures("only_woken")
def test_who_is_aborted_or_gives_up_meanwhile_is_told_at_once(serve: Callable[[int], Server]) -> None:
    server = serve(20_000)
    holder, aborted, given_up = server.txns.open_txns(3, OWNER)

    async def scenario() -> float:
        await server.lock("e", holder)
        first = asyncio.create_task(server.lock("e", aborted))
        await asyncio.sleep(0.05)
        second = asyncio.create_task(server.lock("e", given_up))
        await asyncio.sleep(0.05)
        waiting = [info.lock_id for info in await asyncio.to_thread(server.locks.show_locks) if info.blocker_lock]
        started = time.monotonic()
        await asyncio.to_thread(server.txns.abort_txn, aborted)
        with pytest.raises(TxnAbortedError):
            await first
        await server.call("unlock", ttypes.UnlockRequest(lockid=waiting[1]))
        with pytest.raises(NoSuchLockError):
            await second
        return time.monotonic() - started

    assert server.run(scenario()) < PROMPT_S


def test_what_is_remembered_of_the_freed_ones_does_not_slow_later_ones_down() -> None:
    waiters = LockWaiters()

    def seconds_of(first: int, last: int) -> float:
        begun = time.thread_time()
        for lock_id in range(first, last):
            waiters.wake([LockId(lock_id)])
        return time.thread_time() - begun

    step = MAX_REMEMBERED // 5
    times_s = [seconds_of(start, start + step) for start in range(0, 4 * MAX_REMEMBERED, step)]
    assert median(times_s[10:]) < 5 * median(times_s[:4])
