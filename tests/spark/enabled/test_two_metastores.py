"""Two Spark sessions of one process are joined to two metastores: each has its own tables, by the same names."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.spark import EnabledSession
from tests.served import served

HERE, THERE = [(1, 10), (2, 20)], [(2, 200), (3, 300)]


def rows(frame: DataFrame) -> Any:
    return sorted(tuple(row) for row in frame.collect())


@pytest.fixture
def there(
    joined: EnabledSession, spark: SparkSession, postgres_url: str, template: str, tmp_path: Path
) -> Iterator[EnabledSession]:
    """A second session of Spark on a second metastore; in both ``d.t`` (id, n) has rows of its own."""
    with served(postgres_url, template, tmp_path / "there") as server:
        other = spark.newSession()
        with hive_acid.spark.enable(other, server.uri) as acid:
            acid.create_database("d")
            for one, given in ((spark, HERE), (other, THERE)):
                one.sql("CREATE TABLE d.t (id INT, n INT)")
                one.createDataFrame(given, "id int, n int").writeTo("d.t").append()
            yield acid


def sessions(spark: SparkSession, there: EnabledSession) -> tuple[SparkSession, SparkSession]:
    return spark, there.table("d.t").sparkSession


def test_one_name_means_two_tables(spark: SparkSession, there: EnabledSession, joined: EnabledSession) -> None:
    here, other = sessions(spark, there)
    for one, wanted in ((here, HERE), (other, THERE)):
        assert rows(one.table("d.t")) == rows(one.read.table("d.t")) == rows(one.sql("SELECT * FROM d.t")) == wanted
        assert rows(one.sql("SELECT a.id, b.n FROM d.t a JOIN d.t b USING (id)")) == wanted
        assert rows(one.table("d.t").where("id = 2")) == [row for row in wanted if row[0] == 2]
    here.sql("CREATE TABLE d.u AS SELECT * FROM d.t")
    assert [of.name for of in here.catalog.listTables("d")] == ["t", "u"]
    assert [of.name for of in other.catalog.listTables("d")] == ["t"]
    assert joined.connection.uri != there.connection.uri
    other.sql("CREATE DATABASE e")
    other.sql("USE e")
    assert (here.catalog.currentDatabase(), other.catalog.currentDatabase()) == ("default", "e")
    assert not here.catalog.databaseExists("e")


def test_each_writes_to_its_own(spark: SparkSession, there: EnabledSession) -> None:
    here, other = sessions(spark, there)

    def change(one: SparkSession) -> None:
        one.sql("UPDATE d.t SET n = n + 1 WHERE id = 2")
        source = one.createDataFrame([(2, 5), (9, 9)], "id int, n int")
        source.alias("s").mergeInto("d.t", F.expr("t.id = s.id")).whenNotMatched().insertAll().merge()
        one.table("d.t").where("id = 2").selectExpr("id + 5 AS id", "n").write.mode("append").saveAsTable("d.t")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(change, (here, other)))
    assert rows(here.table("d.t")) == [(1, 10), (2, 21), (7, 21), (9, 9)]
    assert rows(other.table("d.t")) == [(2, 201), (3, 300), (7, 201), (9, 9)]


def test_rows_of_one_meet_those_of_the_other(
    spark: SparkSession, there: EnabledSession, joined: EnabledSession
) -> None:
    here, other = sessions(spark, there)
    ours, theirs = here.table("d.t"), other.table("d.t")
    both = ours.join(theirs.withColumnRenamed("n", "m"), "id")
    assert rows(both) == [(2, 20, 200)]
    there.insert("d.t", ours)
    assert rows(other.table("d.t")) == sorted([*HERE, *THERE])
    assert rows(theirs) == THERE
    joined.merge("d.t", theirs, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert rows(here.table("d.t")) == [(1, 10), (2, 200), (3, 300)]
    assert rows(ours) == HERE
    # As Spark has it: whose session a frame is of, there it is written.
    ours.where("id = 1").write.saveAsTable("d.w")
    assert rows(here.table("d.w")) == [(1, 10)]
    assert not other.catalog.tableExists("d.w")


def test_views_are_of_their_own(spark: SparkSession, there: EnabledSession) -> None:
    here, other = sessions(spark, there)
    for one in (here, other):
        one.sql("CREATE VIEW d.v AS SELECT max(n) AS n FROM d.t")
        one.table("d.t").createOrReplaceTempView("w")
    other.sql("DELETE FROM d.t WHERE id = 3")
    assert (rows(here.table("d.v")), rows(other.table("d.v"))) == ([(20,)], [(200,)])
    assert (rows(here.table("w")), rows(other.table("w"))) == (HERE, THERE)


def test_one_is_disabled(spark: SparkSession, there: EnabledSession) -> None:
    here, other = sessions(spark, there)
    frame, theirs = here.table("d.t"), other.table("d.t")
    there.disable()
    with pytest.raises(AnalysisException):
        other.table("d.t").collect()
    with pytest.raises(AnalysisException):
        other.sql("SELECT * FROM d.t").collect()
    assert (rows(frame), rows(theirs)) == (HERE, THERE)
    here.createDataFrame([(5, 50)], "id int, n int").writeTo("d.t").append()
    assert rows(here.table("d.t")) == [*HERE, (5, 50)]
    assert rows(there.table("d.t")) == THERE
    again = hive_acid.spark.enable(other, there.connection)
    assert rows(other.table("d.t")) == THERE
    again.disable()
    assert rows(here.sql("SELECT * FROM d.t WHERE id = 5")) == [(5, 50)]
