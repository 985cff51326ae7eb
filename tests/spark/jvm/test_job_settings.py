"""Settings for the time of a job: whose value is there, and what is left behind."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from pyspark.sql import SparkSession

from hive_acid.spark.jvm.job_settings import configured

KEY = "spark.sql.shuffle.partitions"


@pytest.mark.parametrize("ends", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
@pytest.mark.parametrize("values", [("31", "32", "33"), ("31", "32", "31"), ("31", "31", "32")])
def test_jobs_that_want_other_values_leave_what_was_there(
    spark: SparkSession, values: tuple[str, ...], ends: tuple[int, ...]
) -> None:
    before = str(spark.conf.get(KEY))
    jobs = [ExitStack() for _ in values]
    for job, value in zip(jobs, values, strict=True):
        job.enter_context(configured(spark, {KEY: value}))
        assert spark.conf.get(KEY) == value
    left = list(values)
    for end in ends:
        jobs[end].close()
        left[end] = ""
        assert spark.conf.get(KEY) in ([value for value in left if value] or [before])
    assert spark.conf.get(KEY) == before


def test_who_gives_way_takes_no_other_value(spark: SparkSession) -> None:
    before = str(spark.conf.get(KEY))
    with configured(spark, {KEY: "31"}), configured(spark, {KEY: "32"}, gives_way=True):
        assert spark.conf.get(KEY) == "31"
    assert spark.conf.get(KEY) == before
