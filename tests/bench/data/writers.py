"""Writers at the same time, each of rows of its own in one table: what they get done.

With partitions each has one of its own, as far as there are so many.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from pyspark.sql import SparkSession

from tests.bench.data.contestants import Contestant
from tests.bench.data.orders import MONTHS, PARTITION_KEY, orders

ROWS, ROUNDS, MOST_ATTEMPTS = 80_000, 3, 200
_CONFLICTS = ("conflict", "Conflict", "Concurrent", "CommitFailed", "ValidationException")
"""Words of the errors by which contestants say that another one was faster."""


class Work(NamedTuple):
    """What `writers` threads got done: `commits` in `seconds`, and how many attempts more failed by a conflict."""

    writers: int
    commits: int
    conflicts: int
    seconds: float


def written(spark: SparkSession, one: Contestant, writers: int) -> Work:
    """Each of some threads updates ten rows of its own `ROUNDS` times, again after a conflict until it gets through.

    In a partition they are about ten.
    """
    one.new_table()
    one.load(orders(spark, ROWS))
    one.update("o_id < 10")  # compiled once
    own = ROWS // writers

    def where(writer: int, first: int) -> str:
        if not one.partitioned:
            return f"o_id BETWEEN {first} AND {first + 9}"
        return f"{PARTITION_KEY} = {writer % MONTHS + 1} AND o_id BETWEEN {first} AND {first + 10 * MONTHS - 1}"

    def write(writer: int) -> int:
        conflicts = 0
        for number in range(ROUNDS):
            first = writer * own + number * 200
            for _ in range(MOST_ATTEMPTS):
                try:
                    one.update(where(writer, first))
                    break
                except Exception as error:
                    if not any(word in str(error) for word in _CONFLICTS):
                        raise
                    conflicts += 1
            else:
                raise RuntimeError(f"{one.name}: writer {writer} never got through")
        return conflicts

    begun = time.monotonic()
    with ThreadPoolExecutor(writers) as pool:
        conflicts = sum(pool.map(write, range(writers)))
    return Work(writers, writers * ROUNDS, conflicts, time.monotonic() - begun)
