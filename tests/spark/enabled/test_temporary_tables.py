"""Temporary tables by all ways: what they do to one of a name leaves the stored one alone."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import NoSuchObjectError
from hive_acid.spark import EnabledSession
from tests.spark.enabled.ways import WAYS

pytestmark = pytest.mark.sampled(days=4)


def rows(frame: Any) -> list[Any]:
    return sorted(tuple(row) for row in frame.collect())


@pytest.mark.parametrize("kind", WAYS)
def test_all_ways_mean_the_temporary_table(numbers: EnabledSession, spark: SparkSession, kind: str) -> None:
    stored = rows(numbers.table("d.t"))
    numbers.create_table("d.t", {"id": "int", "n": "int"}, temporary=True)
    way: Any = WAYS[kind](numbers, spark)
    way.append("d.t", spark.createDataFrame([(7, 70), (8, 80)], "id int, n int"))
    assert rows(way.read("d.t")) == [(7, 70), (8, 80)]
    way.merge("d.t", spark.createDataFrame([(8, 1), (9, 90)], "id int, n int"))
    assert rows(way.read("d.t")) == [(7, 70), (8, 81), (9, 90)]
    way.overwrite("d.t", spark.createDataFrame([(1, 2)], "id int, n int"))
    assert rows(way.read("d.t")) == [(1, 2)]
    assert numbers.connection.table("d", "t").full_name == "d.t"
    with hive_acid.spark.session(spark.newSession(), numbers.connection.uri) as other:
        assert rows(other.table("d.t")) == stored
        assert [row.tableName for row in other.sql("SHOW TABLES IN d").collect()] == ["p", "t"]
    numbers.drop_table("d.t")
    assert rows(way.read("d.t")) == stored


def test_the_catalogue_tells_of_it(numbers: EnabledSession, spark: SparkSession) -> None:
    spark.sql("CREATE TEMPORARY TABLE d.t AS SELECT 1 AS one")
    spark.sql("CREATE TEMPORARY TABLE d.more AS SELECT 2 AS two")
    found = {one.name: (one.tableType, one.isTemporary) for one in spark.catalog.listTables("d")}
    assert found == {"t": ("TEMPORARY", True), "more": ("TEMPORARY", True), "p": ("MANAGED", False)}
    told = spark.catalog.getTable("d.t")
    assert (told.namespace, told.tableType, told.isTemporary) == (["d"], "TEMPORARY", True)
    assert [one.name for one in spark.catalog.listColumns("d.t")] == ["one"]
    assert "hive_acid_session" not in str(spark.catalog.listDatabases())
    spark.catalog.setCurrentDatabase("d")
    assert rows(spark.table("t")) == rows(spark.sql("SELECT t.one FROM t")) == [(1,)]
    spark.catalog.setCurrentDatabase("default")


def test_they_end_where_the_session_is_left(numbers: EnabledSession, spark: SparkSession) -> None:
    spark.sql("CREATE TEMPORARY TABLE d.t AS SELECT 1 AS one")
    place = numbers.temporary.place("d.t") or ""
    numbers.disable()
    assert numbers.table("d.t").columns == ["id", "n"]
    with pytest.raises(NoSuchObjectError):
        numbers.connection.table(*place.split("."))
