"""Waiting inside the server: through the handlers, on an event loop."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hive_acid.ids import TxnId
from hive_acid.wire import ttypes
from metastore.lock.config import LockConfig
from metastore.lock.service import LockService
from metastore.lock.waiters import LockWaiters
from metastore.rpc.call import Call, Session
from metastore.rpc.handlers import locks as lock_handlers
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from metastore.txn.service import TxnService
from tests.lock.conftest import OWNER

ACQUIRED, WAITING = ttypes.LockState.ACQUIRED, ttypes.LockState.WAITING


class Server:
    """The lock handlers with everything they need, without the wire."""

    def __init__(self, db: Database, poll_wait_ms: int) -> None:
        self.waiters = LockWaiters()
        self.txns = TxnService(db, TxnConfig(), self.waiters.wake)
        locks = LockService(db, self.waiters.wake)
        self.handlers = lock_handlers.handlers(locks, self.waiters, LockConfig(poll_wait_ms))
        self.workers = ThreadPoolExecutor(4)

    def call(self, method: str, request: Any) -> Any:
        return self.handlers[method](Call(method, Session("test"), self.workers), request)

    def lock(self, letter: str, txn_id: TxnId) -> Any:
        kinds = {"r": ttypes.LockType.SHARED_READ, "e": ttypes.LockType.EXCLUSIVE}
        component = ttypes.LockComponent(
            type=kinds[letter],
            level=ttypes.LockLevel.TABLE,
            dbname="db",
            tablename="t",
            operationType=ttypes.DataOperationType.SELECT,
        )
        return self.call("lock", ttypes.LockRequest(component=[component], txnid=txn_id, user="u", hostname="h"))


@pytest.fixture
def serve(db: Database) -> Iterator[Callable[[int], Server]]:
    servers: list[Server] = []

    def start(poll_wait_ms: int) -> Server:
        servers.append(Server(db, poll_wait_ms))
        return servers[-1]

    yield start
    for server in servers:
        server.workers.shutdown()


def test_freed_lock_wakes_who_waits(serve: Callable[[int], Server]) -> None:
    server = serve(20_000)
    holder, waiter = server.txns.open_txns(2, OWNER)

    async def scenario() -> float:
        await server.lock("e", holder)
        waiting = asyncio.create_task(server.lock("r", waiter))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        released = time.monotonic()
        await asyncio.get_running_loop().run_in_executor(None, server.txns.commit_txn, holder)
        assert (await waiting).state == ACQUIRED
        return time.monotonic() - released

    assert asyncio.run(scenario()) < 0.5


def test_answers_waiting_after_the_poll_time(serve: Callable[[int], Server]) -> None:
    server = serve(300)
    holder, waiter = server.txns.open_txns(2, OWNER)

    async def scenario() -> tuple[Any, float]:
        await server.lock("e", holder)
        started = time.monotonic()
        answer = await server.lock("r", waiter)
        return answer, time.monotonic() - started

    answer, took_s = asyncio.run(scenario())
    assert answer.state == WAITING
    assert 0.3 <= took_s < 1


def test_lock_freed_elsewhere_is_noticed(serve: Callable[[int], Server]) -> None:
    """By another server on the same database: nobody wakes us, but we look again."""
    server, other = serve(20_000), serve(20_000)
    holder, waiter = server.txns.open_txns(2, OWNER)

    async def scenario() -> float:
        await server.lock("e", holder)
        waiting = asyncio.create_task(server.lock("r", waiter))
        await asyncio.sleep(0.2)
        released = time.monotonic()
        await asyncio.get_running_loop().run_in_executor(None, other.txns.commit_txn, holder)
        assert (await waiting).state == ACQUIRED
        return time.monotonic() - released

    assert asyncio.run(scenario()) < 2


def test_no_wake_up_is_missed(serve: Callable[[int], Server]) -> None:
    """Many requests for one lock against a thread that frees it as soon as it is taken."""
    server = serve(20_000)
    ids = server.txns.open_txns(30, OWNER)

    async def scenario() -> None:
        async def work(txn_id: TxnId) -> None:
            answer = await server.lock("e", txn_id)
            assert answer.state == ACQUIRED
            await asyncio.get_running_loop().run_in_executor(None, server.txns.commit_txn, txn_id)

        await asyncio.gather(*(work(txn_id) for txn_id in ids))

    started = time.monotonic()
    asyncio.run(scenario())
    assert time.monotonic() - started < 10


def test_closing_lets_everybody_answer(serve: Callable[[int], Server]) -> None:
    server = serve(20_000)
    holder, waiter, late = server.txns.open_txns(3, OWNER)

    async def scenario() -> None:
        await server.lock("e", holder)
        waiting = asyncio.create_task(server.lock("r", waiter))
        await asyncio.sleep(0.2)
        server.waiters.close()
        assert (await asyncio.wait_for(waiting, 0.5)).state == WAITING
        assert (await asyncio.wait_for(server.lock("r", late), 0.5)).state == WAITING

    asyncio.run(scenario())


def test_waking_after_the_loop_has_ended_is_harmless(serve: Callable[[int], Server]) -> None:
    server = serve(50)
    holder, waiter = server.txns.open_txns(2, OWNER)

    async def scenario() -> None:
        await server.lock("e", holder)
        await server.lock("r", waiter)

    asyncio.run(scenario())
    thread = threading.Thread(target=server.waiters.wake, args=(["db"],))
    thread.start()
    thread.join()


def test_check_lock_waits_too(serve: Callable[[int], Server]) -> None:
    server = serve(400)
    holder, waiter = server.txns.open_txns(2, OWNER)

    async def scenario() -> None:
        await server.lock("e", holder)
        answer = await server.lock("r", waiter)
        assert answer.state == WAITING
        checking = asyncio.create_task(server.call("check_lock", ttypes.CheckLockRequest(lockid=answer.lockid)))
        await asyncio.sleep(0.1)
        await asyncio.get_running_loop().run_in_executor(None, server.txns.abort_txn, holder)
        assert (await checking).state == ACQUIRED

    asyncio.run(scenario())
