"""The fault proxy does to a message what it says."""

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from thriftpy2.transport import TTransportException

from hive_acid.wire import ttypes
from metastore.rpc.encoding import codec
from metastore.rpc.encoding.framing import MessageScanner
from tests.isolation.clients.caller import Caller
from tests.isolation.world.proxy import FaultProxy


class Metastore:
    """Answers what is needed and counts it; the proxy before it runs on the same loop."""

    def __init__(self) -> None:
        self.served: Counter[str] = Counter()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        target = self._run(self._listen(self._serve))
        self.proxy = FaultProxy(target, "seed", 0.0)
        self.address = self._run(self._listen(self.proxy.serve))

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self, serve: Any) -> Any:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        return server.sockets[0].getsockname()

    async def _serve(self, reader: Any, writer: Any) -> None:
        buffer = b""
        while received := await reader.read(65536):
            buffer += received
            while (length := (scanner := MessageScanner(1 << 20)).scan(buffer)) is not None:
                buffer = buffer[length:]
                self.served[scanner.name] += 1
                answer: Any = [] if scanner.name == "set_ugi" else None
                if scanner.name == "get_latest_txnid_in_conflict":
                    answer = self.served[scanner.name]
                writer.write(codec.encode_result(scanner.name, scanner.sequence, answer))
        writer.close()

    def settle(self, method: Any, count: Any) -> Any:
        """Wait until a method has been served so often, and a little longer."""

        async def wait() -> None:
            for _ in range(200):
                if self.served[method] >= count:
                    break
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)

        self._run(wait())
        return self.served[method]

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._finish())
        self._loop.close()

    async def _finish(self) -> None:
        """Connections end by themselves now that the client has closed its own."""
        for _ in range(100):
            if len(asyncio.all_tasks()) == 1:
                return
            await asyncio.sleep(0.01)


@pytest.fixture
def metastore() -> Iterator[Metastore]:
    made = Metastore()
    yield made
    made.close()


@pytest.fixture
def caller(metastore: Metastore) -> Iterator[Caller]:
    made = Caller([metastore.address], random.Random(1), patience_s=5)
    yield made
    made.close()


def ask(caller: Caller) -> Any:
    return caller.attempt("get_latest_txnid_in_conflict", 7)


def test_without_faults_everything_passes(metastore: Metastore, caller: Caller) -> None:
    assert [ask(caller) for _ in range(3)] == [1, 2, 3]
    assert not metastore.proxy.faults


def test_a_dropped_request_is_never_served(metastore: Metastore, caller: Caller) -> None:
    metastore.proxy.chosen = ["drop"]
    with pytest.raises((TTransportException, OSError)):
        ask(caller)
    assert ask(caller) == 1


def test_a_lost_answer_leaves_a_served_request(metastore: Metastore, caller: Caller) -> None:
    metastore.proxy.chosen = ["deaf"]
    with pytest.raises((TTransportException, OSError)):
        ask(caller)
    assert ask(caller) == 2


def test_a_late_request_comes_behind_its_repetition_or_before_it(metastore: Metastore, caller: Caller) -> None:
    metastore.proxy.chosen = ["late"]
    assert caller.call("get_latest_txnid_in_conflict", 7) in (1, 2)
    assert caller.lost == 1
    assert metastore.settle("get_latest_txnid_in_conflict", 2) == 2


@pytest.mark.parametrize("fault", ["twice", "again"])
def test_a_doubled_request_is_served_twice_and_answered_once(metastore: Metastore, caller: Caller, fault: str) -> None:
    metastore.proxy.chosen = [fault]
    assert ask(caller) in (1, 2)
    assert metastore.settle("get_latest_txnid_in_conflict", 2) == 2
    assert ask(caller) == 3


def test_a_slow_request_is_served_once(metastore: Metastore, caller: Caller) -> None:
    metastore.proxy.chosen = ["slow"]
    assert [ask(caller), ask(caller)] == [1, 2]


def test_a_reallocation_is_never_doubled(metastore: Metastore, caller: Caller) -> None:
    metastore.proxy.chosen = ["twice"]
    request = ttypes.AllocateTableWriteIdsRequest(dbName="d", tableName="t", txnIds=[1], reallocate=True)
    with pytest.raises(Exception, match="Missing result"):
        caller.attempt("allocate_table_write_ids", request)
    assert metastore.settle("allocate_table_write_ids", 1) == 1
    assert metastore.proxy.faults == {"slow": 1}


def test_a_seed_repeats_its_faults() -> None:
    def faults(seed: Any) -> Any:
        proxy = FaultProxy(("127.0.0.1", 1), seed, 0.2)
        chance = random.Random(f"{seed}/1")
        return [proxy._fault("lock", b"", chance) for _ in range(200)]

    assert faults("a") == faults("a")
    assert faults("a") != faults("b")
    assert set(faults("a")) == {"", "drop", "deaf", "late", "twice", "again", "slow"}
