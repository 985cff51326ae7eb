"""One epoll loop for all connections: a closed loop, each connection with one call in flight.

What a connection does is a generator, a *script*: it yields ``(call, request)`` and is sent the answer's bytes, or
yields ``(None, seconds)`` to pause. A script is one round (one cycle); when it returns, the next one begins.
"""

from __future__ import annotations

import functools
import gc
import heapq
import itertools
import re
import select
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

from tests.bench.calls.messages import IncompleteError, decode, encode

READ_BYTES = 1 << 16
"""A buffer twice as large comes from the kernel for every read, which costs ten times as much as the read."""
LONG_READ_BYTES = 1 << 20
"""For what follows the beginning of a long answer."""
SHORT_BYTES = 1 << 12
"""An answer of less comes in one piece."""
PATIENCE_S = 60.0
"""What is not answered so long after the end has failed."""
BATCH = 256


class Call:
    """One kind of call, and what a good answer to it looks like: a comparison costs less than decoding."""

    def __init__(self, name: str, prefix: bytes, suffix: bytes = b"\0\0", inside: bytes = b"") -> None:
        """A good answer begins with `prefix`, ends with `suffix`, and mostly is as long as the one before.

        One that has something `inside` may be of any length; if it is short it comes in one piece.
        """
        self.name = name
        self.prefix = prefix
        self.suffix = suffix
        self.inside = inside
        self.length = 0
        self.latencies_s: list[float] = []


class CallError(Exception):
    """The server has answered a call that prepares a measurement with an exception."""


Step = tuple[Call, bytes] | tuple[None, float]
Script = Generator[Step, bytes, None]
"""One round of one connection."""


Scripts = Callable[[int], Callable[[], Script]]
"""Gives the connection of a number the function that makes its scripts."""


@dataclass(frozen=True)
class Scenario:
    """What is measured: the calls in their order, and what each connection does."""

    name: str
    calls: tuple[Call, ...]
    scripts: Scripts


@dataclass
class Figures:
    """What one measurement has found."""

    seconds: float = 0.0
    rounds: int = 0
    conflicts: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    latencies_s: dict[str, list[float]] = field(default_factory=dict)
    driver_cpu_s: float = 0.0

    @property
    def per_second(self) -> float:
        """Rounds that ended well, per second."""
        return self.rounds / self.seconds

    @property
    def calls(self) -> int:
        """All calls answered."""
        return sum(map(len, self.latencies_s.values()))

    def percentile_ms(self, name: str, percent: float) -> float:
        """The time within which that share of the calls was answered."""
        times = sorted(self.latencies_s[name])
        return times[min(len(times) - 1, int(len(times) * percent / 100))] * 1000 if times else 0.0


class _Client:
    """One socket and where its script is."""

    __slots__ = ("call", "make", "pending", "script", "sent_at", "sock", "waiting")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.make: Callable[[], Script]
        self.script: Script
        self.call: Call
        self.sent_at = 0.0
        self.pending = b""
        self.waiting = True


