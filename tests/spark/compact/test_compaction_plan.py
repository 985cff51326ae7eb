"""A compaction says in the debug log which way it takes, and takes it."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.spark import AcidSession
from tests.spark.by_spark import limited
from tests.spark.checker import check_table, location_of
from tests.spark.compaction import compact_table

OF_PLANS = "hive_acid.spark.plans"


@pytest.fixture
def merged(acid: AcidSession, spark: SparkSession, caplog: pytest.LogCaptureFixture) -> Any:
    """A function: what compactions of ``d.t`` say of rows and delete events, under some limits."""
    acid.create_table("d.t", {"id": "bigint", "text": "string"})
    for start in (0, 1000):
        acid.insert("d.t", spark.range(start, start + 1000).selectExpr("id", "concat('n', id) AS text").coalesce(1))
    acid.delete("d.t", "id BETWEEN 20 AND 29")
    acid.delete("d.t", "id BETWEEN 40 AND 49")
    caplog.set_level(logging.DEBUG, OF_PLANS)

    def merged(kind: Any, **limits: Any) -> Any:
        caplog.clear()
        with limited(acid, **limits):
            compact_table(spark, acid, "d.t", kind)
        assert acid.table("d.t").where("id >= 0").count() == 1980
        check_table(location_of(acid, "d.t"))
        told = [record.getMessage() for record in caplog.records if record.name == OF_PLANS]
        return "\n".join(text for text in told if "compaction of" in text)

    return merged


def test_rows_are_merged_as_it_is_said(merged: Any, acid: AcidSession) -> None:
    plan = merged("minor")
    assert "minor compaction of " in plan
    assert "rows: pyarrow, bucket by bucket: 1 bucket" in plan
    assert "delete events: without Spark: 20 events in 2 files" in plan
    plan = merged("major")
    assert "rows: pyarrow, bucket by bucket" in plan
    assert "delete events" not in plan
    assert "after all" not in plan


def test_limits_take_the_other_ways(merged: Any, acid: AcidSession) -> None:
    plan = merged("minor", merged_delete_events=1, arrow_bytes=-1)
    assert "rows: Spark, in one task: " in plan
    assert "one task is enough" in plan
    assert "delete events: Spark, in one task: " in plan
    assert "20 events, more than 1" in plan
    plan = merged("major", arrow_bytes=-1, by_bucket_bytes=-1)
    assert "rows: Spark, bucket by bucket: 1 bucket" in plan
    assert "not by pyarrow: " in plan


def test_what_is_copied_is_said(merged: Any) -> None:
    plan = merged("major", kept_stripe_bytes=0)
    assert "copied as they are: 1 file" in plan
