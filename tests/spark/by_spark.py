"""Spark as the writer of all files: those of few rows the client writes itself otherwise."""

from __future__ import annotations

from contextlib import AbstractContextManager
from unittest import mock

from hive_acid.spark.change import collected
from hive_acid.spark.compact import arrow_merge


def written_by_spark() -> AbstractContextManager[object]:
    """Within the block Spark writes events, however few they are."""
    return mock.patch.multiple(collected, MOST_KEYS=-1, MOST_ROWS=-1)


def merged_by_spark() -> AbstractContextManager[object]:
    """Within the block Spark merges the rows of compactions, however few they are."""
    return mock.patch.object(arrow_merge, "MOST_BYTES", -1)
