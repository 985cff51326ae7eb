"""The server over real sockets, with handlers made for the test."""

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from hive_acid import connect
from hive_acid.errors import (
    MetaError,
    MetastoreInternalError,
    MetastoreUnreachableError,
    NoSuchObjectError,
    NoSuchTxnError,
    TxnAbortedError,
    UnknownMethodError,
)
from hive_acid.wire import ttypes
from metastore.observe.calls import CallCounts, Outcome
from metastore.rpc.config import ServerConfig
from metastore.rpc.dispatch import Dispatcher
from metastore.rpc.doors.doors import Doors
from metastore.rpc.limits.workers import Workers
from metastore.rpc.server import ThriftServer, new_event_loop
from tests.waiting import until


class Running:
    """A server on a thread of its own."""

    def __init__(self, handlers: Any, doors: Doors | None = None, **limits: Any) -> None:
        self.counts = CallCounts()
        self.workers = Workers(4)
        config = ServerConfig(stay_awake_ms=0, **limits)
        self.server = ThriftServer(Dispatcher(handlers, self.workers, self.counts, limits=config), config, doors)
        self.loop = new_event_loop()
        address = self.loop.run_until_complete(self.server.listen(socket.create_server(("127.0.0.1", 0))))
        self.port = int(address.rpartition(":")[2])
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self.server.stop(), self.loop).result(15)

    def close(self) -> None:
        self.stop()
        self.server.dispatcher.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
        self.workers.shutdown()


def base_handlers() -> Any:
    return {"set_ugi": lambda call, user, groups: [user], "getStatus": lambda call: 2, "shutdown": lambda call: None}


def client(server: Any) -> Any:
    return connect(f"thrift://127.0.0.1:{server.port}")


def refuse(error: Any) -> Any:
    def handler(call: Any, *arguments: Any) -> None:
        raise error

    return handler


def test_each_error_travels_in_its_own_form(running: Callable[..., Running]) -> None:
    server = running(
        get_table=refuse(NoSuchObjectError("hive.a.b table not found")),
        commit_txn=refuse(TxnAbortedError("Transaction txnid:4 already aborted")),
        get_open_txns=refuse(NoSuchTxnError("not declared here")),
        get_database=refuse(TxnAbortedError("only MetaException is declared")),
        get_all_tables=refuse(ZeroDivisionError("a bug")),
    )
    with client(server) as connection:
        with pytest.raises(NoSuchObjectError, match=r"hive\.a\.b table not found"):
            connection.call("get_table", "a", "b")
        with pytest.raises(TxnAbortedError, match="already aborted"):
            connection.call("commit_txn", ttypes.CommitTxnRequest(txnid=4))
        with pytest.raises(MetastoreInternalError, match="Internal error processing get_open_txns: not declared"):
            connection.call("get_open_txns")
        with pytest.raises(Exception, match="only MetaException"):
            connection.call("get_database", "d")
        with pytest.raises(MetaError, match="get_all_tables has failed in the metastore"):
            connection.call("get_all_tables", "d")
        with pytest.raises(UnknownMethodError):
            connection.call("get_catalogs")
        with pytest.raises(Exception, match=r"CommitTxnRequest\.txnid is required"):
            connection.call("commit_txn", ttypes.CommitTxnRequest())
        assert connection.call("getStatus") == 2
    assert server.counts.total(Outcome.REFUSED) == 5
    assert server.counts.total(Outcome.CRASHED) == 1


def test_unknown_method_has_the_exact_text(running: Callable[..., Running]) -> None:
    server = running()
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        sock.sendall(b"\x80\x01\x00\x01\x00\x00\x00\x05nope!\x00\x00\x00\x2a\x00")
        reply = sock.recv(4096)
    assert reply[:4] == b"\x80\x01\x00\x03"
    assert b"Invalid method name: 'nope!'" in reply
    assert b"\x00\x00\x00\x2a" in reply  # the sequence number is echoed


