"""What only Spark's own words can say of the metastore's tables, and what they leave to Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.errors import AlreadyExistsError, ColumnError, NoSuchObjectError, UnsupportedTableError
from hive_acid.spark import EnabledSession
from tests.spark.conftest import OVER_CONNECT

ALL = [(1, 10), (2, 20), (3, 30)]


def rows(frame: DataFrame) -> Any:
    return sorted(tuple(row) for row in frame.collect())


def pairs(spark: SparkSession, *given: Any) -> DataFrame:
    return spark.createDataFrame(list(given), "id int, n int")


def test_modes_of_save_as_table(numbers: EnabledSession, spark: SparkSession) -> None:
    new = pairs(spark, (9, 90))
    with pytest.raises(AlreadyExistsError, match="adds to its rows"):
        new.write.saveAsTable("d.t")
    new.write.mode("ignore").saveAsTable("d.t")
    assert rows(spark.table("d.t")) == ALL
    new.write.saveAsTable("d.t", mode="append")
    assert rows(spark.table("d.t")) == [*ALL, (9, 90)]
    new.write.mode("overwrite").saveAsTable("d.t")
    assert rows(spark.table("d.t")) == [(9, 90)]
    new.write.format("hive_acid").mode("append").save("d.t")
    assert rows(spark.table("d.t")) == [(9, 90), (9, 90)]
    with pytest.raises((PySparkException, ValueError)):  # classic Spark says it, and ours over Connect
        new.write.mode("sometimes").saveAsTable("d.t")
    with pytest.raises(ColumnError, match="partitioned by nothing, and not by id"):
        new.write.mode("append").partitionBy("id").saveAsTable("d.t")
    with pytest.raises(UnsupportedTableError, match="option speed means nothing"):
        new.write.mode("append").option("speed", 1).saveAsTable("d.t")
    with pytest.raises(UnsupportedTableError, match="not sorted"):
        new.write.bucketBy(2, "id").sortBy("id").saveAsTable("d.sorted")


def test_overwrite_replaces_all_partitions(numbers: EnabledSession, spark: SparkSession) -> None:
    new = spark.createDataFrame([(9, 2)], "id int, day int")
    new.write.mode("overwrite").saveAsTable("d.p")
    assert rows(spark.table("d.p")) == [(9, 2)]
    new.write.partitionBy("day").saveAsTable("d.grows", mode="errorifexists")
    numbers.create_table(
        "d.only",
        {"id": "int", "day": "int"},
        partitioned_by=["day"],
        properties={"transactional_properties": "insert_only"},
    )
    new.write.mode("append").saveAsTable("d.only")
    with pytest.raises(UnsupportedTableError, match="insert-only and has partitions"):
        new.write.mode("overwrite").saveAsTable("d.only")
    assert rows(spark.table("d.only")) == [(9, 2)]


def test_insert_into_takes_places(numbers: EnabledSession, spark: SparkSession) -> None:
    other = spark.createDataFrame([(4, 40)], "a int, b int")
    other.write.insertInto("d.t")
    assert rows(spark.table("d.t")) == [*ALL, (4, 40)]
    other.write.mode("overwrite").insertInto("d.t")
    assert rows(spark.table("d.t")) == [(4, 40)]
    with pytest.raises(ColumnError):
        other.select("a").write.insertInto("d.t")
    with pytest.raises(ColumnError, match="leave partitionBy out"):
        other.write.partitionBy("a").insertInto("d.t")


def test_tables_with_all_words(numbers: EnabledSession, spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(1, 10, 1)], "id int, n int, day int")
    frame.writeTo("d.all").using("hive_acid").partitionedBy("day").tableProperty("owner.team", "a").create()
    table = numbers.connection.table("d", "all")
    assert ([key.name for key in table.partition_keys], table.parameters["owner.team"]) == (["day"], "a")
    frame.write.bucketBy(2, "id").option("compression", "zlib").option("path", str(tmp_path / "x")).saveAsTable("d.b")
    table = numbers.connection.table("d", "b")
    assert (table.bucket_columns, table.buckets) == (("id",), 2)
    assert table.parameters["orc.compress"] == "ZLIB"
    assert table.location.endswith("/x")
    with pytest.raises(ColumnError, match="not by expressions"):
        frame.writeTo("d.x").partitionedBy(F.partitioning.years("id")).create()


def test_a_table_is_replaced(numbers: EnabledSession, spark: SparkSession) -> None:
    before = spark.table("d.t")
    table = numbers.connection.table("d", "t")
    pairs(spark, (7, 70)).writeTo("d.t").tableProperty("k", "v").createOrReplace()
    now = numbers.connection.table("d", "t")
    assert (now.id, now.parameters["k"], rows(spark.table("d.t"))) == (table.id, "v", [(7, 70)])
    assert rows(before) == ALL
    spark.table("d.t").selectExpr("string(n) AS n", "id + 1L AS more", "id").writeTo("d.t").createOrReplace()
    assert rows(spark.table("d.t")) == [("70", 8, 7)]
    assert rows(before) == ALL
    with pytest.raises(ColumnError, match="overwriteSchema"):
        pairs(spark, (7, 70)).write.mode("overwrite").saveAsTable("d.t")
    pairs(spark, (7, 70)).write.mode("overwrite").option("overwriteSchema", "true").saveAsTable("d.t")
    assert (rows(spark.table("d.t")), numbers.connection.table("d", "t").id) == ([(7, 70)], table.id)
    with pytest.raises(UnsupportedTableError, match="drop it, and create it anew"):
        spark.table("d.t").writeTo("d.t").tableProperty("transactional_properties", "insert_only").createOrReplace()
    failing = spark.range(2).select(F.raise_error(F.lit("no")).cast("int").alias("id"), F.lit(1).alias("n"))
    with pytest.raises(Exception, match="no"):
        failing.writeTo("d.t").createOrReplace()
    assert rows(spark.table("d.t")) == [(7, 70)]
    assert numbers.connection.call("get_tables", "d", "*") == ["p", "t"]
    by_day = spark.createDataFrame([(5, 5)], "id int, day int")
    by_day.writeTo("d.p").partitionedBy("day").replace()
    assert rows(spark.table("d.p")) == [(5, 5)]
    with pytest.raises(NoSuchObjectError):
        failing.writeTo("d.nothing").replace()
    pairs(spark, (1, 1)).writeTo("d.made").createOrReplace()
    assert rows(spark.table("d.made")) == [(1, 1)]


def test_a_table_is_replaced_by_one_with_other_partition_columns(
    numbers: EnabledSession, spark: SparkSession, tmp_path: Path
) -> None:
    before = spark.table("d.t")

    def check(*keys: str) -> None:
        assert sorted(map(sorted, rows(spark.table("d.t")))) == [[1, 10], [2, 20], [3, 30]]
        assert [key.name for key in numbers.connection.table("d", "t").partition_keys] == list(keys)

    spark.table("d.t").writeTo("d.t").partitionedBy("n").createOrReplace()
    check("n")
    with pytest.raises(ColumnError, match=r"partitioned by n, and not by id.*overwriteSchema"):
        spark.table("d.t").write.mode("overwrite").partitionBy("id").saveAsTable("d.t")
    overwriting = spark.table("d.t").write.mode("overwrite").option("overwriteSchema", "true")
    overwriting.partitionBy("id").saveAsTable("d.t")
    check("id")
    spark.table("d.t").write.mode("overwrite").option("overwriteSchema", "true").saveAsTable("d.t")
    check("id")
    spark.table("d.t").writeTo("d.t").replace()
    check()
    spark.sql("CREATE OR REPLACE TABLE d.t PARTITIONED BY (id) AS SELECT * FROM d.t")
    check("id")
    spark.table("d.t").writeTo("d.t").option("path", str(tmp_path / "elsewhere")).createOrReplace()
    check()
    assert rows(before) == ALL
    assert numbers.connection.call("get_tables", "d", "*") == ["p", "t"]


def test_what_is_sparks(numbers: EnabledSession, spark: SparkSession, tmp_path: Path) -> None:
    own = pairs(spark, (1, 1))
    try:
        own.write.format("parquet").saveAsTable("own")
        own.write.mode("append").saveAsTable("own")
        own.write.insertInto("own")
        assert rows(spark.table("own")) == [(1, 1)] * 3
        assert not numbers.connection.call("get_tables", "default", "own")
        spark.table("d.t").write.mode("append").insertInto("own")
        assert spark.table("own").count() == 6
        spark.table("d.t").write.parquet(str(tmp_path / "files"))
        assert rows(spark.read.parquet(str(tmp_path / "files"))) == ALL
        with pytest.raises(AnalysisException):
            own.writeTo("d.nothing").append()
        with pytest.raises(AnalysisException):
            own.mergeInto("d.nothing", F.expr("true")).whenMatched().delete().merge()
    finally:
        spark.sql("DROP TABLE own")
    own.write.saveAsTable("ours")
    assert numbers.connection.call("get_tables", "default", "ours")


def test_merge_in_sparks_words(numbers: EnabledSession, spark: SparkSession) -> None:
    source = pairs(spark, (1, 11), (4, 44))
    (
        source.mergeInto("d.t", source.id == F.col("t.id"))
        .whenMatched()
        .updateAll()
        .whenNotMatched(source.n > 40)
        .insert({"id": source.id, "n": F.lit(1)})
        .whenNotMatchedBySource(F.col("t.id") == 2)
        .delete()
        .merge()
    )
    assert rows(spark.table("d.t")) == [(1, 11), (3, 30), (4, 1)]
    wider = spark.createDataFrame([(1, 0, "a")], "id int, n int, name string").alias("new")
    merge = wider.mergeInto("d.t", F.expr("t.id = new.id")).withSchemaEvolution().whenMatched().updateAll()
    merge.merge()
    assert rows(spark.table("d.t").where("id = 1")) == [(1, 0, "a")]
    with pytest.raises(UnsupportedTableError, match="use update"):
        source.mergeInto("d.t", F.expr("true")).whenNotMatchedBySource().updateAll()


def test_a_stream_to_a_table(numbers: EnabledSession, spark: SparkSession, tmp_path: Path) -> None:
    pairs(spark, (7, 70)).write.parquet(str(tmp_path / "in/a"))

    def run(name: str, **options: Any) -> None:
        stream = (
            spark.readStream.schema("id int, n int").option("recursiveFileLookup", "true").parquet(str(tmp_path / "in"))
        )
        query = stream.writeStream.option("checkpointLocation", str(tmp_path / name)).trigger(availableNow=True)
        query.toTable("d.t", **options).awaitTermination()

    run("first")
    run("first")
    assert rows(spark.table("d.t")) == [*ALL, (7, 70)]
    pairs(spark, (8, 80)).write.parquet(str(tmp_path / "in/b"))
    run("first")
    assert rows(spark.table("d.t")) == [*ALL, (7, 70), (8, 80)]
    run("named", queryName="again")
    assert spark.table("d.t").count() == 7
    with pytest.raises(UnsupportedTableError, match="does not write in mode complete"):
        run("mode", outputMode="complete")
    stream = spark.readStream.schema("id int, n int").parquet(str(tmp_path / "in/a"))
    with pytest.raises(ValueError, match="known by its checkpoint"):
        stream.writeStream.toTable("d.t")
    made = stream.writeStream.option("checkpointLocation", str(tmp_path / "new")).trigger(availableNow=True)
    made.toTable("d.made", partitionBy="n").awaitTermination()
    assert numbers.table("d.made").partitions() == ["n=70"]


@pytest.mark.skipif(OVER_CONNECT, reason="over Connect the function runs in a process of the server")
def test_a_batch_knows_the_tables(numbers: EnabledSession, spark: SparkSession, tmp_path: Path) -> None:
    pairs(spark, (1, 1), (7, 70)).write.parquet(str(tmp_path / "in"))
    spark.sql("USE d")
    seen: list[Any] = []

    def write(batch: DataFrame, number: int) -> None:
        batch.createOrReplaceTempView("batch")
        batch.sparkSession.sql(
            "MERGE INTO t USING batch AS b ON t.id = b.id WHEN MATCHED THEN UPDATE SET n = t.n + b.n "
            "WHEN NOT MATCHED THEN INSERT *"
        )
        batch.where("id = 7").selectExpr("id + 1 AS id", "n").write.mode("append").saveAsTable("d.t")
        seen.append((number, batch.sparkSession.table("d.t").count(), batch.sparkSession is not spark))

    try:
        stream = spark.readStream.schema("id int, n int").parquet(str(tmp_path / "in")).writeStream
        query = stream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True).foreachBatch(write)
        query.start().awaitTermination()
    finally:
        spark.sql("USE default")
    assert seen == [(0, 5, True)]
    assert rows(spark.table("d.t")) == [(1, 11), (2, 20), (3, 30), (7, 70), (8, 70)]
    assert hive_acid.spark.enable(spark) is numbers


def test_classes_of_pyspark_are_as_before(numbers: EnabledSession, spark: SparkSession) -> None:
    kind = type(spark.range(1))
    frame = spark.range(1)
    joined = {name: vars(kind)[name] for name in ("write", "writeTo", "mergeInto", "writeStream")}
    other = spark.newSession().range(1)
    assert type(other.write).__mro__[0].__module__.startswith("pyspark")
    assert type(other.write).__mro__[1].__name__ != "JoinedWriter"
    numbers.disable()
    for name, method in joined.items():
        assert vars(kind)[name] is not method
    assert type(frame.write).__mro__[1].__name__ != "JoinedWriter"
