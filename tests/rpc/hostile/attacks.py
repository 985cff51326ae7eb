"""Clients that wish a server ill, and one that only wants to know how long it must wait meanwhile.

An attack is a function of an address and of an event that ends it; it goes on until then, whatever the server does to
its connections. Everything is made by a seed.
"""

from __future__ import annotations

import contextlib
import random
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from hive_acid.wire import ttypes
from tests.bench.calls.messages import encode

STOP, BOOL, I32, I64, STRING, STRUCT, MAP, SET, LIST = 0, 2, 8, 10, 11, 12, 13, 14, 15
Attack = Callable[[str, threading.Event], None]
PATIENCE_S = 30.0
_TCP_REPAIR = 19
"""Linux' option for sockets that are moved to another machine: when such a one is closed nobody is told."""


def header(method: str) -> bytes:
    """How a call begins."""
    return struct.pack(">Ii", 0x80010001, len(method)) + method.encode() + bytes(4)


def listed(kind: int, count: int, items: bytes) -> bytes:
    """A list as the first argument, and the end of the message."""
    return bytes((LIST, 0, 1, kind)) + struct.pack(">i", count) + items + bytes(1)


def empty_structs(method: str, count: int) -> bytes:
    """The smallest bytes that become the most objects."""
    return header(method) + listed(STRUCT, count, bytes(count))