def test_a_coroutine_handler_waits_without_a_thread(running: Callable[..., Running]) -> None:
    async def lock(call: Any, request: pytest.FixtureRequest) -> Any:
        await asyncio.sleep(0.3)
        return ttypes.LockResponse(lockid=1, state=1)

    server = running(lock=lock)
    request = ttypes.LockRequest(component=[], user="u", hostname="h")
    with client(server) as connection:
        started = time.monotonic()
        threads = [threading.Thread(target=connection.call, args=("lock", request)) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert time.monotonic() - started < 2.0  # twenty waits of 0.3 s on four threads would take 1.5 s and more


def test_thousands_of_idle_connections_do_no_harm(running: Callable[..., Running]) -> None:
    server = running()
    sockets = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2000)]
    try:
        with client(server) as connection:
            assert connection.call("getStatus") == 2
    finally:
        for sock in sockets:
            sock.close()


def test_pipelined_and_split_messages_are_answered_in_order(running: Callable[..., Running]) -> None:
    server = running()
    message = b"\x80\x01\x00\x01\x00\x00\x00\x09getStatus\x00\x00\x00%c\x00"
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        stream = b"".join(message % n for n in range(3))
        for at in range(0, len(stream), 5):
            sock.sendall(stream[at : at + 5])
            time.sleep(0.002)
        sock.settimeout(5)
        replies = b""
        while replies.count(b"getStatus") < 3 or len(replies) % 3:
            replies += sock.recv(4096)
    third = len(replies) // 3
    assert [replies[i * third + 20] for i in range(3)] == [0, 1, 2]


def test_a_large_message_is_served_and_one_beyond_the_limit_is_not(running: Callable[..., Running]) -> None:
    got = []
    server = running(
        limits={"max_message_bytes": 8_000_000}, abort_txns=lambda call, request: got.append(request.txn_ids)
    )
    with client(server) as connection:
        connection.call("abort_txns", ttypes.AbortTxnsRequest(txn_ids=list(range(500_000))))
        assert got[0][-1] == 499_999
        with pytest.raises(MetastoreInternalError, match="1100000 items, beyond the message limit"):
            connection.call("abort_txns", ttypes.AbortTxnsRequest(txn_ids=list(range(1_100_000))))
        assert connection.call("getStatus") == 2


def test_stop_finishes_the_call_in_progress_and_refuses_new_ones(running: Callable[..., Running]) -> None:
    entered = threading.Event()

    def get_all_databases(call: Any) -> Any:
        entered.set()
        until(lambda: server.server.stopping)
        return ["default"]

    server = running(get_all_databases=get_all_databases)
    answers = []
    with client(server) as connection:
        thread = threading.Thread(target=lambda: answers.append(connection.call("get_all_databases")))
        thread.start()
        entered.wait(5)
        server.stop()
        thread.join()
        assert answers == [["default"]]
        with pytest.raises(MetastoreUnreachableError):
            connection.call("getStatus")


def test_shutdown_ends_only_its_own_connection(running: Callable[..., Running]) -> None:
    server = running()
    with client(server) as one, client(server) as other:
        one.call("shutdown")
        assert other.call("getStatus") == 2
        assert one.call("getStatus") == 2  # on a fresh socket


def test_open_txns_is_written_as_set_and_as_list(running: Callable[..., Running]) -> None:
    reply = ttypes.GetOpenTxnsResponse(txn_high_water_mark=3, open_txns=[2, 3], abortedBits=b"")
    server = running(get_open_txns=lambda call: reply)
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        sock.sendall(b"\x80\x01\x00\x01\x00\x00\x00\x0dget_open_txns\x00\x00\x00\x01\x00")
        raw = sock.recv(4096)
    assert b"\x0f\x00\x02\x0a\x00\x00\x00\x02" in raw
    assert b"\x0e\x00\x02\x0a\x00\x00\x00\x02" in raw
    with client(server) as connection:
        assert connection.call("get_open_txns").open_txns == [2, 3]
