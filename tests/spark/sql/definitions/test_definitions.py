"""CREATE, ALTER, DROP, SHOW and DESCRIBE: statements that make, change and show what there is."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from hive_acid.errors import (
    AlreadyExistsError,
    ColumnError,
    HiveAcidError,
    InvalidOperationError,
    NoSuchObjectError,
    SqlError,
)
from hive_acid.spark import AcidSession
from hive_acid.wire import ttypes
from tests.spark.checker import check_table, location_of


def rows(frame: Any) -> Any:
    return sorted(tuple(row) for row in frame.collect())


def test_a_table_is_made_as_it_says(acid: AcidSession, spark: SparkSession, tmp_path: Path) -> None:
    acid.sql("""
        CREATE TABLE IF NOT EXISTS d.`t` (  -- a comment
            id INT COMMENT 'it''s; the key', `a col` decimal(10, 2), m map<string, array<struct<a: int, b: varchar(3)>>>
            , s STRUCT<`A b` : INT, c:array< struct<`d` :int > >>
        )
        COMMENT "all of it"
        PARTITIONED BY (day date COMMENT 'of sale', `kind` STRING)
        CLUSTERED BY (id) INTO 2 BUCKETS
        STORED AS ORC
        TBLPROPERTIES ('a.b' = 'c', compactor.x = 1)
    """)
    table = acid.connection.table("d", "t")
    assert [(c.name, c.type, c.comment) for c in (*table.columns, *table.partition_keys)] == [
        ("id", "int", "it's; the key"),
        ("a col", "decimal(10,2)", None),
        ("m", "map<string,array<struct<a:int,b:varchar(3)>>>", None),
        ("s", "struct<a b:int,c:array<struct<d:int>>>", None),
        ("day", "date", "of sale"),
        ("kind", "string", None),
    ]
    assert table.is_full_acid
    assert (table.bucket_columns, table.buckets) == (("id",), 2)
    assert table.parameters.items() >= {"comment": "all of it", "a.b": "c", "compactor.x": "1"}.items()
    (text,) = acid.sql("SHOW CREATE TABLE d.t").collect()[0]
    acid.sql(text.replace("`d`.`t`", "d.again").replace(table.location, f"file:{tmp_path}/again"))
    again = acid.connection.table("d", "again")
    assert (again.columns, again.partition_keys, again.buckets) == (table.columns, table.partition_keys, 2)
    acid.sql("CREATE TABLE d.liked LIKE d.t TBLPROPERTIES ('x' = 'y')")
    liked = acid.connection.table("d", "liked")
    assert (liked.columns, liked.bucket_columns, liked.is_full_acid) == (table.columns, ("id",), True)
    acid.sql("CREATE TABLE IF NOT EXISTS d.t (x int)")
    with pytest.raises(AlreadyExistsError):
        acid.sql("CREATE TABLE d.t (x int)")
    acid.sql("CREATE TABLE d.plain (x int, p int) PARTITIONED BY (p) TBLPROPERTIES ('transactional' = 'false')")
    assert not acid.connection.table("d", "plain").is_transactional
    assert [key.name for key in acid.connection.table("d", "plain").partition_keys] == ["p"]


def test_create_table_as(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql("CREATE TABLE d.s AS SELECT int(id) AS id, string(id % 2) AS p FROM range(6)")
    made = acid.sql(
        "CREATE TRANSACTIONAL TABLE d.t PARTITIONED BY (p) TBLPROPERTIES ('k' = 'v') AS SELECT * FROM d.s WHERE id > 1"
    )
    assert made.collect() == [(4, 4)]
    assert rows(acid.table("d.t")) == [(2, "0"), (3, "1"), (4, "0"), (5, "1")]
    assert acid.connection.table("d", "t").parameters["k"] == "v"
    check_table(location_of(acid, "d.t"))
    assert acid.sql("CREATE TABLE IF NOT EXISTS d.t AS SELECT 1 AS x").collect() == [(0, 0)]
    with pytest.raises(AlreadyExistsError):
        acid.sql("CREATE TABLE d.t AS SELECT 1 AS x")
    with pytest.raises(ColumnError, match="from the query"):
        acid.sql("CREATE TABLE d.x (id int) AS SELECT 1 AS id")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CREATE TABLE d.t (id int, UNIQUE (id))", "UNIQUE is stored and not enforced"),
        ("CREATE TABLE d.t (s struct<`a:b`: int>)", "no quotes, so a field cannot be called a:b"),
        ("CREATE TABLE d.t (id int) STORED AS PARQUET", "ORC"),
        ("CREATE TABLE d.t (id int) ROW FORMAT DELIMITED", "full-ACID tables are STORED AS ORC.*TEXTFILE"),
        ("CREATE TABLE d.t (id int) PARTITIONED BY (a int, b)", "not some of each"),
        ("CREATE EXTERNAL TABLE d.t (id int)", "EXTERNAL"),
        ("CREATE TRANSACTIONAL TABLE d.t (id int) TBLPROPERTIES ('transactional'='false')", "leave one"),
        ("CREATE TABLE d.t (id int) TBLPROPERTIES ('a'='1', 'a'='2')", "twice"),
        ("ALTER TABLE d.s ADD COLUMNS (x int) FIRST", "stay in their places"),
        ("ALTER TABLE d.s CHANGE id id bigint AFTER p", "stay in their places"),
        ("ALTER TABLE d.s SET LOCATION 'x'", "SET LOCATION of d.s: rows do not move"),
        ("ALTER TABLE d.s REPLACE COLUMNS (x int)", "REPLACE COLUMNS of d.s: files know columns by their places"),
        ("ALTER TABLE d.s ADD COLUMNS (x int) RESTRICT", "of all partitions"),
        ("ALTER TABLE d.s FREEZE", "of ALTER TABLE"),
        ("ALTER DATABASE d DROP", "SET was expected"),
        ("ALTER DATABASE d SET COLOUR 'x'", "of ALTER DATABASE"),
        ("COMMENT ON COLUMN id IS 'x'", "the table is to be named"),
        ("ALTER TABLE d.s COMPACT 'large'", "give one of minor, major, rebalance"),
        ("DROP TABLE d.s, d.t", "not understood from here"),
    ],
)
def test_what_cannot_be_made_is_refused(acid: AcidSession, text: Any, words: Any) -> None:
    acid.create_table("d.s", {"id": "int"})
    with pytest.raises(SqlError, match=words):
        acid.sql(text)
    assert rows(acid.sql("SHOW TABLES IN d")) == [("s",)]


def test_tables_are_altered(acid: AcidSession, spark: SparkSession) -> None:
    sql = acid.sql
    acid.create_table("d.t", {"id": "int", "name": "string"}, partitioned_by={"p": "int"})
    sql("INSERT INTO d.t VALUES (1, 'a', 1), (2, 'b', 2)")
    sql("ALTER TABLE d.t ADD COLUMNS (x double COMMENT 'new', y array<int>)")
    sql("ALTER TABLE d.t RENAME COLUMN name TO title")
    sql("ALTER TABLE d.t CHANGE COLUMN id key bigint")
    sql("INSERT INTO d.t VALUES (3000000000, 'c', 0.5, array(1), 3)")
    assert rows(sql("SELECT key, title, x, p FROM d.t WHERE p < 3")) == [(1, "a", None, 1), (2, "b", None, 2)]
    assert rows(sql("SHOW COLUMNS IN d.t")) == [("key",), ("p",), ("title",), ("x",), ("y",)]
    sql("ALTER TABLE d.t SET TBLPROPERTIES ('note' = 'x', 'other' = 'y')")
    sql("ALTER TABLE d.t UNSET TBLPROPERTIES ('other')")
    properties = dict(rows(sql("SHOW TBLPROPERTIES d.t")))
    assert properties["note"] == "x"
    assert "other" not in properties
    sql("ALTER TABLE d.t ADD IF NOT EXISTS PARTITION (p = 3) PARTITION (p = 4)")
    sql("ALTER TABLE d.t DROP PARTITION (p = 1), PARTITION (p = 4)")
    assert rows(sql("SHOW PARTITIONS d.t")) == [("p=2",), ("p=3",)]
    assert rows(sql("SHOW PARTITIONS d.t PARTITION (p = 3)")) == [("p=3",)]
    with pytest.raises(NoSuchObjectError):
        sql("ALTER TABLE d.t DROP PARTITION (p = 1)")
    sql("ALTER TABLE d.t DROP IF EXISTS PARTITION (p = 1)")
    sql("TRUNCATE TABLE d.t PARTITION (p = 2)")
    assert rows(sql("SELECT key FROM d.t")) == [(3000000000,)]
    sql("ALTER TABLE d.t RENAME TO d.renamed")
    assert rows(sql("SHOW TABLES IN d LIKE 'ren*'")) == [("renamed",)]
    assert rows(sql("SELECT key FROM d.renamed")) == [(3000000000,)]
    (queued,) = sql("ALTER TABLE d.renamed PARTITION (p = 3) COMPACT 'minor' POOL 'idle'").collect()
    assert (queued.partname, queued.state) == ("p=3", "initiated")
    sql("USE d")
    try:
        (shown,) = sql(
            "SHOW COMPACTIONS `renamed` PARTITION (p = 3) POOL 'idle' ORDER BY starttime DESC LIMIT 1"
        ).collect()
    finally:
        sql("USE default")
    assert (shown.compactionid, shown.type, shown.duration) == (queued.compactionid, "MINOR", None)
    assert [row.state for row in sql("ALTER TABLE d.renamed COMPACT 'major'").collect()] == ["not needed", "not needed"]
    assert [row.status for row in sql(f"ABORT COMPACTIONS {queued.compactionid}").collect()] == ["Success"]
    sql("ANALYZE TABLE d.renamed COMPUTE STATISTICS FOR COLUMNS key")
    sql("DROP TABLE d.renamed")
    sql("DROP TABLE IF EXISTS d.renamed")
    assert rows(sql("SHOW TABLES IN d")) == []


def test_databases_and_what_is_in_them(acid: AcidSession) -> None:
    sql = acid.sql
    sql("CREATE DATABASE IF NOT EXISTS e COMMENT 'second' WITH DBPROPERTIES ('k' = 'v')")
    sql("CREATE SCHEMA IF NOT EXISTS e")
    assert ("e",) in rows(sql("SHOW DATABASES LIKE 'e*'"))
    described = dict(rows(sql("DESCRIBE DATABASE e")))
    assert (described["Comment"], described["Properties"]) == ("second", "(k=v)")
    sql("USE e")
    try:
        sql("CREATE TABLE t (id int COMMENT 'key') PARTITIONED BY (p int)")
        assert rows(sql("SHOW TABLES")) == [("t",)]
        assert sql("DESCRIBE t").collect()[:2] == [("id", "int", "key"), ("p", "int", None)]
        detailed = {row.col_name: row.data_type for row in sql("DESC FORMATTED e.t").collect()}
        assert detailed["Location"].endswith("/t")
        sql("INSERT INTO t VALUES (1, 1)")
        assert sql("SELECT * FROM hive.e.t").count() == 1
        with pytest.raises(InvalidOperationError):
            sql("DROP DATABASE e")
        sql("DROP DATABASE e CASCADE")
    finally:
        sql("USE DATABASE default")
    sql("DROP DATABASE IF EXISTS e")
    with pytest.raises(NoSuchObjectError):
        sql("USE e")


def test_databases_are_altered(acid: AcidSession, tmp_path: Path) -> None:
    sql = acid.sql
    sql(f"CREATE DATABASE e LOCATION '{tmp_path}/e' MANAGEDLOCATION '{tmp_path}/m'")
    sql("ALTER DATABASE e SET DBPROPERTIES ('k' = 'v')")
    sql("ALTER SCHEMA e SET DBPROPERTIES ('l' = 'w')")
    sql("ALTER DATABASE e SET OWNER ROLE `the owners`")
    sql("COMMENT ON DATABASE e IS 'second'")
    found = acid.connection.call("get_database", "e")
    assert (found.description, found.parameters) == ("second", {"k": "v", "l": "w"})
    assert (found.ownerName, found.ownerType) == ("the owners", ttypes.PrincipalType.ROLE)
    assert found.managedLocationUri == f"file:{tmp_path}/m"
    sql("CREATE TABLE e.t (id int)")
    assert acid.connection.table("e", "t").location == f"file:{tmp_path}/m/t"
    sql(f"ALTER DATABASE e SET MANAGEDLOCATION '{tmp_path}/n'")
    sql("CREATE TABLE e.u (id int)")
    assert acid.connection.table("e", "u").location == f"file:{tmp_path}/n/u"
    with pytest.raises(NoSuchObjectError):
        sql("ALTER DATABASE nosuch SET DBPROPERTIES ('k' = 'v')")
    sql("DROP DATABASE e CASCADE")


def test_what_is_said_of_a_table(acid: AcidSession) -> None:
    sql = acid.sql
    acid.create_table("d.t", {"id": "int", "Name": "string"}, partitioned_by={"p": "string"})
    sql("INSERT INTO d.t VALUES (1, 'a', 'x y')")
    sql("COMMENT ON COLUMN d.t.id IS 'a key'")
    assert sql("DESCRIBE d.t ID").collect() == [("col_name", "id"), ("data_type", "int"), ("comment", "a key")]
    assert sql("DESC FORMATTED d.t p").collect()[2] == ("comment", "NULL")
    with pytest.raises(ColumnError, match="no column 'q'"):
        sql("DESCRIBE d.t q")
    said = {row.col_name: row.data_type for row in sql("DESC FORMATTED d.t PARTITION (p = 'x y')").collect()}
    assert said["Partition"] == "p=x y"
    assert said["Location"] == acid.connection.table("d", "t").location, "that of the table comes last"
    assert sql("DESCRIBE d.t PARTITION (p = 'x y')").count() == sql("DESCRIBE d.t").count()
    with pytest.raises(NoSuchObjectError):
        sql("DESCRIBE d.t PARTITION (p = 'z')")
    assert sql("DESCRIBE HISTORY d.t").columns[0] == "write_id"
    sql("CREATE TABLE d.history (id int)")
    sql("USE d")
    try:
        assert sql("DESCRIBE history").collect() == [("id", "int", None)]
        assert sql("SHOW CURRENT DATABASE").collect() == [("hive", "d")]
        assert [row.tableName for row in sql("SHOW TABLE EXTENDED LIKE '*'").collect()] == ["history", "t"]
    finally:
        sql("USE default")
    assert sql("SHOW COLUMNS FROM t IN d").collect() == sql("SHOW COLUMNS IN d.t").collect()
    assert sql("SHOW TBLPROPERTIES d.t ('transactional')").collect() == [("transactional", "true")]
    assert "does not have property: nosuch" in sql("SHOW TBLPROPERTIES d.t ('nosuch')").collect()[0].value
    (row,) = sql("SHOW TABLE EXTENDED IN d LIKE 't' PARTITION (p = 'x y')").collect()
    assert row.information.startswith("Partition: p=x y\nLocation: file:")


@pytest.mark.parametrize(
    "text",
    [
        r"(`a b` int COMMENT 'it''s \\', s struct<x:int>) PARTITIONED BY (p date) STORED AS ORC",
        "(a int, b string) CLUSTERED BY (b) INTO 3 BUCKETS STORED AS ORC COMMENT 'c'",
        "(a int) STORED AS PARQUET TBLPROPERTIES ('transactional_properties' = 'insert_only', 'k' = 'v')",
        "(a int) STORED AS JSONFILE TBLPROPERTIES ('transactional_properties' = 'insert_only')",
        "(a int) STORED AS TEXTFILE TBLPROPERTIES ('transactional' = 'false')",
    ],
)
def test_what_shows_a_table_makes_it_again(acid: AcidSession, text: str) -> None:
    acid.sql(f"CREATE TABLE d.t {text}")
    before = acid.connection.table("d", "t")
    (shown,) = acid.sql("SHOW CREATE TABLE d.t").collect()
    acid.sql("DROP TABLE d.t")
    acid.sql(shown[0])
    after = acid.connection.table("d", "t")
    for name in ("columns", "partition_keys", "bucket_columns", "buckets", "input_format", "output_format", "serde"):
        assert getattr(after, name) == getattr(before, name), name
    times = {"transient_lastDdlTime"}
    assert {key: value for key, value in after.parameters.items() if key not in times} == {
        key: value for key, value in before.parameters.items() if key not in times
    }
    assert acid.sql("SHOW CREATE TABLE d.t").collect() == [shown]


def test_a_table_that_nobody_has_is_told_so(acid: AcidSession, spark: SparkSession) -> None:
    for name in ("d.nothere", "nothere"):
        for text in (
            f"DROP TABLE {name}",
            f"TRUNCATE TABLE {name}",
            f"ALTER TABLE {name} SET TBLPROPERTIES ('a' = 'b')",
        ):
            with pytest.raises(NoSuchObjectError, match=f"neither the metastore nor Spark has a table {name}"):
                acid.sql(text)
    acid.sql("DROP TABLE IF EXISTS nothere")
    spark.sql("CREATE TABLE of_spark (id int) USING parquet")
    try:
        with pytest.raises(AnalysisException, match="`other`"):  # of another table than the statement changes
            acid.sql("INSERT INTO of_spark SELECT * FROM other")
    finally:
        acid.sql("DROP TABLE of_spark")


def test_comments_and_owners(acid: AcidSession) -> None:
    sql = acid.sql
    acid.create_table("d.t", {"id": "int", "name": "string"}, partitioned_by={"p": "int"})
    sql("INSERT INTO d.t VALUES (1, 'a', 1)")
    sql("COMMENT ON TABLE d.t IS 'a table'")
    sql("COMMENT ON COLUMN d.t.name IS 'a name'")
    sql("ALTER TABLE d.t CHANGE id id bigint COMMENT 'a key' CASCADE")
    table = acid.connection.table("d", "t")
    assert table.parameters["comment"] == "a table"
    assert [(one.type, one.comment) for one in table.columns] == [("bigint", "a key"), ("string", "a name")]
    sql("ALTER TABLE d.t ALTER COLUMN name COMMENT 'another'")
    sql("COMMENT ON COLUMN d.t.id IS NULL")
    assert [one.comment for one in acid.connection.table("d", "t").columns] == [None, "another"]
    sql("ALTER TABLE d.t SET OWNER ROLE r")
    wire = acid.connection.wire_table("d", "t")
    assert (wire.owner, wire.ownerType) == ("r", ttypes.PrincipalType.ROLE)
    sql("ALTER TABLE d.t SET OWNER bob")
    assert acid.connection.wire_table("d", "t").ownerType == ttypes.PrincipalType.USER
    sql("ALTER TABLE d.t TOUCH")
    with pytest.raises(ColumnError, match="partition column"):
        sql("COMMENT ON COLUMN d.t.p IS 'x'")
    assert rows(acid.table("d.t")) == [(1, "a", 1)]


def test_partitions_are_renamed(acid: AcidSession) -> None:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "int", "q": "string"})
    acid.sql("INSERT INTO d.t VALUES (1, 1, 'x'), (2, 1, 'y')")
    acid.delete("d.t", "id = 9")
    acid.sql("ALTER TABLE d.t PARTITION (p = 1, q = 'x') RENAME TO PARTITION (q = 'a b/c', p = 7)")
    assert rows(acid.table("d.t")) == [(1, 7, "a b/c"), (2, 1, "y")]
    assert acid.update("d.t", {"id": "10"}, "p = 7") == 1
    with pytest.raises(NoSuchObjectError):
        acid.sql("ALTER TABLE d.t PARTITION (p = 1, q = 'x') RENAME TO PARTITION (p = 8, q = 'x')")
    with pytest.raises(HiveAcidError, match="exists already"):
        acid.sql("ALTER TABLE d.t PARTITION (p = 1, q = 'y') RENAME TO PARTITION (p = 7, q = 'a b/c')")
    assert rows(acid.table("d.t")) == [(2, 1, "y"), (10, 7, "a b/c")]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("int", ["-3", "2", "10", "NULL"]),
        ("string", ["'10'", "'2'", "''", "'a b'", "'Z'", "NULL"]),
        ("date", ["date'1500-01-01'", "date'2024-02-29'", "date'9999-12-31'", "NULL"]),
        ("decimal(5,2)", ["-0.5", "10", "2.25"]),
        ("double", ["-0.0", "0.0", "double('NaN')", "1e300"]),
        ("boolean", ["true", "false", "NULL"]),
        ("char(4)", ["'ab'", "'ab  '", "'abc'", "'b'", "NULL"]),
        ("varchar(4)", ["'ab'", "'ab '", "'abc'", "'b'"]),
    ],
)
def test_partitions_are_dropped_by_comparison(
    acid: AcidSession, spark: SparkSession, kind: str, values: list[str]
) -> None:
    """Those go of which Spark says that the comparison is true, for each sign and value."""
    random = Random(f"drops of {kind}")
    every = [
        (f"{sign} {value}", f"k {sign} {value}") for sign in ("<", "<=", ">", ">=", "<>", "!=") for value in values
    ]
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"k": kind, "l": "int"})
    rows_of = " UNION ALL ".join(f"SELECT {at} id, CAST({value} AS {kind}) k, 1 l" for at, value in enumerate(values))
    table = acid.connection.table("d", "t")
    for said, condition in random.sample(every, 3 if "char" not in kind else len(every)):
        if kind.startswith("char"):  # as Hive names it
            acid.connection.add_partitions(table, {"k=ab  /l=1": f"{table.location}/k=ab  /l=1"})
        acid.sql(f"INSERT OVERWRITE d.t {rows_of}")
        before = acid.table("d.t")
        kept = rows(before.where(f"NOT coalesce({condition}, false)").select("id"))
        acid.sql(f"ALTER TABLE d.t DROP IF EXISTS PARTITION (k {said}, l = 1)")
        assert rows(acid.table("d.t").select("id")) == kept, said
        acid.sql("ALTER TABLE d.t DROP IF EXISTS PARTITION (l > 0)")
        assert rows(acid.sql("SHOW PARTITIONS d.t")) == [], said
    for text, words in (
        (f"k > {values[0]}, m = 1", "no partition key"),
        (f"k < {values[0]}, l", "needs a value for l"),
    ):
        with pytest.raises(ColumnError, match=words):
            acid.sql(f"ALTER TABLE d.t DROP PARTITION ({text})")


def test_transactions_are_shown_and_aborted(acid: AcidSession) -> None:
    acid.create_table("d.t", {"id": "int"})
    transaction = acid.connection.begin()
    shown = acid.sql("SHOW TRANSACTIONS").collect()
    assert [row.txnid for row in shown if row.state == "OPEN"] == [str(transaction.id)]
    with acid.snapshot():
        acid.table("d.t")
        assert [(row.database, row.table) for row in acid.sql("SHOW LOCKS d.t EXTENDED").collect()] == [("d", "t")]
    acid.sql(f"ABORT TRANSACTIONS {transaction.id}")
    assert [row.state for row in acid.sql("SHOW TRANSACTIONS").collect() if row.txnid == str(transaction.id)] == [
        "ABORTED"
    ]


def test_files_are_loaded_exported_and_imported(acid: AcidSession, spark: SparkSession, tmp_path: Path) -> None:
    sql = acid.sql
    sql("CREATE TABLE d.t (id bigint)")
    spark.range(3).coalesce(1).write.orc(str(tmp_path / "in"))
    sql(f"LOAD DATA LOCAL INPATH '{tmp_path}/in' INTO TABLE d.t")
    sql(f"LOAD DATA INPATH '{tmp_path}/in' OVERWRITE INTO TABLE d.t")
    assert rows(sql("SELECT * FROM d.t")) == [(0,), (1,), (2,)]
    sql(f"EXPORT TABLE d.t TO '{tmp_path}/out'")
    sql("DELETE FROM d.t WHERE id = 0")
    sql(f"IMPORT TABLE d.u FROM '{tmp_path}/out'")
    assert rows(sql("SELECT * FROM d.u")) == [(0,), (1,), (2,)]


def test_a_plain_table_becomes_transactional(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql("CREATE TABLE d.flat (id bigint) TBLPROPERTIES ('transactional' = 'false')")
    spark.range(3).write.mode("append").orc(acid.connection.table("d", "flat").location)
    acid.sql("ALTER TABLE d.flat SET TBLPROPERTIES ('transactional' = 'true', 'note' = 'x')")
    assert acid.sql("DELETE FROM d.flat WHERE id = 1").collect() == [(1,)]
    assert rows(acid.sql("SELECT * FROM d.flat")) == [(0,), (2,)]
    assert acid.connection.table("d", "flat").parameters["note"] == "x"