def tiny_values(method: str, size: int, rng: random.Random) -> bytes:
    """Containers in containers of tiny values, as a seed has it; about `size` bytes."""

    def value(kind: int, depth: int) -> bytes:
        if kind == BOOL:
            return b"\1"
        if kind == I64:
            return bytes(8)
        if kind == STRING:
            return bytes(4)
        if kind == STRUCT:
            if depth > 5 or rng.random() < 0.5:
                return b"\0"
            some = rng.choice((BOOL, STRING, LIST, STRUCT))
            return bytes((some, 0, rng.randrange(1, 9))) + value(some, depth + 1) + b"\0"
        if depth > 5:
            return struct.pack(">bi", BOOL, 0) if kind != MAP else struct.pack(">bbi", BOOL, BOOL, 0)
        count = rng.randrange(1, 20)
        item = rng.choice((BOOL, STRING, STRUCT, LIST, MAP, I64))
        items = b"".join(value(item, depth + 1) for _ in range(count))
        if kind == MAP:
            return struct.pack(">bbi", BOOL, item, count) + b"".join(
                b"\1" + value(item, depth + 1) for _ in range(count)
            )
        return struct.pack(">bi", item, count) + items

    kind = rng.choice((BOOL, STRING, STRUCT, LIST, MAP, I64))
    some = [value(kind, 1) for _ in range(50)]
    each = b"".join(some)
    times = max(1, size // max(1, len(each)))
    return header(method) + listed(kind, 50 * times, each * times)


def partitions(count: int, columns: int, first: int = 0, table: str = "wide") -> bytes:
    """A large request of an honest client: so many partitions in one call."""
    fields = [ttypes.FieldSchema(name=f"column_{number}", type="string", comment="") for number in range(columns)]
    storage = ttypes.StorageDescriptor(
        cols=fields,
        inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        serdeInfo=ttypes.SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde", parameters={}),
        numBuckets=-1,
        parameters={},
    )
    made = [
        ttypes.Partition(values=[str(first + number)], dbName="default", tableName=table, sd=storage, parameters={})
        for number in range(count)
    ]
    return encode("add_partitions", made)


def wide_table(columns: int, table: str = "wide") -> Any:
    """The table of those partitions."""
    fields = [ttypes.FieldSchema(name=f"column_{number}", type="string", comment="") for number in range(columns)]
    return ttypes.Table(
        tableName=table,
        dbName="default",
        sd=ttypes.StorageDescriptor(cols=fields, serdeInfo=ttypes.SerDeInfo()),
        partitionKeys=[ttypes.FieldSchema(name="p", type="int")],
        tableType="EXTERNAL_TABLE",
        parameters={"EXTERNAL": "TRUE"},
    )


def connected(uri: str, receive_bytes: int | None = None) -> socket.socket:
    """A socket to the server; with little room for what it answers, if asked for."""
    parts = urlsplit(uri)
    sock = socket.socket()
    if receive_bytes is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    sock.settimeout(PATIENCE_S)
    sock.connect((parts.hostname or "", parts.port or 9083))
    return sock


# --- attacks ---


def sending(*messages: bytes, connections: int = 1) -> Attack:
    """One message after the other, each on a new connection if the server closes the old one; answers are read."""

    def attack(uri: str, ends: threading.Event) -> None:
        threads = [threading.Thread(target=_send_all, args=(uri, ends, messages)) for _ in range(connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return attack


def _send_all(uri: str, ends: threading.Event, messages: tuple[bytes, ...]) -> None:
    while not ends.is_set():
        for message in messages:
            with contextlib.suppress(OSError), connected(uri) as sock:
                sock.settimeout(1.0)
                _push(sock, message, ends)
                while not ends.is_set():
                    with contextlib.suppress(TimeoutError):
                        sock.recv(1 << 16)
                        break


def _push(sock: socket.socket, message: bytes, ends: threading.Event) -> None:
    rest = memoryview(message)
    while rest and not ends.is_set():
        with contextlib.suppress(TimeoutError):
            rest = rest[sock.send(rest[: 1 << 18]) :]


def not_reading(message: bytes, connections: int = 4) -> Attack:
    """Requests without end, whose answers nobody reads."""

    def attack(uri: str, ends: threading.Event) -> None:
        chunk = message * max(1, 65_536 // len(message))
        socks: list[socket.socket] = []
        while not ends.wait(0.001):
            while len(socks) < connections:
                socks.append(connected(uri, receive_bytes=4096))
                socks[-1].setblocking(False)
            for sock in list(socks):
                try:
                    sock.send(chunk)
                except BlockingIOError:
                    continue
                except OSError:
                    socks.remove(sock)
                    sock.close()
        for sock in socks:
            sock.close()

    return attack


def dripping(message: bytes, connections: int, bytes_at_once: int = 1, pause_s: float = 0.5) -> Attack:
    """Slow loris: many connections, each of which sends its request a byte at a time."""

    def attack(uri: str, ends: threading.Event) -> None:
        socks: dict[socket.socket, int] = {}
        while not ends.is_set():
            while len(socks) < connections and not ends.is_set():
                with contextlib.suppress(OSError):
                    socks[connected(uri)] = 0
            for sock, at in list(socks.items()):
                try:
                    sock.setblocking(False)
                    socks[sock] += sock.send(message[at : at + bytes_at_once])
                except BlockingIOError:
                    continue
                except OSError:
                    del socks[sock]
                    sock.close()
            ends.wait(pause_s)
        for sock in socks:
            sock.close()

    return attack


def vanishing(connections: int) -> Attack:
    """Clients that are gone without a word, as after a power cut: the server still has their connections."""

    def attack(uri: str, ends: threading.Event) -> None:
        for _ in range(connections):
            if ends.is_set():
                return
            with contextlib.suppress(OSError):
                vanish(connected(uri))
        ends.wait()

    return attack


def vanish(sock: socket.socket) -> None:
    """Close a connection without telling the other side. Raises PermissionError without CAP_NET_ADMIN."""
    sock.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR, 1)
    sock.close()


def slow_readers(message: bytes, connections: int, bytes_per_s: int) -> Attack:
    """Clients that ask for something long and read it slowly."""

    def attack(uri: str, ends: threading.Event) -> None:
        poll = selectors.DefaultSelector()
        count = 0
        while not ends.wait(0.1):
            while count < connections:
                sock = connected(uri, receive_bytes=4096)
                sock.sendall(message)
                poll.register(sock, selectors.EVENT_READ)
                count += 1
            for key, _ in poll.select(0):
                sock = key.fileobj  # type: ignore[assignment]
                try:
                    gone = not sock.recv(max(1, bytes_per_s // 10))
                except OSError:
                    gone = True
                if gone:
                    poll.unregister(sock)
                    sock.close()
                    count -= 1
        for key in list(poll.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]

    return attack


# --- the one that waits ---


@dataclass
class Waits:
    """How long another client has waited for its answers."""

    each_s: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def worst_s(self) -> float:
        """The longest of all."""
        return max(self.each_s, default=float("inf"))

    def percentile_s(self, percent: float) -> float:
        """The time within which that share was answered."""
        times = sorted(self.each_s)
        return times[min(len(times) - 1, int(len(times) * percent / 100))] if times else float("inf")


def watch(uri: str, ends: threading.Event, requests: dict[str, bytes], pause_s: float = 0.005) -> Waits:
    """Call in turn until the end; each answer is that of a call that has succeeded."""
    waits = Waits()
    sock = connected(uri)
    while not ends.wait(pause_s):
        for name, request in requests.items():
            began_at = time.perf_counter()
            try:
                sock.sendall(request)
                reply = sock.recv(1 << 16)
            except OSError as error:
                waits.errors.append(f"{name}: {error}")
                sock.close()
                sock = connected(uri)
                continue
            waits.each_s.append(time.perf_counter() - began_at)
            if reply[:4] != b"\x80\x01\0\2":
                waits.errors.append(f"{name}: {reply[:200]!r}")
    sock.close()
    return waits


USUAL = {
    "get_open_txns": encode("get_open_txns"),
    "get_database": encode("get_database", "default"),
    "heartbeat_txn_range": encode("heartbeat_txn_range", ttypes.HeartbeatTxnRangeRequest(min=1, max=2)),
    "getStatus": encode("getStatus"),
}
"""What others do meanwhile: hot calls and cold ones."""


@contextlib.contextmanager
def attacked(uri: str, attack: Attack) -> Iterator[threading.Event]:
    """An attack during the body."""
    ends = threading.Event()
    thread = threading.Thread(target=attack, args=(uri, ends))
    thread.start()
    try:
        yield ends
    finally:
        ends.set()
        thread.join()


def waits_under(uri: str, attack: Attack, seconds: float, requests: dict[str, bytes] | None = None) -> Waits:
    """How long another client waits while somebody attacks."""
    with attacked(uri, attack) as ends:
        timer = threading.Timer(seconds, ends.set)
        timer.start()
        return watch(uri, ends, requests or USUAL)
