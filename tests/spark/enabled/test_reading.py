"""What Spark's own words read while a session is joined: the metastore's tables, and Spark's own beside them."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from hive_acid.errors import NoSuchObjectError, OtherDatabaseError, SqlError
from hive_acid.spark import EnabledSession

ALL = [(1, 10), (2, 20), (3, 30)]


def rows(frame: DataFrame) -> Any:
    return sorted(tuple(row) for row in frame.collect())


READS = {
    "acid.table": lambda acid, spark: acid.table("d.t"),
    "acid.sql": lambda acid, spark: acid.sql("SELECT * FROM d.t"),
    "spark.sql": lambda acid, spark: spark.sql("SELECT * FROM d.t"),
    "session catalog": lambda acid, spark: spark.sql("SELECT * FROM spark_catalog.d.t"),
    "spark.table": lambda acid, spark: spark.table("d.t"),
    "quoted": lambda acid, spark: spark.table("`d`.`T`"),
    "read.table": lambda acid, spark: spark.read.table("d.t"),
    "format.table": lambda acid, spark: spark.read.format("hive_acid").table("d.t"),
    "format.load": lambda acid, spark: spark.read.format("hive_acid").load("d.t"),
    "load(format)": lambda acid, spark: spark.read.load("d.t", format="hive_acid"),
    "of a frame's session": lambda acid, spark: acid.table("d.p").filter("id = 1").sparkSession.table("d.t"),
    "TABLE": lambda acid, spark: spark.sql("TABLE d.t"),
}


@pytest.mark.parametrize("way", READS)
def test_ways_to_read(numbers: EnabledSession, spark: SparkSession, way: str) -> None:
    frame = READS[way](numbers, spark)
    numbers.delete("d.t", "id = 1")
    assert rows(frame) == ALL
    assert rows(READS[way](numbers, spark)) == ALL[1:]


def test_what_is_of_both(numbers: EnabledSession, spark: SparkSession) -> None:
    spark.createDataFrame([(1, "a"), (4, "d")], "id int, name string").createOrReplaceTempView("names")
    spark.sql("CREATE TABLE plain_names (id int, name string) USING parquet")
    try:
        spark.sql("INSERT INTO plain_names SELECT * FROM names")
        assert rows(spark.sql("SELECT n, name FROM d.t JOIN names USING (id)")) == [(10, "a")]
        assert rows(spark.sql("SELECT n, p.name FROM plain_names p JOIN d.t ON p.id = t.id")) == [(10, "a")]
        assert rows(spark.table("plain_names")) == [(1, "a"), (4, "d")]
        assert spark.catalog.tableExists("plain_names")
        assert not spark.catalog.tableExists("d.plain_names")
        spark.sql("INSERT INTO plain_names SELECT id, string(n) FROM d.t WHERE id = 2")
        assert rows(spark.table("plain_names")) == [(1, "a"), (2, "20"), (4, "d")]
    finally:
        spark.sql("DROP TABLE plain_names")
    with pytest.raises(AnalysisException, match="NOT_FOUND"):
        spark.table("plain_names").collect()


def test_a_temporary_view_goes_before(numbers: EnabledSession, spark: SparkSession) -> None:
    spark.catalog.setCurrentDatabase("d")
    try:
        assert spark.catalog.currentDatabase() == "d"
        assert rows(spark.table("t")) == rows(spark.sql("FROM t SELECT *")) == ALL
        spark.range(1).createOrReplaceTempView("T")
        assert rows(spark.table("t")) == rows(spark.sql("SELECT * FROM t")) == [(0,)]
        assert rows(spark.table("d.t")) == ALL
        spark.catalog.dropTempView("t")
        assert rows(spark.table("t")) == ALL
        assert rows(spark.sql("WITH t AS (SELECT 7 AS id) SELECT id FROM t")) == [(7,)]
        assert rows(spark.sql("SELECT t.id FROM (SELECT 8 AS id) AS t")) == [(8,)]
    finally:
        spark.catalog.setCurrentDatabase("default")


def test_no_table_of_another_database_is_read(numbers: EnabledSession, spark: SparkSession) -> None:
    """Spark has no database ``d``: a name of one part is none of those that it would look for in its own."""
    spark.sql("CREATE TABLE other (id int) USING parquet")
    spark.sql("USE d")
    try:
        for read in (lambda: spark.table("other"), lambda: spark.sql("SELECT * FROM other")):
            with pytest.raises(AnalysisException, match="NOT_FOUND"):
                read().collect()
        assert not spark.catalog.tableExists("other")
        with pytest.raises(OtherDatabaseError, match=r"of Spark's own tables give the database, too, as default.other"):
            spark.sql("INSERT INTO other VALUES (1)")
        assert rows(spark.sql("SELECT count(*) FROM default.other, t")) == [(0,)]
        spark.sql("USE default")
        assert rows(spark.sql("SELECT * FROM other")) == []
    finally:
        spark.sql("USE default")
        spark.sql("DROP TABLE default.other")


def test_a_database_of_sparks(numbers: EnabledSession, spark: SparkSession) -> None:
    numbers.create_table("default.x", {"id": "int"})
    numbers.spark.sql("CREATE DATABASE sparks")
    try:
        spark.sql("USE sparks")
        assert spark.catalog.currentDatabase() == "sparks"
        spark.sql("CREATE TABLE x USING parquet AS SELECT 5 AS id")
        assert rows(spark.table("x")) == rows(spark.sql("SELECT * FROM x")) == [(5,)]
        assert rows(spark.sql("SELECT * FROM default.x")) == []
    finally:
        spark.sql("USE default")
        spark.sql("DROP DATABASE sparks CASCADE")


def test_arguments_and_frames(numbers: EnabledSession, spark: SparkSession) -> None:
    own = spark.createDataFrame([(1,), (3,)], "k int")
    assert rows(spark.sql("SELECT n FROM d.t WHERE id = :id", {"id": 2})) == [(20,)]
    assert rows(spark.sql("SELECT n FROM d.t WHERE id = ?", [2])) == [(20,)]
    assert rows(spark.sql("SELECT n FROM d.t JOIN {own} ON id = k", own=own)) == [(10,), (30,)]
    assert rows(spark.sql("SELECT n FROM d.t JOIN {own} AS o ON id = o.k WHERE n > {least}", own=own, least=10)) == [
        (30,)
    ]
    assert rows(spark.sql("SELECT k FROM {own} WHERE {own[k]} > :k", {"k": 1}, own=own)) == [(3,)]
    assert rows(spark.sql("SELECT {{1}} FROM {a}".replace("{{1}}", "'{{'"), a=own)) == [("{",), ("{",)]
    spark.sql("DELETE FROM d.t WHERE id IN (SELECT k FROM {own})", own=own)
    assert rows(spark.table("d.t")) == [(2, 20)]
    spark.sql("INSERT INTO d.t SELECT k, :n FROM {own}", {"n": 7}, own=own)
    assert rows(spark.table("d.t")) == [(1, 7), (2, 20), (3, 7)]
    frame = spark.sql("SELECT * FROM {t}", t=spark.table("d.t"))
    numbers.delete("d.t")
    assert rows(frame) == [(1, 7), (2, 20), (3, 7)]
    assert not [one for one in spark.catalog.listTables() if one.isTemporary]


def test_errors_are_sparks_or_ours(numbers: EnabledSession, spark: SparkSession) -> None:
    with pytest.raises(ParseException):
        spark.sql("SELEC 1")
    with pytest.raises(AnalysisException, match="NOT_FOUND"):
        spark.sql("SELECT * FROM d.nothing").collect()
    with pytest.raises(AnalysisException):
        spark.sql("USE nowhere")
    with pytest.raises(AnalysisException):
        spark.sql("DROP DATABASE nowhere")
    with pytest.raises(AnalysisException):
        spark.table("d.nothing").collect()
    with pytest.raises(SqlError, match="AS OF"):
        spark.sql("SELECT * FROM d.t VERSION AS OF 1")
    with pytest.raises(NoSuchObjectError, match=r"no table d\.nothing"):
        spark.read.format("hive_acid").load("d.nothing")
    with pytest.raises(ValueError, match="a table has a name"):
        spark.read.format("hive_acid").load()
    with pytest.raises(NoSuchObjectError, match=r"no table d\.nothing"):
        spark.readStream.format("hive_acid").load("d.nothing")
    spark.sql("SET spark.sql.shuffle.partitions").collect()
    assert rows(spark.sql("SHOW FUNCTIONS LIKE 'coalesce'")) == [("coalesce",)]


def test_one_snapshot_in_a_block(numbers: EnabledSession, spark: SparkSession) -> None:
    with numbers.transaction():
        spark.sql("INSERT INTO d.t VALUES (4, 40)")
        assert spark.table("d.t").count() == 4
        spark.sql("DELETE FROM d.t WHERE id = 4")
    assert rows(spark.table("d.t")) == ALL
    with numbers.snapshot():
        before = spark.table("d.t")
        assert rows(spark.sql("SELECT * FROM d.t")) == rows(before)


def test_a_view_keeps_its_snapshot(numbers: EnabledSession, spark: SparkSession) -> None:
    spark.table("d.t").where("id > 1").createOrReplaceTempView("kept")
    spark.sql("DELETE FROM d.t")
    numbers.concatenate("d.t")
    assert rows(spark.table("kept")) == rows(spark.sql("SELECT * FROM kept")) == ALL[1:]
    assert spark.catalog.getTable("kept").isTemporary
    assert spark.catalog.dropTempView("kept")


@pytest.mark.parametrize(
    ("made", "name"),
    [
        ("TEMPORARY VIEW v", "v"),
        ("OR REPLACE TEMP VIEW `V`", "v"),
        ("OR REPLACE GLOBAL TEMPORARY VIEW v", "global_temp.v"),
        ("TEMP VIEW v (A, b)", "v"),
    ],
)
def test_a_view_of_sql_keeps_its_snapshot(numbers: EnabledSession, spark: SparkSession, made: str, name: str) -> None:
    spark.sql(f"CREATE {made} AS SELECT * FROM d.t WHERE id > 1")
    try:
        spark.sql("DELETE FROM d.t")
        assert rows(spark.sql(f"SELECT * FROM {name}")) == rows(spark.table(name)) == ALL[1:]
        if "OR REPLACE" not in made:
            with pytest.raises(AnalysisException, match="ALREADY_EXISTS"):
                spark.sql(f"CREATE {made} AS SELECT * FROM d.t")
    finally:
        spark.sql(f"DROP VIEW {name}")


def test_a_view_that_stays_is_the_metastores(numbers: EnabledSession, spark: SparkSession) -> None:
    spark.sql("CREATE VIEW d.stays (a, b) COMMENT 'two' AS SELECT * FROM d.t WHERE id > 1")
    kept = spark.table("d.stays")
    for read in (spark.sql("SELECT * FROM d.stays"), kept, spark.read.table("d.stays"), numbers.table("d.stays")):
        assert (read.columns, rows(read)) == (["a", "b"], ALL[1:])
    assert spark.catalog.getTable("d.stays").tableType == "VIEW"
    assert spark.catalog.tableExists("d.stays")
    spark.sql("DELETE FROM d.t WHERE id > 1")
    assert rows(kept) == ALL[1:]
    assert spark.table("d.stays").isEmpty()
    spark.range(1).createOrReplaceTempView("here")
    with pytest.raises(SqlError, match="here is not the metastore's, whose tables alone"):
        spark.sql("CREATE VIEW d.both AS SELECT here.id FROM d.t, here")
    with pytest.raises(SqlError, match=r"d\.stays is a view"):
        spark.range(1).selectExpr("id AS a", "'' AS b").writeTo("d.stays").append()
    spark.sql("DROP VIEW d.stays")
    assert not spark.catalog.tableExists("d.stays")


def test_the_catalogue(numbers: EnabledSession, spark: SparkSession) -> None:
    catalog = spark.catalog
    spark.range(1).createOrReplaceTempView("view")
    assert {"default", "d"} <= {one.name for one in catalog.listDatabases()}
    assert [one.name for one in catalog.listDatabases("d*") if one.name == "d"] == ["d"]
    assert catalog.databaseExists("d")
    assert not catalog.databaseExists("e")
    assert catalog.getDatabase("d").name == "d"
    assert [(one.name, one.isTemporary) for one in catalog.listTables("d")] == [
        ("p", False),
        ("t", False),
        ("view", True),
    ]
    assert [one.name for one in catalog.listTables("d", "t*")] == ["t"]
    assert ("view", True) in [(one.name, one.isTemporary) for one in catalog.listTables()]
    found = catalog.getTable("d.t")
    assert (found.name, found.catalog, found.namespace, found.tableType) == ("t", "spark_catalog", ["d"], "MANAGED")
    assert catalog.tableExists("d.t")
    with pytest.warns(FutureWarning):
        assert catalog.tableExists("t", "d")
    assert not catalog.tableExists("d.x")
    assert catalog.tableExists("view")
    assert [(one.name, one.dataType, one.isPartition) for one in catalog.listColumns("d.p")] == [
        ("id", "int", False),
        ("day", "int", True),
    ]
    assert [one.name for one in catalog.listColumns("view")] == ["id"]
    made = catalog.createTable("d.made", schema=spark.table("d.t").schema, description="of rows")
    assert rows(made) == []
    assert catalog.getTable("d.made").description == "of rows"
    with pytest.raises(AnalysisException):
        catalog.getTable("d.x")
    with pytest.raises(AnalysisException):
        catalog.setCurrentDatabase("e")
    assert catalog.currentDatabase() == "default"


def test_what_is_cached_is_of_its_snapshot(numbers: EnabledSession, spark: SparkSession) -> None:
    catalog = spark.catalog
    assert not catalog.isCached("d.t")
    catalog.cacheTable("d.t")
    assert catalog.isCached("d.t")
    assert rows(spark.table("d.t")) == ALL
    spark.sql("DELETE FROM d.t WHERE id = 1")
    assert rows(spark.table("d.t")) == ALL[1:]
    catalog.refreshTable("d.t")
    assert rows(spark.table("d.t")) == ALL[1:]
    catalog.uncacheTable("d.t")
    assert not catalog.isCached("d.t")
    catalog.cacheTable("d.t")
    catalog.clearCache()
    assert not catalog.isCached("d.t")


def test_one_source_for_several_tables_in_a_database_that_spark_does_not_have(
    numbers: EnabledSession, spark: SparkSession
) -> None:
    spark.sql("USE d")
    try:
        spark.sql("FROM t INSERT INTO p SELECT id, 7 WHERE id = 1 INSERT INTO t SELECT id + 10, n WHERE id = 3")
        assert "INSERT into d.p" in spark.sql("EXPLAIN FROM t INSERT INTO p SELECT id, 8").collect()[0].plan
        assert rows(spark.sql("SELECT * FROM p WHERE day = 7")) == [(1, 7)]
        assert rows(spark.table("t")) == [*ALL, (13, 30)]
    finally:
        spark.sql("USE default")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CREATE TABLE d.x (id int) STORED BY ICEBERG", "STORED BY: tables of other systems"),
        ("CREATE TABLE d.x (id int) ROW FORMAT DELIMITED", "full-ACID tables are STORED AS ORC"),
        ("CREATE SCHEDULED QUERY q EVERY 1 DAY AS SELECT 1", "CREATE SCHEDULED"),
        ("SHOW PROCESSLIST", "SHOW PROCESSLIST: SHOW TRANSACTIONS"),
        ("SET ROLE nobody", "SET ROLE: all roles"),
        ("REPL DUMP nowhere", "REPL is no statement here"),
        ("COMMIT AND CHAIN", "COMMIT AND CHAIN is not done"),
        ("EXPLAIN ALTER MATERIALIZED VIEW v REBUILD", "materialized views are not made here"),
        ("EXPLAIN CBO SELECT 1", "EXPLAIN CBO tells of Hive's planner"),
        ("ALTER TABLE nothere CLUSTERED BY (id) INTO 2 BUCKETS", "the metastore has no table nothere, and Spark does"),
    ],
)
def test_what_neither_knows_is_refused_by_its_name(
    numbers: EnabledSession, spark: SparkSession, text: str, words: str
) -> None:
    with pytest.raises(SqlError, match=words):
        spark.sql(text)
