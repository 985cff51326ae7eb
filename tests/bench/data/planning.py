"""How long it takes to plan a read of many partitions with several deltas each: listing, snapshot, Spark's plan."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.bench.data.contestants import Acid

PARTITIONS, DELTAS = 1000, 5


def planned(spark: SparkSession, root: str, uri: str, reads: int) -> Iterator[tuple[str, float]]:
    """(what, seconds): taking the frame, and the first row of one partition found by its key and by the frame."""
    acid = Acid(spark, root, uri, partitioned=True).acid
    name = "bench.planned"
    acid.create_table(name, {"id": "bigint", "v": "string"}, partitioned_by={"p": "int"})
    for delta in range(DELTAS):
        rows = spark.range(PARTITIONS).select(
            (F.col("id") + delta * PARTITIONS).alias("id"), F.lit("v").alias("v"), F.col("id").cast("int").alias("p")
        )
        acid.insert(name, rows)
    yield "taking the frame", _median(lambda: acid.table(name), reads)
    yield "taking it and planning a count", _median(lambda: acid.table(name).groupBy().count().explain(), reads)
    yield "one partition's count", _median(lambda: acid.table(name).where("p = 7").count(), reads)
    acid.drop_table(name)


def _median(step: Callable[[], object], times: int) -> float:
    step()
    seconds = []
    for _ in range(times):
        started = time.monotonic()
        step()
        seconds.append(time.monotonic() - started)
    return statistics.median(seconds)
