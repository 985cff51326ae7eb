"""A closed loop of workers: so many connections, each with one call in flight, spread over a few processes."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Callable
from typing import Any

MAX_PROCESSES = 4
Worker = Callable[[Any, int], Callable[[], None]]
"""``worker(where, number)`` connects and returns the function that does one round."""


def rounds_per_second(worker: Worker, where: Any, connections: int, seconds: float) -> float:
    """How many rounds all connections together complete in a second, after a warm-up."""
    processes = min(connections, MAX_PROCESSES)
    context = multiprocessing.get_context("fork")
    start = context.Barrier(processes + 1)
    results: Any = context.Queue()
    shares = [connections // processes + (n < connections % processes) for n in range(processes)]
    children = [
        context.Process(target=_drive, args=(worker, where, n, share, seconds, start, results))
        for n, share in enumerate(shares)
    ]
    for child in children:
        child.start()
    start.wait(timeout=60)
    counts = [results.get(timeout=seconds + 120) for _ in children]
    for child in children:
        child.join()
    return sum(counts) / seconds


def _drive(worker: Worker, where: Any, process: int, share: int, seconds: float, start: Any, results: Any) -> None:
    rounds = [worker(where, process * 1000 + n) for n in range(share)]
    for one in rounds:
        one()
    start.wait(timeout=60)
    end = time.monotonic() + seconds
    done = [0] * share

    def loop(n: int) -> None:
        one = rounds[n]
        while time.monotonic() < end:
            one()
            done[n] += 1

    threads = [threading.Thread(target=loop, args=(n,)) for n in range(share)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put(sum(done))
