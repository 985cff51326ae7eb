"""Days and times that ORC files cannot hold: what is asked in a zone that is but an offset is what is asked in all."""

import random
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from hive_acid.spark.values.unstorable import holds_unstorable, put_forward

EDGES = [-62_135_596_800, -12_219_379_200, -12_219_292_800, -2_208_988_800, -1, 0, 253_402_300_799]
"""Seconds of the first year, of the days between two calendars, of 1900, 1970, and the last year."""


@pytest.mark.parametrize("zone", ["UTC", "+05:30", "GMT-8"])
def test_clocks_of_an_offset_are_never_changed(zone: Any, spark: SparkSession) -> None:
    choice = random.Random(zone)
    near = [second * 1_000_000 + choice.randrange(-2_000_000, 2_000_000) for second in EDGES for _ in range(40)]
    far = [choice.randrange(-62_000_000_000, 4_000_000_000) * 1_000_000 for _ in range(100)]
    rows = spark.createDataFrame([(number,) for number in near + far], "n bigint").selectExpr("timestamp_micros(n) v")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        assert put_forward(spark) is None
        found = rows.selectExpr(*(f"{holds_unstorable('v', t.TimestampType(), of)} AS b" for of in (None, 0))).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert {row[0] for row in found} == {True, False}
    assert all(short == long for short, long in found)


def test_a_named_zone_is_asked_of(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Africa/Cairo")
    try:
        assert put_forward(spark) == 309_000_000
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
