"""Frames that a statement names in braces, as `SparkSession.sql` has them: ``SELECT * FROM {rows}``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.sql_formatter import SQLStringFormatter


@contextmanager
def named_frames(
    spark: SparkSession, text: str, given: Mapping[str, Any]
) -> Iterator[tuple[str, dict[str, DataFrame]]]:
    """`text` with what stands for its braces, by Spark's own rule, and the frames by the names that are there now.

    Inside the block each of these names is a temporary view.
    """
    if not given:
        yield text, {}
        return
    over_connect = "_jsparkSession" not in vars(spark)
    formatter: Any = _of_connect(spark) if over_connect else SQLStringFormatter(spark)
    try:
        text = formatter.format(text, **given)
        frames = {name: frame for frame, name in formatter._temp_views}
        if over_connect:  # in classic Spark its formatter has made them
            for name, frame in frames.items():
                frame.createOrReplaceTempView(name)
        yield text, frames
    finally:
        for _, name in formatter._temp_views:
            spark.catalog.dropTempView(name)


def in_braces(template: str, frames: Mapping[str, DataFrame]) -> str:
    """A template of Spark's in which the names of frames are places for them again."""
    for name in frames:
        template = template.replace(name, f"{{{name}}}")
    return template


def _of_connect(spark: Any) -> Any:
    from pyspark.sql.connect import sql_formatter

    return sql_formatter.SQLStringFormatter(spark)
