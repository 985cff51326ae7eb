"""A table with a history."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.spark import AcidSession
from tests.spark.compact.rows import COLUMNS, insert


@pytest.fixture
def three_buckets(acid: AcidSession, spark: SparkSession) -> Any:
    """Three buckets of which one has files that overlap, updates, deletes, statements of one write."""
    acid.create_table("d.t", COLUMNS)
    for first in (0, 100, 200):
        insert(acid, spark, first, 100, files=3)
    acid.update("d.t", {"name": "'u'"}, "id % 10 = 0")
    acid.delete("d.t", "id % 7 = 0")
    with acid.transaction():
        insert(acid, spark, 300, 20)
        insert(acid, spark, 320, 20)
        acid.delete("d.t", "id = 301")
    return acid
