"""The fault proxy: a TCP proxy that knows where a Thrift message ends, and loses, repeats or delays some of them.

What it does to a request, chosen by a seeded chance:

- drop      it is never sent; the client's connection is closed
- deaf      it is served, its answer is lost; the client's connection is closed
- late      the connection is closed at once, the request is sent a while later, when the client has repeated it
- twice     it is sent a second time on a connection of its own, whose answer nobody reads
- again     the same, a while after the answer has come
- slow      it is held back for a while

So a repetition may come before, beside and behind the first copy. A copy of ``allocate_table_write_ids`` with
``reallocate`` is never sent behind the client's back: it burns the id that the client has been given by design
(transactions.md §2.1), and who loses that answer has to begin another transaction.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import signal
from collections import Counter

import uvloop

from metastore.rpc.encoding.codec import decode_arguments
from metastore.rpc.encoding.framing import MessageScanner

CHUNK_BYTES = 64 * 1024
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
LONGEST_DELAY_S = 0.5
LONGEST_SLOWNESS_S = 0.05
COPY_TIMEOUT_S = 20.0
FAULTS = ("drop", "deaf", "late", "twice", "again", "slow")
COPIES = frozenset({"late", "twice", "again"})


class FaultProxy:
    """Passes bytes between clients and one server; `faults` counts what was done to them."""

    def __init__(self, target: tuple[str, int], seed: str, rate: float) -> None:
        """`rate` is the part of the requests to which something is done."""
        self._target = target
        self._seed = seed
        self._rate = rate
        self._clients = 0
        self._copies: set[asyncio.Task[None]] = set()
        self.faults: Counter[str] = Counter()
        self.chosen: list[str] = []
        """Faults to be used up before chance is asked; for tests of the proxy itself."""

    async def serve(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        """One client's connection from its first byte to its end."""
        self._clients += 1
        chance = random.Random(f"{self._seed}/{self._clients}")
        try:
            upstream, requests = await asyncio.open_connection(*self._target)
        except OSError:
            answers.close()
            return
        pump = asyncio.create_task(_pump(upstream, answers))
        try:
            await self._requests(client, requests, pump, chance)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            pump.cancel()
            for writer in (requests, answers):
                writer.close()

    async def _requests(
        self,
        client: asyncio.StreamReader,
        requests: asyncio.StreamWriter,
        pump: asyncio.Task[None],
        chance: random.Random,
    ) -> None:
        buffer = bytearray()
        while not pump.done():
            scanner = MessageScanner(MAX_MESSAGE_BYTES)
            while (length := scanner.scan(buffer)) is None:
                received = await client.read(CHUNK_BYTES)
                if not received:
                    return
                buffer += received
            message = bytes(buffer[:length])
            del buffer[:length]
            fault = self._fault(scanner.name, message, chance)
            if fault == "drop":
                return
            if fault == "late":
                self._send_copy(message, chance.uniform(0, LONGEST_DELAY_S))
                return
            if fault == "slow":
                await asyncio.sleep(chance.uniform(0, LONGEST_SLOWNESS_S))
            if fault == "twice":
                self._send_copy(message, 0)
            if fault == "again":
                self._send_copy(message, chance.uniform(0, LONGEST_DELAY_S))
            if fault == "deaf":
                await self._deliver(message, 0)
                return
            requests.write(message)
            await requests.drain()

    def _fault(self, method: str, message: bytes, chance: random.Random) -> str:
        if method == "set_ugi":
            return ""
        fault = chance.choice(FAULTS) if chance.random() < self._rate else ""
        if self.chosen:
            fault = self.chosen.pop(0)
        if fault in COPIES and method == "allocate_table_write_ids" and decode_arguments(method, message)[0].reallocate:
            fault = "slow"
        if fault:
            self.faults[fault] += 1
        return fault

    def _send_copy(self, message: bytes, delay_s: float) -> None:
        task = asyncio.create_task(self._deliver(message, delay_s))
        self._copies.add(task)
        task.add_done_callback(self._copies.discard)

    async def _deliver(self, message: bytes, delay_s: float) -> None:
        """Send a message on a connection of its own and wait for its answer, without reading it."""
        await asyncio.sleep(delay_s)
        with contextlib.suppress(OSError, TimeoutError):
            upstream, requests = await asyncio.open_connection(*self._target)
            try:
                requests.write(message)
                await asyncio.wait_for(upstream.read(1), COPY_TIMEOUT_S)
            finally:
                requests.close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    """Pass on bytes until there are no more, then close the other side."""
    try:
        while received := await source.read(CHUNK_BYTES):
            sink.write(received)
            await sink.drain()
    except OSError:
        pass
    finally:
        sink.close()


async def _main(port: int, proxy: FaultProxy) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", port)
    print("ready", flush=True)
    await ended.wait()
    server.close()


def main() -> None:
    """Run one proxy until SIGTERM, then say what it did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--target", type=int, required=True, help="port of the server")
    parser.add_argument("--seed", required=True)
    parser.add_argument("--rate", type=float, default=0.02)
    options = parser.parse_args()
    proxy = FaultProxy(("127.0.0.1", options.target), options.seed, options.rate)
    uvloop.run(_main(options.port, proxy))
    print(" ".join(f"{name}={count}" for name, count in sorted(proxy.faults.items())))


if __name__ == "__main__":
    main()
