"""Words of Delta, Iceberg and Spark that are not understood of the metastore's tables: none is passed by in silence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from hive_acid.errors import SqlError, UnsupportedTableError
from hive_acid.spark import EnabledSession


def rows(frame: DataFrame) -> Any:
    return sorted(map(tuple, frame.collect()), key=str)


def test_a_reader_passes_no_option_by(numbers: EnabledSession, spark: SparkSession) -> None:
    """By some of them Delta and Iceberg read other rows: those of now are none of those that were asked for."""
    reads: list[tuple[str, Callable[[], DataFrame]]] = [
        ("option versionAsOf", lambda: spark.read.option("versionAsOf", 1).table("d.t")),
        ("option timestampAsOf", lambda: spark.read.options(timestampAsOf="2020-01-01").table("d.t")),
        ("option snapshot-id", lambda: spark.read.option("snapshot-id", 1).format("hive_acid").load("d.t")),
        ("option versionAsOf", lambda: spark.read.format("hive_acid").load("d.t", versionAsOf=1)),
        ("a schema", lambda: spark.read.schema("id string").table("d.t")),
        ("a schema", lambda: spark.read.load("d.t", "hive_acid", "id string")),
    ]
    for words, read in reads:
        with pytest.raises(UnsupportedTableError, match=rf"d\.t is read without {words}.*acid\.snapshot"):
            read()
    assert spark.read.table("d.t").count() == spark.read.format("hive_acid").load("d.t").count() == 3


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("SELECT * FROM d.t@v1", "AS OF is not supported"),
        ("SELECT * FROM IDENTIFIER('d.t')", "IDENTIFIER"),
        ("SELECT * FROM IDENTIFIER('d' || '.t') WHERE id = 1", "IDENTIFIER"),
        ("EXECUTE IMMEDIATE 'SELECT * FROM d.t WHERE id = ?' USING 1", "EXECUTE is no statement here"),
        ("UNDROP TABLE d.t", "undrop_table"),
        ("CREATE TABLE d.`we.ird` (id int)", "`we.ird` is no table's name"),
    ],
)
def test_what_is_refused_says_why(numbers: EnabledSession, spark: SparkSession, statement: str, words: str) -> None:
    with pytest.raises(SqlError, match=words):
        spark.sql(statement)


def test_names_by_texts_of_other_tables_are_sparks(numbers: EnabledSession, spark: SparkSession) -> None:
    spark.range(2).createOrReplaceTempView("seen")
    assert spark.sql("SELECT * FROM IDENTIFIER('seen')").count() == 2
    assert spark.sql("EXECUTE IMMEDIATE 'SELECT count(*) FROM seen'").collect()[0][0] == 2
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM unseen")


def test_a_writer_names_the_word_for_some_rows(numbers: EnabledSession, spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, 1)], "id int, n int")
    with pytest.raises(UnsupportedTableError, match=r"replacewhere.*overwrite\(condition\)"):
        frame.write.option("replaceWhere", "id = 1").mode("overwrite").saveAsTable("d.t")


def test_partitions_are_looked_for_by_the_catalog_as_by_msck(numbers: EnabledSession, spark: SparkSession) -> None:
    spark.sql(
        "CREATE TABLE d.plain (id int) PARTITIONED BY (k int) STORED AS ORC TBLPROPERTIES ('transactional'='false')"
    )
    at = numbers.connection.table("d", "plain").location
    spark.sql("SELECT 7 AS id").write.orc(f"{at}/k=1")
    assert spark.table("d.plain").count() == 0
    spark.catalog.recoverPartitions("d.plain")
    assert rows(spark.table("d.plain")) == [(7, 1)]


def test_columns_of_a_source_may_be_called_by_its_full_name(numbers: EnabledSession, spark: SparkSession) -> None:
    """As in a SELECT; a subquery's table of that name hides it."""
    spark.sql("CREATE TABLE d.s (id int, n int)")
    spark.sql("INSERT INTO d.s VALUES (2, 7), (9, 90)")
    spark.sql(
        "MERGE INTO d.t USING d.s ON d.t.id = d.s.id WHEN MATCHED AND d.s.n = 7 THEN UPDATE SET n = d.s.n + d.t.n "
        "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (D.S.id, `d`.`s`.n)"
    )
    assert rows(spark.table("d.t")) == [(1, 10), (2, 27), (3, 30), (9, 90)]
    spark.sql("UPDATE d.t SET n = d.s.n FROM d.s WHERE d.s.id = d.t.id AND d.s.id = 2")
    spark.sql(
        "DELETE FROM d.t USING d.s WHERE t.id = d.s.id AND d.s.n = 90 AND EXISTS "
        "(SELECT 1 FROM d.s WHERE d.s.id = t.id)"
    )
    assert rows(spark.table("d.t")) == [(1, 10), (2, 7), (3, 30)]
    spark.sql("UPDATE d.t SET n = (SELECT max(d.s.n) FROM d.s) FROM d.s AS s WHERE s.id = t.id")
    assert rows(spark.table("d.t")) == [(1, 10), (2, 90), (3, 30)]
