"""Frames of classic Spark, which have a frame in the JVM behind them, and those of Spark Connect, which have none."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame


def frame_in_jvm(frame: DataFrame) -> Any:
    """The JVM's frame of a classic one, which may be planned for that; None over Connect."""
    known: Any = frame
    return known._jdf if "_sc" in vars(frame) else None
