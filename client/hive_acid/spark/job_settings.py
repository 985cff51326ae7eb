"""Spark's settings for one job: put into its session, and taken out again."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from hive_acid.errors import UnsupportedTableError

LOG = logging.getLogger(__name__)


@contextmanager
def configured(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Within the block the session has `settings`, as far as a running session takes them.

    Raises UnsupportedTableError for a value that Spark does not take.
    """
    before: dict[str, str | None] = {}
    try:
        for key, value in settings.items():
            if not spark.conf.isModifiable(key):
                LOG.info("%s is for the start of a Spark, or not known to it: this one runs already", key)
                continue
            own = spark.conf.get(key, None)
            try:
                spark.conf.set(key, value)
            except Exception as error:  # of the JVM, which comes as py4j's or, by way of Connect, as PySpark's own
                raise UnsupportedTableError(
                    f"compactor.{key} cannot be '{value}': {str(error).splitlines()[0]}"
                ) from error
            before[key] = own
        yield
    finally:
        for key, own in before.items():
            if own is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, own)