class Driver:
    """Connections to one metastore; `run` measures."""

    def __init__(self, uri: str, connections: int) -> None:
        self._poll = select.epoll()
        self._clients: dict[int, _Client] = {}
        for _ in range(connections):
            sock = connect(uri)
            self._clients[sock.fileno()] = _Client(sock)
            self._poll.register(sock.fileno(), select.EPOLLIN)

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            client.sock.close()
        self._poll.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, scenario: Scenario, seconds: float, warm_up_s: float) -> Figures:
        """Let every connection repeat its script; count what ends between the warm-up and the end.

        Rounds begun before the end are finished, uncounted, so that nothing stays open on the server; those
        that do not finish are failures. Raises ConnectionError when the server closes a connection.
        """
        scripts, calls = scenario.scripts, scenario.calls
        self._timers: list[tuple[float, int, _Client]] = []
        self._order = itertools.count()
        self._stopping = False
        self._figures = Figures()
        self._busy = len(self._clients)
        gc.collect()
        gc.disable()
        try:
            for number, client in enumerate(self._clients.values()):
                client.make = scripts(number)
                client.waiting = True
                self._begin_round(client, time.perf_counter())
            self._serve_until(time.perf_counter() + warm_up_s)
            self._figures = figures = Figures()
            for call in calls:
                call.latencies_s = []
            began_at, cpu_s = time.perf_counter(), time.process_time()
            self._serve_until(began_at + seconds)
            figures.seconds = time.perf_counter() - began_at
            figures.driver_cpu_s = time.process_time() - cpu_s
            figures.latencies_s = {call.name: call.latencies_s for call in calls}
            for call in calls:
                call.latencies_s = []
            self._figures = Figures()
            self._stopping = True
            self._serve_until(time.perf_counter() + PATIENCE_S)
            for client in self._clients.values():
                if client.waiting:
                    figures.failures[f"{client.call.name}: no answer within {PATIENCE_S:.0f} s"] += 1
        finally:
            gc.enable()
        return figures

    def _serve_until(self, end: float) -> None:
        """Take answers and send what follows, until `end` on the clock of `time.perf_counter` or until all are done."""
        clock, poll, clients, timers = time.perf_counter, self._poll.poll, self._clients, self._timers
        now = clock()
        while self._busy and now < end:
            wake_at = min(end, timers[0][0]) if timers else end
            for descriptor, _ in poll(max(0.0, wake_at - now), BATCH):
                client = clients[descriptor]
                self._take(client, client.sock.recv(LONG_READ_BYTES if client.pending else READ_BYTES), clock())
            now = clock()
            while timers and timers[0][0] <= now:
                self._step(heapq.heappop(timers)[2], b"", now)

    def _take(self, client: _Client, data: bytes, now: float) -> None:
        """Bytes have come: check them if they are a whole answer, and go on."""
        call = client.call
        if client.pending:
            data = client.pending + data
            client.pending = b""
        is_as_long = call.inside in data and len(data) < SHORT_BYTES if call.inside else len(data) == call.length
        if not is_as_long or not data.startswith(call.prefix) or not data.endswith(call.suffix):
            if not data:
                raise ConnectionError("the metastore has closed a connection")
            if len(data) < call.length and not data.endswith(call.suffix):
                client.pending = data  # the beginning of a long answer, not worth decoding
                return
            try:
                failure = examine(call, data)
            except IncompleteError:
                client.pending = data
                return
            if failure:
                self._fail(client, failure, now)
                return
            call.length = len(data)
        call.latencies_s.append(now - client.sent_at)
        self._step(client, data, now)

    def _step(self, client: _Client, data: bytes, now: float) -> None:
        try:
            call, request = client.script.send(data)
        except StopIteration:
            self._figures.rounds += 1
            self._begin_round(client, now)
            return
        self._do(client, call, request, now)

    def _do(self, client: _Client, call: Call | None, request: Any, now: float) -> None:
        if call is None:
            heapq.heappush(self._timers, (now + request, next(self._order), client))
            return
        client.call = call
        client.sent_at = now
        client.sock.sendall(request)

    def _begin_round(self, client: _Client, now: float) -> None:
        if self._stopping:
            self._busy -= 1
            client.waiting = False
            return
        client.script = client.make()
        call, request = next(client.script)
        self._do(client, call, request, now)

    def _fail(self, client: _Client, failure: str, now: float) -> None:
        """The round ends here, as a conflict or as a failure."""
        client.script.close()
        if client.call.name == "commit_txn" and "conflict" in failure:
            self._figures.conflicts += 1
        else:
            self._figures.failures[failure] += 1
        self._begin_round(client, now)


def examine(call: Call, data: bytes) -> str:
    """Why an answer is not a good one; empty if it is. Raises IncompleteError."""
    is_reply, fields = decode(data)
    if not is_reply:
        return f"{call.name}: {_text(fields.get(1))}"
    if any(number for number in fields):
        return f"{call.name}: {_text(next(iter(fields.values())).get(1))}"
    if not data.startswith(call.prefix) or not data.endswith(call.suffix):
        return f"{call.name}: answered {fields!s:.200}"
    return ""


def _text(value: Any) -> str:
    words = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return " ".join(re.sub(r"[0-9]+", "#", words).split())[:200]


def connect(uri: str) -> socket.socket:
    """A blocking socket that has introduced itself, as Hive's clients do."""
    parts = urlsplit(uri)
    sock = socket.create_connection((parts.hostname or "", parts.port or 9083), timeout=PATIENCE_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if parts.scheme == "thrift+tls":
        sock = _trusting().wrap_socket(sock)
    ask(sock, "set_ugi", "bench", [])
    sock.settimeout(None)  # reads follow the poll, and a timeout would cost a poll more for each
    return sock


@functools.cache
def _trusting() -> ssl.SSLContext:
    """Of a client that takes any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def ask(sock: socket.socket, method: str, *arguments: Any) -> Any:
    """One call, its result decoded: what prepares a measurement. Raises CallError."""
    sock.sendall(encode(method, *arguments))
    data = b""
    while True:
        some = sock.recv(READ_BYTES)
        if not some:
            raise ConnectionError(f"the metastore has closed the connection in {method}")
        data += some
        try:
            is_reply, fields = decode(data)
        except IncompleteError:
            continue
        if not is_reply or any(fields):
            raise CallError(f"{method}: {fields}")
        return fields.get(0)
