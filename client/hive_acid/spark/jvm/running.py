"""Whether a Spark session still runs: after `spark.stop()` nothing can be read or written by it."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from hive_acid.errors import SparkStoppedError


def check_running(spark: SparkSession) -> None:
    """Raise SparkStoppedError if the session has been stopped."""
    if _is_stopped(spark):
        raise SparkStoppedError(
            "this Spark session has been stopped: make a new one, and give that to hive_acid.spark.session"
        )


def _is_stopped(spark: SparkSession) -> bool:
    known: Any = spark
    context = vars(known).get("_sc")
    return bool(known.is_stopped) if context is None else context._jsc is None
