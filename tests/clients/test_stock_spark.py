"""Stock PySpark with `enableHiveSupport()`, which speaks the protocol of Hive 2.3.10 and knows nothing of us.

One Spark serves all tests of this file, each test has a database of its own (wire.md §4.1).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.clients.checking import CheckingProxy
from tests.clients.stock_spark import SparkRefusedError, StockSpark

pytestmark = pytest.mark.spark

UPPER = "org.apache.hadoop.hive.ql.udf.generic.GenericUDFUpper"
LOWER = "org.apache.hadoop.hive.ql.udf.generic.GenericUDFLower"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stock")


@pytest.fixture(scope="module")
def spark(proxy: CheckingProxy, scratch: Path) -> Iterator[StockSpark]:
    with StockSpark(proxy.uri, scratch) as session:
        yield session


@pytest.fixture
def sql(spark: StockSpark, request: pytest.FixtureRequest) -> Callable[[str], list[tuple[Any, ...]]]:
    """Runs statements in a database named after the test."""
    database = re.sub(r"\W", "_", request.node.name.removeprefix("test_"))
    spark.sql(f"CREATE DATABASE {database}")
    spark.sql(f"USE {database}")
    return spark.sql


def names(rows: list[tuple[Any, ...]], column: int = 0) -> list[Any]:
    return [row[column] for row in rows]


def is_refused(sql: Callable[[str], Any], statement: str, *words: str) -> None:
    with pytest.raises(SparkRefusedError) as caught:
        sql(statement)
    assert all(word in str(caught.value) for word in words), caught.value


def test_databases(sql: Callable[[str], list[tuple[Any, ...]]], spark: SparkSession, scratch: Path) -> None:
    sql("CREATE DATABASE books COMMENT 'a shop' WITH DBPROPERTIES ('a' = 'b')")
    described = dict(row[:2] for row in sql("DESCRIBE DATABASE EXTENDED books"))
    assert described["Comment"] == "a shop"
    assert described["Location"] == f"file:{scratch}/warehouse/books.db"
    assert described["Properties"] == "((a,b))"
    assert "books" in names(sql("SHOW DATABASES"))
    assert names(sql("SHOW DATABASES LIKE 'boo*'")) == ["books"]
    sql("ALTER DATABASE books SET DBPROPERTIES ('a' = 'c', 'd' = 'e')")
    assert dict(row[:2] for row in sql("DESCRIBE DATABASE EXTENDED books"))["Properties"] == "((a,c), (d,e))"
    is_refused(sql, "CREATE DATABASE books", "already exists")
    sql("CREATE TABLE books.t (id INT) STORED AS ORC")
    is_refused(sql, "DROP DATABASE books", "SCHEMA_NOT_EMPTY", "books")
    sql("DROP DATABASE books CASCADE")
    assert "books" not in names(sql("SHOW DATABASES"))
    assert not (scratch / "warehouse" / "books.db").exists()


@pytest.mark.parametrize("form", ["USING orc", "STORED AS PARQUET", "STORED AS TEXTFILE"])
def test_table(sql: Callable[[str], list[tuple[Any, ...]]], form: str) -> None:
    sql(f"CREATE TABLE t (id INT, name STRING) {form}")
    sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    assert sql("SELECT * FROM t ORDER BY id") == [(1, "a"), (2, "b")]
    sql("INSERT OVERWRITE t VALUES (3, 'ä')")
    assert sql("SELECT * FROM t") == [(3, "ä")]
    # The server moves the directory: without it the renamed table would read as empty (wire.md §4.1).
    sql("ALTER TABLE t RENAME TO u")
    assert sql("SELECT * FROM u") == [(3, "ä")]
    assert names(sql("SHOW TABLES"), 1) == ["u"]
    sql("ALTER TABLE u ADD COLUMNS (extra DOUBLE COMMENT 'more')")
    assert sql("SELECT * FROM u") == [(3, "ä", None)]
    sql("ALTER TABLE u SET TBLPROPERTIES ('k' = 'v', 'l' = 'w')")
    sql("ALTER TABLE u UNSET TBLPROPERTIES ('l')")
    properties = dict(sql("SHOW TBLPROPERTIES u"))
    assert properties["k"] == "v"
    assert "l" not in properties
    sql("TRUNCATE TABLE u")
    assert sql("SELECT * FROM u") == []
    sql("DROP TABLE u")
    assert sql("SHOW TABLES") == []
    is_refused(sql, "SELECT * FROM u", "cannot be found")


def test_bucketed(sql: Callable[[str], list[tuple[Any, ...]]]) -> None:
    sql("CREATE TABLE t (id INT, name STRING) USING orc CLUSTERED BY (id) SORTED BY (name) INTO 4 BUCKETS")
    sql("INSERT INTO t VALUES (1, 'z')")
    (shown,) = names(sql("SHOW CREATE TABLE t"))
    assert "CLUSTERED BY (id)\nSORTED BY (name)\nINTO 4 BUCKETS" in shown
    assert sql("SELECT * FROM t") == [(1, "z")]


def test_wide_schema_survives(sql: Callable[[str], list[tuple[Any, ...]]]) -> None:
    """Spark keeps its schema in parameters, in pieces of 4,000 characters."""
    columns = ", ".join(f"Column{n} STRUCT<Inner{n}: ARRAY<INT>>" for n in range(300))
    sql(f"CREATE TABLE t ({columns}) USING parquet")
    assert names(sql("DESCRIBE t"))[::100] == ["Column0", "Column100", "Column200"]


@pytest.mark.parametrize("form", ["USING parquet PARTITIONED BY (y, m)", "STORED"])
def test_partitions(sql: Callable[[str], list[tuple[Any, ...]]], form: str) -> None:
    if form == "STORED":
        sql("CREATE TABLE t (id INT) PARTITIONED BY (y INT, m STRING) STORED AS ORC")
    else:
        sql(f"CREATE TABLE t (id INT, y INT, m STRING) {form}")
    sql("INSERT INTO t VALUES (1, 2024, 'a b'), (2, 2025, 'c/d')")
    sql("INSERT INTO t PARTITION (y = 2025, m) VALUES (3, 'e=%'), (4, null)")
    sql("INSERT INTO t PARTITION (y = 2026, m = 'x') VALUES (5)")
    assert names(sql("SHOW PARTITIONS t")) == [
        "y=2024/m=a b",
        "y=2025/m=__HIVE_DEFAULT_PARTITION__",
        "y=2025/m=c%2Fd",
        "y=2025/m=e%3D%25",
        "y=2026/m=x",
    ]
    assert names(sql("SHOW PARTITIONS t PARTITION (y = 2024)")) == ["y=2024/m=a b"]
    sql("INSERT OVERWRITE t PARTITION (y = 2024, m = 'a b') VALUES (7)")
    for condition, ids in [
        ("y = 2025", [2, 3, 4]),
        ("y > 2024 AND m LIKE 'c%'", [2]),
        ("y IN (2024, 2026)", [5, 7]),
        ("m = 'e=%' OR y < 2025", [3, 7]),
        ("m IS NULL", [4]),
        ("NOT y = 2025", [5, 7]),
        ("y = '2026'", [5]),
        ("m = 'a b' AND id > 7", []),
    ]:
        assert names(sql(f"SELECT id FROM t WHERE {condition} ORDER BY id")) == ids, condition
    sql("ALTER TABLE t PARTITION (y = 2024, m = 'a b') RENAME TO PARTITION (y = 2027, m = 'q')")
    assert names(sql("SELECT id FROM t WHERE y = 2027")) == [7]
    sql("ALTER TABLE t ADD PARTITION (y = 2030, m = 'n')")
    sql("ALTER TABLE t ADD IF NOT EXISTS PARTITION (y = 2030, m = 'n') PARTITION (y = 2030, m = 'o')")
    is_refused(sql, "ALTER TABLE t ADD PARTITION (y = 2030, m = 'n')", "PARTITIONS_ALREADY_EXIST")
    sql("ALTER TABLE t DROP PARTITION (y = 2030)")
    is_refused(sql, "ALTER TABLE t DROP PARTITION (y = 2030, m = 'n')", "PARTITIONS_NOT_FOUND")
    sql("ALTER TABLE t DROP IF EXISTS PARTITION (y = 2030, m = 'n')")
    sql("TRUNCATE TABLE t PARTITION (y = 2027, m = 'q')")
    assert names(sql("SELECT id FROM t ORDER BY id")) == [2, 3, 4, 5]
    assert len(sql("SHOW PARTITIONS t")) == 5
    sql("DROP TABLE t")


def test_repair_finds_directories(sql: Callable[[str], list[tuple[Any, ...]]], scratch: Path) -> None:
    sql(f"CREATE EXTERNAL TABLE e (id INT) PARTITIONED BY (k INT) STORED AS TEXTFILE LOCATION '{scratch}/e'")
    for key in (1, 2):
        directory = scratch / "e" / f"k={key}"
        directory.mkdir(parents=True)
        (directory / "data.txt").write_text(f"{key * 10}\n")
    assert sql("SELECT * FROM e") == []
    sql("MSCK REPAIR TABLE e")
    assert sql("SELECT * FROM e ORDER BY id") == [(10, 1), (20, 2)]
    sql("DROP TABLE e")
    assert (scratch / "e" / "k=1").exists()


def test_statistics(sql: Callable[[str], list[tuple[Any, ...]]]) -> None:
    sql("CREATE TABLE t (id INT, name STRING) STORED AS PARQUET")
    sql("INSERT INTO t VALUES (1, 'a'), (2, 'bcd')")
    sql("ANALYZE TABLE t COMPUTE STATISTICS")
    sql("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS id, name")
    described = dict(row[:2] for row in sql("DESCRIBE EXTENDED t"))
    assert described["Statistics"].endswith("bytes, 2 rows")
    column = dict(sql("DESCRIBE EXTENDED t name"))
    assert column["distinct_count"] == "2"
    assert column["max_col_len"] == "3"
    sql("CREATE TABLE p (id INT) PARTITIONED BY (k INT) STORED AS PARQUET")
    sql("INSERT INTO p VALUES (1, 1), (2, 2)")
    sql("ANALYZE TABLE p PARTITION (k) COMPUTE STATISTICS")
    described = dict(row[:2] for row in sql("DESCRIBE EXTENDED p PARTITION (k = 1)"))
    assert described["Partition Statistics"].endswith("bytes, 1 rows")


def test_views(sql: Callable[[str], list[tuple[Any, ...]]]) -> None:
    sql("CREATE TABLE t (id INT) STORED AS ORC")
    sql("INSERT INTO t VALUES (1), (2)")
    sql("CREATE VIEW v (j COMMENT 'plus one') AS SELECT id + 1 AS j FROM t")
    assert names(sql("SELECT * FROM v ORDER BY j")) == [2, 3]
    assert names(sql("SHOW VIEWS"), 1) == ["v"]
    sql("ALTER VIEW v AS SELECT id * 10 AS k FROM t")
    assert names(sql("SELECT k FROM v ORDER BY k")) == [10, 20]
    sql("ALTER VIEW v RENAME TO w")
    sql("DROP VIEW w")
    assert sql("SHOW VIEWS") == []


def test_functions(sql: Callable[[str], list[tuple[Any, ...]]]) -> None:
    sql(f"CREATE FUNCTION f AS '{UPPER}'")
    assert sql("SELECT f('aBc')") == [("ABC",)]
    assert [name.split(".")[-1] for name in names(sql("SHOW USER FUNCTIONS LIKE 'f'"))] == ["f"]
    sql(f"CREATE OR REPLACE FUNCTION f AS '{LOWER}'")
    assert sql("SELECT f('aBc')") == [("abc",)]
    is_refused(sql, f"CREATE FUNCTION f AS '{UPPER}'", "already exists")
    sql("CREATE FUNCTION g AS 'com.example.G' USING JAR '/nowhere/g.jar'")
    assert len(sql("SHOW USER FUNCTIONS LIKE 'g'")) == 1
    sql("DROP FUNCTION f")
    sql("DROP FUNCTION g")
    is_refused(sql, "SELECT f('a')", "UNRESOLVED_ROUTINE")


def test_create_table_like_and_as_select(sql: Callable[[str], list[tuple[Any, ...]]]) -> None:
    sql("CREATE TABLE t (id INT) PARTITIONED BY (k INT) STORED AS ORC")
    sql("CREATE TABLE l LIKE t")
    assert names(sql("DESCRIBE l"))[:2] == ["id", "k"]
    sql("CREATE TABLE s STORED AS PARQUET AS SELECT 1 AS id, 'x' AS name")
    assert sql("SELECT * FROM s") == [(1, "x")]
    shown = sql("SHOW TABLE EXTENDED LIKE 't'")
    assert "Partition Columns: [`k`]" in shown[0][3]


def test_full_acid_tables_are_refused(sql: Callable[[str], list[tuple[Any, ...]]]) -> None:
    """The guard (wire.md §5.9): stock Spark would write unversioned files into the table and read raw ones."""
    sql("CREATE TABLE t (id INT) STORED AS ORC TBLPROPERTIES ('transactional' = 'true')")
    sql("CREATE TABLE plain (id INT) STORED AS ORC")
    for statement in ["SELECT * FROM t", "INSERT INTO t VALUES (1)", "DESCRIBE t", "TRUNCATE TABLE t", "DROP TABLE t"]:
        is_refused(sql, statement, ".t is an ACID table", "hive_acid")
    assert sorted(names(sql("SHOW TABLES"), 1)) == ["plain", "t"]
    assert sql("SELECT * FROM plain") == []
