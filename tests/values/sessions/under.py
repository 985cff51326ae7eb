"""Settings of a session for a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.connection import Connection
from tests.values.sessions.story import told


@contextmanager
def under(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Within the block the session has the settings, and at its end has to have them still."""
    own = {key: spark.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
        assert {key: spark.conf.get(key) for key in settings} == dict(settings)
    finally:
        for key, before in own.items():
            if before is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, before)


def wrong_under(spark: SparkSession, metastore: Connection, settings: Mapping[str, str], prefix: str) -> list[str]:
    """What of the story is not as it ought to be under settings, on a table with all columns and on a flat one."""
    wrong = []
    with under(spark, settings):
        session = hive_acid.spark.session(spark, metastore)
        for name, has_all in ((f"{prefix}_all", True), (f"{prefix}_flat", False)):
            verbs = told(spark, session, name, keys=has_all, nested=has_all)
            wrong += [f"{name}: {verb}" for verb, is_right in verbs if not is_right]
    return wrong
