"""Short walks for every run of the tests; ``make walk-data`` makes long ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.data_walk.story import Stage


@pytest.mark.spark
@pytest.mark.sampled(of="stories of minutes")
@pytest.mark.parametrize("seed", [1, 2])
def test_walk(spark: SparkSession, postgres_url: str, template: str, tmp_path: Path, seed: int) -> None:
    assert Stage(spark, postgres_url, template, tmp_path).run(seed, 14)
