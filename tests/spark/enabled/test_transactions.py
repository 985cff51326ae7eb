"""Transactions by ``spark.sql``, of which Spark's own writers are part."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import ScriptError, SqlError, TransactionClosedError

pytestmark = pytest.mark.spark


def test_words_by_sparks_own_sql(numbers: Any, spark: SparkSession) -> None:
    with hive_acid.spark.session(spark.newSession(), numbers.connection.uri) as other:
        for end, number in {"ROLLBACK": 3, "COMMIT": 6}.items():
            spark.sql("BEGIN")
            spark.sql("INSERT INTO d.t VALUES (4, 40)")
            spark.createDataFrame([(5, 50)], "id int, n int").write.insertInto("d.t")
            spark.createDataFrame([(6, 60)], "id int, n int").writeTo("d.t").append()
            spark.sql("UPDATE d.t SET n = n + 1")
            assert spark.table("d.t").count() == 6
            assert other.table("d.t").count() == 3
            assert spark.sql("SELECT 1 AS one").collect() == [(1,)]
            spark.sql(end)
            assert other.table("d.t").count() == number
    with pytest.raises(SqlError, match="READ UNCOMMITTED is none of hive-acid's"):
        spark.sql("START TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
    with pytest.raises(TransactionClosedError, match="no transaction to commit"):
        spark.sql("COMMIT")
    with pytest.raises(ScriptError, match="was rolled back"):
        numbers.sql_script("BEGIN; DELETE FROM d.t; DELETE FROM d.nothere")
    assert spark.table("d.t").count() == 6


def test_autocommit_by_sparks_own_sql(numbers: Any, spark: SparkSession) -> None:
    spark.sql("SET AUTOCOMMIT = FALSE")
    spark.sql("DELETE FROM d.t")
    spark.sql("ROLLBACK")
    spark.sql("SET AUTOCOMMIT = TRUE")
    assert spark.sql("SET autocommit").collect() == [("autocommit", "true")]
    assert spark.table("d.t").count() == 3


def test_spark_without_a_join_has_none_of_it_left(numbers: Any, spark: SparkSession) -> None:
    spark.sql("BEGIN")
    spark.sql("DELETE FROM d.t")
    with hive_acid.spark.session(spark.newSession(), numbers.connection.uri) as other:
        numbers.close()
        assert other.table("d.t").count() == 3


def test_compound_statements_are_sparks(numbers: Any, spark: SparkSession) -> None:
    spark.sql("SET spark.sql.scripting.enabled = true")
    assert spark.sql("BEGIN SELECT 1 AS one; END").collect() == [(1,)]
    assert not numbers._blocks.is_within
