"""`enable` and `disable`: one Spark session is joined to one metastore, and others stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

import hive_acid.spark
from hive_acid.errors import AddressError, HiveAcidError
from hive_acid.spark import EnabledSession
from hive_acid.spark.enabled.enabling import address_of


def rows(frame: DataFrame) -> Any:
    return sorted(tuple(row) for row in frame.collect())


def test_a_second_call_is_harmless(numbers: EnabledSession, spark: SparkSession) -> None:
    assert hive_acid.spark.enable(spark) is numbers
    assert hive_acid.spark.enable(spark, numbers.connection.uri) is numbers
    assert hive_acid.spark.enable(spark, numbers.connection) is numbers
    with pytest.raises(AddressError, match=r"joined to thrift://127.0.0.1:\d+, so not to thrift://other:1 as well"):
        hive_acid.spark.enable(spark, "thrift://other:1")
    assert rows(spark.table("d.t")) == [(1, 10), (2, 20), (3, 30)]


def test_other_sessions_are_untouched(numbers: EnabledSession, spark: SparkSession) -> None:
    second = spark.newSession()
    with pytest.raises(AnalysisException):
        second.sql("SELECT * FROM d.t").collect()
    with pytest.raises(AnalysisException):
        second.table("d.t").collect()
    other = hive_acid.spark.session(second, numbers.connection)  # a session of the verbs beside it
    assert rows(other.table("d.t")) == [(1, 10), (2, 20), (3, 30)]


def test_disable_leaves_nothing(numbers: EnabledSession, spark: SparkSession) -> None:
    frame = spark.table("d.t")
    kind = type(spark)
    numbers.disable()
    numbers.disable()
    assert type(spark) is not kind
    assert type(spark).__mro__[1:] == kind.__mro__[3:]
    with pytest.raises(AnalysisException):
        spark.table("d.t").collect()
    with pytest.raises(AnalysisException):
        spark.sql("SELECT * FROM d.t").collect()
    assert rows(frame) == [(1, 10), (2, 20), (3, 30)]
    assert rows(numbers.table("d.t")) == [(1, 10), (2, 20), (3, 30)]
    again = hive_acid.spark.enable(spark, numbers.connection)
    assert again is not numbers
    assert rows(spark.table("d.t")) == [(1, 10), (2, 20), (3, 30)]
    again.disable()


def test_a_stop_of_spark_ends_the_join(
    numbers: EnabledSession, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[SparkSession] = []
    monkeypatch.setattr(type(spark).__mro__[2], "stop", lambda self: stopped.append(self))
    spark.stop()
    assert stopped == [spark]
    assert "_hive_acid" not in vars(spark)
    with pytest.raises(HiveAcidError, match="is closed"):
        numbers.table("d.t")


def test_sessions_of_verbs_beside_it(spark: SparkSession, metastore: Callable[..., str]) -> None:
    """Those that were made before, too, give Spark nothing that is looked through once more."""
    uri = metastore()
    with hive_acid.spark.session(spark, uri) as before, hive_acid.spark.enable(spark, uri) as acid:
        acid.create_database("d")
        after = hive_acid.spark.session(spark, uri)
        before.create_table("d.t", {"id": "int"})
        after.sql("INSERT INTO d.t SELECT 1")
        for one in (before, after, acid):
            assert one.spark is acid.spark
            assert one.spark is not spark
            assert rows(one.sql("SELECT * FROM d.t")) == rows(one.table("d.t")) == [(1,)]
        assert rows(spark.table("d.t")) == [(1,)]
    assert before.spark is spark


def test_the_address_is_configured(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HIVE_ACID_METASTORE", raising=False)
    assert address_of(spark) == "thrift://localhost:9083"
    monkeypatch.setenv("HIVE_ACID_METASTORE", "thrift://by-variable")
    assert address_of(spark) == "thrift://by-variable"
    try:
        spark.conf.set("spark.hadoop.hive.metastore.uris", "thrift://as-hive")
        assert address_of(spark) == "thrift://as-hive"
        spark.conf.set("spark.hadoop.hive.metastore.use.SSL", "TRUE")
        assert address_of(spark) == "thrift+tls://as-hive"
        spark.conf.set("spark.hive_acid.metastore", "thrift://ours:1")
        assert address_of(spark) == "thrift://ours:1"
    finally:
        spark.conf.unset("spark.hadoop.hive.metastore.uris")
        spark.conf.unset("spark.hadoop.hive.metastore.use.SSL")
        spark.conf.unset("spark.hive_acid.metastore")
