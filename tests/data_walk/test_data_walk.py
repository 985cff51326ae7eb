"""Short walks for every run of the tests; ``make walk-data`` makes long ones."""

from __future__ import annotations

import pytest

from tests.data_walk.story import Stage


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_walk(spark, postgres_url, template, tmp_path, seed):
    assert Stage(spark, postgres_url, template, tmp_path).run(seed, 14)
