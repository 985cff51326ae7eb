"""What a Spark job has counted: an `Observation` knows it by an event, of which Spark's bus drops some when it is full.

`Observation.get` waits for it without end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import Observation

from hive_acid.errors import NotCountedError

PATIENCE_S = 30
"""So long after the end of its job, which comes with the event."""

_QUEUE = "spark.scheduler.listenerbus.eventqueue.capacity"


def counts_of(observation: Observation) -> Mapping[str, int] | None:
    """What a job that has ended has counted, by its names; None if Spark does not tell."""
    known: Any = observation
    told = vars(known).get("_jo")
    if told is not None:
        jvm = known._jvm
        duration = jvm.scala.concurrent.duration.Duration.create(int(PATIENCE_S * 1000), "ms")
        try:
            jvm.scala.concurrent.Await.ready(told.future(), duration)
        except Py4JJavaError as error:
            if not error.java_exception.getClass().getName().endswith("TimeoutException"):
                raise
            return None
    counts = observation.get
    return {name: int(count or 0) for name, count in counts.items()} or None  # over Connect there may be none


def told_counts(observation: Observation, outcome: str) -> Mapping[str, int]:
    """As `counts_of`; NotCountedError, with what has become of the job's rows, if Spark does not tell."""
    counts = counts_of(observation)
    if counts is None:
        raise not_counted(outcome)
    return counts


def count_of(observation: Observation, name: str, outcome: str) -> int:
    """The one number that a job has counted, as `told_counts`."""
    return told_counts(observation, outcome)[name]


def not_counted(outcome: str) -> NotCountedError:
    """Spark has not told what a job has counted; `outcome` says what has become of the job's rows."""
    return NotCountedError(
        f"Spark has not told how many rows its job has written, {PATIENCE_S} s after its end: {outcome}. Its queue of "
        f"events was full, or has nobody who listens ({_QUEUE} is its size)"
    )
