"""What other clients notice of one that wishes the server ill, and how much memory that takes."""

from __future__ import annotations

import contextlib
import random
import socket
import time
from dataclasses import dataclass

from tests.bench.calls.driver import ask, connect
from tests.bench.calls.messages import encode
from tests.bench.calls.servers import Server
from tests.bench.machine import memory_mb, peak_memory_mb, reset_peak_memory
from tests.rpc.hostile import attacks as hostile
from tests.rpc.hostile.attacks import Attack

COLUMNS = 30
HTTP = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


@dataclass(frozen=True)
class Found:
    """One attack: how long another client has waited meanwhile, and the server's memory."""

    name: str
    calls: int
    p50_ms: float
    p99_ms: float
    worst_ms: float
    memory_mb: float
    peak_mb: float
    errors: int


def prepare(uri: str) -> None:
    """A table for what follows, with 5,000 partitions."""
    with contextlib.closing(connect(uri)) as sock:
        ask(sock, "create_table", hostile.wide_table(COLUMNS))
        sock.sendall(hostile.partitions(5_000, COLUMNS))
        sock.recv(1 << 16)


def attacks(connections: int, seed: int = 0) -> dict[str, Attack]:
    """By name; `connections` is how many a crowd has."""
    rng = random.Random(seed)
    honest = (hostile.partitions(10_000, COLUMNS, first) for first in range(10_000, 60_000, 10_000))
    methods = ("add_partitions", "create_table", "nosuchmethod", "lock", "add_partitions_req")
    names = encode("get_partition_names", "default", "wide", -1)
    return {
        "none": lambda uri, ends: ends.wait() and None,
        "4 MB of empty structs": hostile.sending(hostile.empty_structs("add_partitions", 4_000_000)),
        "the same, unknown method": hostile.sending(hostile.empty_structs("nosuchmethod", 4_000_000)),
        "as many as are allowed": hostile.sending(hostile.empty_structs("add_partitions", 990_000)),
        "eight of these": hostile.sending(hostile.empty_structs("add_partitions", 990_000), connections=8),
        "small ones without end": hostile.sending(hostile.empty_structs("add_partitions", 480), connections=8),
        "tiny values, 4 MB": hostile.sending(*[hostile.tiny_values(method, 4_000_000, rng) for method in methods]),
        f"10,000 partitions x {COLUMNS} columns": hostile.sending(*honest),
        "replies not read": hostile.not_reading(encode("get_table", "default", "wide")),
        "long lists read slowly": hostile.slow_readers(names, 12, 2_000),
        f"{connections:,} silent connections": hostile.dripping(b"", connections),
        f"{connections:,} requests, a byte at a time": hostile.dripping(encode("get_database", "default"), connections),
        f"{connections:,} half-open connections": hostile.vanishing(connections),
    }


def found(server: Server, name: str, attack: Attack, seconds: float) -> Found:
    """Attack a server for so long, from when it begins."""
    if server.process:
        reset_peak_memory(server.process)
    before_mb = memory_mb(server.process) if server.process else 0.0
    waits = hostile.waits_under(server.uri, attack, seconds)
    peak_mb = peak_memory_mb(server.process) if server.process else 0.0
    times = [1000 * waits.percentile_s(percent) for percent in (50, 99)]
    return Found(name, len(waits.each_s), *times, 1000 * waits.worst_s, before_mb, peak_mb, len(waits.errors))  # type: ignore[arg-type, call-arg]


def scrapes(address: tuple[str, int], connections: int, seconds: float) -> list[float]:
    """How long requests for readiness take, in milliseconds, while others send theirs a byte at a time."""
    host, port = address
    times = []
    with hostile.attacked(f"http://{host}:{port}", hostile.dripping(HTTP, connections)):
        time.sleep(1.0)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began_at = time.perf_counter()
            with socket.create_connection(address, timeout=hostile.PATIENCE_S) as sock:
                sock.sendall(b"GET /readyz HTTP/1.1\r\n\r\n")
                if not sock.recv(4096).startswith(b"HTTP/1.1 200"):
                    raise ConnectionError("not ready")
            times.append(1000 * (time.perf_counter() - began_at))
            time.sleep(0.05)
    return times
