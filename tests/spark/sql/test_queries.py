"""Queries: names, snapshots, ROW__ID, arguments, and what is left to Spark."""

import gc
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession

import hive_acid.spark
from hive_acid.errors import ColumnError, NoSuchObjectError, SqlError, TransactionsOffError
from hive_acid.spark import AcidSession
from tests.spark.plans import scans
from tests.spark.test_session import open_txns, until_open
from tests.values.sessions.under import under


@pytest.fixture
def numbers(acid: AcidSession, spark: SparkSession) -> Any:
    """``d.t`` of ids 0 to 9 in partitions by parity, ``d.u`` of three of them."""
    acid.create_table("d.t", {"id": "int", "name": "string"}, partitioned_by={"p": "int"})
    acid.insert("d.t", spark.range(10).selectExpr("int(id) id", "concat('n', id) name", "int(id % 2) p"))
    acid.create_table("d.u", {"id": "int", "v": "double"})
    acid.insert("d.u", spark.createDataFrame([(1, 0.5), (2, 1.5), (20, 2.5)], "id int, v double"))
    return acid


def rows(frame: Any) -> Any:
    return sorted(tuple(row) for row in frame.collect())


def views(spark: SparkSession) -> Any:
    return [view.name for view in spark.catalog.listTables() if view.isTemporary]


@pytest.mark.slow
def test_queries_of_all_shapes(numbers: Any, spark: SparkSession) -> None:
    before = views(spark)
    sql = numbers.sql
    assert rows(sql("SELECT id FROM d.t WHERE p = 1 AND id > 5")) == [(7,), (9,)]
    assert rows(sql("SELECT T.ID, d.U.v FROM D.t JOIN d.u USING (id) ORDER BY 1")) == [(1, 0.5), (2, 1.5)]
    assert rows(sql("SELECT d.t.id, x.v FROM d.t, d.u AS x WHERE d.t.id = x.id")) == [(1, 0.5), (2, 1.5)]
    assert rows(sql("SELECT count(*) FROM `d`.`t` a LEFT JOIN d.u b ON a.id = b.id WHERE b.v IS NULL")) == [(8,)]
    assert rows(sql("SELECT * FROM d.u WHERE id IN (SELECT id FROM d.t) UNION TABLE d.u;")) == rows(sql("TABLE d.u"))
    assert rows(sql("TABLE d.u")) == [(1, 0.5), (2, 1.5), (20, 2.5)]
    assert rows(sql("FROM d.u SELECT id WHERE v > 1")) == [(2,), (20,)]
    assert rows(sql("FROM d.u |> WHERE v > 1 |> AGGREGATE count(*) AS n |> WHERE n = 2")) == [(2,)]
    correlated = "SELECT id FROM d.t WHERE EXISTS (SELECT 1 FROM d.u WHERE u.id = t.id AND u.v > 1)"
    assert rows(sql(correlated)) == [(2,)]
    assert rows(sql("SELECT (SELECT max(v) FROM d.u WHERE u.id = t.id) m FROM d.t WHERE id = 1")) == [(0.5,)]
    assert rows(sql("SELECT * FROM d.u PIVOT (sum(v) FOR id IN (1, 2))")) == [(0.5, 1.5)]
    assert rows(sql("SELECT e.c FROM d.u LATERAL VIEW explode(array(id, id)) e AS c WHERE id = 1")) == [(1,), (1,)]
    assert rows(sql("SELECT /*+ BROADCAST(u) */ u.id FROM d.u TABLESAMPLE (100 PERCENT) -- d.t")) == [(1,), (2,), (20,)]
    assert rows(sql("SELECT 1 AS one")) == [(1,)]
    assert rows(sql("VALUES (1, 'a')")) == [(1, "a")]
    assert views(spark) == before


def test_texts_and_names_of_ctes_are_no_tables(numbers: Any) -> None:
    (row,) = numbers.sql(
        "SELECT 'from d.t join {d.u} where' AS `d.t`, \"d.u\" AS x /* from d.u */ FROM d.u LIMIT 1"
    ).collect()
    assert row.asDict() == {"d.t": "from d.t join {d.u} where", "x": "d.u"}
    numbers.sql("USE d")
    try:
        assert rows(numbers.sql("WITH t AS (SELECT id FROM t WHERE id < 2) SELECT * FROM t")) == [(0,), (1,)]
        assert rows(numbers.sql("WITH u AS (SELECT 5 AS id), w AS (SELECT id FROM u) SELECT * FROM w")) == [(5,)]
        assert rows(numbers.sql("SELECT count(*) FROM (WITH u AS (SELECT 5) SELECT * FROM u) JOIN u")) == [(3,)]
        recursive = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) SELECT * FROM t"
        assert rows(numbers.sql(recursive)) == [(1,), (2,), (3,)]
        assert rows(numbers.sql("SELECT t.id FROM u AS t WHERE t.v = 2.5")) == [(20,)]
    finally:
        numbers.sql("USE default")
    with pytest.raises(AnalysisException, match="NOT_FOUND"):
        numbers.sql("SELECT * FROM t").collect()


def test_a_temporary_view_goes_before_a_table(numbers: Any, spark: SparkSession) -> None:
    numbers.sql("USE d")
    spark.range(3).createOrReplaceTempView("u")
    try:
        assert numbers.sql("SELECT * FROM u").count() == 3
        assert numbers.sql("SELECT * FROM d.u JOIN u USING (id)").count() == 2
        assert numbers.sql("SELECT * FROM u JOIN t USING (id)").columns == ["id", "name", "p"]
    finally:
        spark.catalog.dropTempView("u")
        numbers.sql("USE default")


def test_one_snapshot_for_a_statement_and_as_long_as_its_frame(numbers: Any, spark: SparkSession) -> None:
    frame = numbers.sql("SELECT a.id FROM d.t a JOIN d.u b USING (id) WHERE EXISTS (SELECT 1 FROM d.t)")
    assert open_txns(numbers) == 1
    numbers.delete("d.t")
    derived = frame.where("id > 0")
    del frame
    assert rows(derived) == [(1,), (2,)]
    assert open_txns(numbers) == 1
    del derived
    until_open(numbers, 0)
    with numbers.snapshot():
        before = numbers.sql("SELECT count(*) n FROM d.t")
        numbers_now = numbers.table("d.u")
        assert before.collect()[0].n == 0
        assert numbers_now.count() == 3
    with numbers.transaction():
        numbers.sql("INSERT INTO d.t VALUES (1, 'x', 1)")
        assert numbers.sql("SELECT count(*) n FROM d.t").collect()[0].n == 1
        assert numbers.sql("UPDATE d.t SET name = 'y' WHERE id IN (SELECT id FROM d.u)").collect()[0][0] == 1
    assert rows(numbers.sql("SELECT * FROM d.t")) == [(1, "y", 1)]
    gc.collect()


def test_row_id_is_a_pseudo_column(numbers: Any) -> None:
    sql = numbers.sql
    assert sql("SELECT * FROM d.t").columns == ["id", "name", "p"]
    frame = sql("SELECT row__id, * FROM d.t WHERE ROW__ID.rowId = 0")
    assert frame.columns == ["row__id", "id", "name", "p"]
    assert {(row.row__id.writeId, row.row__id.rowId) for row in frame.collect()} == {(1, 0)}
    joined = sql("SELECT t.*, d.u.row__id.rowId AS r FROM d.t JOIN d.u ON t.id = u.id")
    assert joined.columns == ["id", "name", "p", "r"]
    assert rows(joined) == [(1, "n1", 1, 0), (2, "n2", 0, 1)]
    starred = sql("SELECT * FROM d.t JOIN d.u ON t.id = u.id WHERE t.ROW__ID.writeId = u.ROW__ID.writeId")
    assert starred.columns == ["id", "name", "p", "id", "v"]
    assert sql("SELECT count(*) n FROM d.u WHERE row__id IS NOT NULL").collect()[0].n == 3
    inner = sql("SELECT r.rowId, x.id FROM (SELECT row__id AS r, * FROM d.u) x JOIN d.t USING (id)")
    assert rows(inner) == [(0, 1), (1, 2)]
    for refused in (
        "SELECT row__id FROM d.t NATURAL JOIN d.u",
        "SELECT row__id FROM d.u PIVOT (sum(v) FOR id IN (1))",
        "SELECT row__id, * EXCEPT (v) FROM d.u",
    ):
        with pytest.raises(SqlError, match="ROW__ID"):
            sql(refused)


def test_a_column_that_is_called_row_id_is_meant_by_the_name(numbers: Any) -> None:
    sql = numbers.sql
    sql("CREATE TABLE d.r (id int, ROW__ID string, s struct<row__id:int>) PARTITIONED BY (p string)")
    sql("INSERT INTO d.r VALUES (1, 'one', named_struct('row__id', 1), 'a'), (2, NULL, NULL, 'a'), (3, 'x', NULL, 'b')")
    assert rows(sql("SELECT row__id, d.r.row__id AS again FROM d.r WHERE ROW__ID = 'one'")) == [("one", "one")]
    assert rows(sql("SELECT r.*, u.row__id.rowId FROM d.r JOIN d.u USING (id) WHERE r.s.row__id = 1")) == [
        (1, "one", Row(row__id=1), "a", 0)
    ]
    assert sql("DELETE FROM d.r WHERE row__id IS NULL").collect()[0][0] == 1
    assert sql("UPDATE d.r AS t SET row__id = t.row__id || '!', s.row__id = 5 WHERE t.row__id IN ('one')").count() == 1
    source = "(SELECT 3 AS id, 'y' AS row__id) s ON t.id = s.id"
    sql(f"MERGE INTO d.r t USING {source} WHEN MATCHED THEN UPDATE SET row__id = t.row__id || s.row__id")
    assert rows(sql("SELECT id, row__id, s.row__id AS of FROM d.r")) == [(1, "one!", 5), (3, "xy", None)]
    with pytest.raises(ColumnError, match="has a column ROW__ID, so there is no name"):
        numbers.table("d.r", row_id=True)


@pytest.mark.parametrize("kind", ["TIMESTAMP_LTZ", "TIMESTAMP_NTZ"])
def test_days_and_times_as_arguments_mean_the_same_in_all_statements(
    acid: AcidSession, spark: SparkSession, kind: Any
) -> None:
    """Spark itself takes them by way of Java's old calendar, by which days before 1582 are others."""
    chance = random.Random(7)
    span = datetime.max - datetime(1, 1, 3)
    moments = [datetime(1, 1, 3) + span * chance.random() for _ in range(12)]
    moments += [datetime(1500, 1, 1), datetime(1582, 10, 4, 12), datetime(1899, 1, 1), datetime(9999, 12, 31, 23, 59)]
    texts = ", ".join(f"({at}, '{of.isoformat(' ')}')" for at, of in enumerate(moments))
    acid.create_table("d.t", {"id": "int", "d": "date", "t": "timestamp"})
    acid.insert("d.t", spark.sql(f"SELECT id, date(v) AS d, timestamp(v) AS t FROM VALUES {texts} AS s(id, v)"))
    with under(spark, {"spark.sql.timestampType": kind}):
        for at, moment in enumerate(moments):
            zoned = moment.replace(tzinfo=UTC)
            asked = "SELECT id FROM d.t WHERE t = {} AND t = {} AND d = {}"
            by_name = acid.sql(asked.format(":t", ":z", ":d"), {"t": moment, "z": zoned, "d": moment.date()})
            by_place = acid.sql(asked.format("?", "?", "?"), [moment, zoned, moment.date()])
            assert rows(by_name) == rows(by_place) == [(at,)], moment
            acid.sql("DELETE FROM d.t WHERE t = :t AND d = :d", {"t": moment, "d": moment.date()})
            assert acid.table("d.t").count() == len(moments) - at - 1


def test_a_negative_zero_makes_no_comment(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "x": "double"})
    acid.insert("d.t", spark.sql("SELECT 1 AS id, 1D AS x UNION ALL SELECT 2, 2D"))
    acid.sql("UPDATE d.t SET x = x-:zero, id = id-:one WHERE id = 2", {"zero": -0.0, "one": -1})
    assert rows(acid.table("d.t").orderBy("id")) == [(1, 1.0), (3, 2.0)]


def test_arguments(numbers: Any, spark: SparkSession) -> None:
    sql = numbers.sql
    assert rows(sql("SELECT id FROM d.t WHERE id = :id AND name = :name", {"id": 3, "name": "n3"})) == [(3,)]
    assert rows(sql("SELECT id FROM d.t WHERE id = ? OR id = ?", [3, 4])) == [(3,), (4,)]
    assert rows(sql("SELECT :a AS a", args={"a": "d.t"})) == [("d.t",)]
    text = "it's \\ a {brace} :x"
    changed = sql("UPDATE d.u SET v = :v WHERE id = :id AND '{}:x' = concat('{}', ':x')", {"v": -2.5, "id": 1})
    assert changed.collect()[0].num_affected_rows == 1
    sql("INSERT INTO d.t VALUES (?, ?, ?)", [-77, text, 0])
    assert rows(sql("SELECT * FROM d.t WHERE name = :t", {"t": text})) == [(-77, text, 0)]
    assert sql("DELETE FROM d.t WHERE name = ?", [text]).collect()[0][0] == 1
    assert rows(sql("SELECT v FROM d.u WHERE id = 1")) == [(-2.5,)]
    with pytest.raises(SqlError, match=":b"):
        sql("DELETE FROM d.t WHERE id = :b", {"a": 1})
    with pytest.raises(SqlError, match="more parameters"):
        sql("DELETE FROM d.t WHERE id = ? OR id = ?", [1])
    with pytest.raises(SqlError, match="queries only"):
        sql("DELETE FROM d.t WHERE id = :b", {"b": object()})
    with pytest.raises(AnalysisException, match="UNBOUND"):
        sql("SELECT id FROM d.t WHERE id = :b")


def test_what_is_sparks_goes_to_spark(numbers: Any, spark: SparkSession, tmp_path: Path) -> None:
    sql = numbers.sql
    spark.range(4).createOrReplaceTempView("four")
    spark.range(2).write.parquet(str(tmp_path / "files"))
    try:
        assert sql("SELECT * FROM four").count() == 4
        assert sql(f"SELECT * FROM parquet.`{tmp_path}/files` f JOIN d.u ON f.id = u.id").count() == 1
        sql(f"INSERT OVERWRITE DIRECTORY '{tmp_path}/out' USING parquet SELECT id FROM d.u WHERE v > :v", {"v": 1})
        assert rows(spark.read.parquet(str(tmp_path / "out"))) == [(2,), (20,)]
        assert "== Physical Plan ==" in sql("EXPLAIN FORMATTED SELECT * FROM d.u").collect()[0][0]
        sql("CREATE TEMPORARY VIEW five AS SELECT * FROM four")
        assert "four" in [row.tableName for row in spark.sql("SHOW TABLES").collect()]
        spark.catalog.dropTempView("five")
    finally:
        spark.catalog.dropTempView("four")
    with pytest.raises(NoSuchObjectError, match="neither the metastore nor Spark has a table nothing"):
        sql("UPDATE nothing SET a = 1")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no statement"),
        ("-- nothing", "no statement"),
        ("SELECT 1; SELECT 2", "one statement at a time"),
        ("SELECT 'a", "cannot be split"),
        ("SELEC 1", "begins with none of"),
        ("SELECT * FROM d.t WHERE", "cannot read"),
        ("BEGIN SELECT 1", "a compound statement of Spark's"),
        ("START NONSENSE", "TRANSACTION was expected"),
        ("SELECT * FROM d.t VERSION AS OF 1", "AS OF"),
        ("SELECT * FROM identifier('d.t')", "IDENTIFIER"),
        ("EXPLAIN AST SELECT * FROM d.t", "EXPLAIN AST tells of Hive's planner"),
        ("VACUUM d.t", "VACUUM is no statement here: .*Cleaner"),
        ("LOCK TABLE d.t SHARED", "LOCK is no statement here"),
        ("SET ROLE r", "SET ROLE: all roles of a user count"),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1", "materialized views"),
    ],
)
def test_what_is_not_understood_is_said(numbers: Any, text: Any, words: Any) -> None:
    with pytest.raises(SqlError, match=words):
        numbers.sql(text)


def test_what_cannot_match_is_not_read(numbers: Any) -> None:
    def files_and_rows(frame: Any) -> Any:
        found = scans(frame)
        return sum(scan.files for scan in found), sum(scan.rows for scan in found)

    everything = files_and_rows(numbers.sql("SELECT * FROM d.t"))
    by_verb = files_and_rows(numbers.table("d.t", where="p = 1"))
    assert by_verb < everything
    assert files_and_rows(numbers.sql("SELECT * FROM d.t WHERE t.p = 1")) == by_verb
    assert files_and_rows(numbers.sql("SELECT * FROM d.t x WHERE x.p = :p AND upper(name) <> ''", {"p": 1})) == by_verb
    beyond = numbers.sql("SELECT t.id FROM d.t JOIN d.u USING (id) WHERE t.id > 1000 AND u.id > 1000")
    assert files_and_rows(beyond) == (0, 0)


def test_what_only_and_makes_a_condition_is_sparks(numbers: Any) -> None:
    """A null or a text beside a part that is none of a hint, which would be that alone."""
    for where in (
        "name = r'n1' AND NULL",
        "NULL AND upper(name) = 'N1'",
        "(NULL) AND length(name) > 0",
        "NULL OR name = r'n1'",
    ):
        assert rows(numbers.sql(f"SELECT id FROM d.t WHERE {where}")) == ([(1,)] if " OR " in where else []), where
    numbers.create_table("d.s", {"id": "int", "name": "string", "flag": "string", "b": "boolean"})
    numbers.sql("INSERT INTO d.s VALUES (1, 'n1', 'true', true), (2, 'n1', 'false', false), (3, 'n2', 'true', true)")
    for beside, found in (("'true'", [1, 2]), ("(('true'))", [1, 2]), ("flag", [1]), ("(s.flag)", [1]), ("b", [1])):
        for where in (f"name = r'n1' AND {beside}", f"{beside} AND length(name) = 2 AND name = r'n1'"):
            assert rows(numbers.sql(f"SELECT id FROM d.s WHERE {where}")) == [(of,) for of in found], where


def test_threads_have_their_own_database_and_transaction(numbers: Any) -> None:
    numbers.create_database("e")
    numbers.sql("CREATE TABLE e.t AS SELECT 'e' AS id")

    def of(database: Any) -> Any:
        numbers.sql(f"USE {database}")
        with numbers.snapshot():
            return rows(numbers.sql("SELECT max(id) FROM t"))

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(of, ["d", "e", "d", "e"])) == [[(9,)], [("e",)]] * 2
    with pytest.raises(AnalysisException, match="NOT_FOUND"):
        numbers.sql("SELECT * FROM t")


def test_a_session_without_transactions(numbers: Any) -> None:
    dummy = hive_acid.spark.session(numbers.spark, numbers.connection, settings={"hive.txn.manager": "DummyTxnManager"})
    dummy.sql("CREATE TABLE d.plain (id int) TBLPROPERTIES ('transactional' = 'false')")
    assert dummy.sql("INSERT INTO d.plain VALUES (1), (2)").collect() == [(2, 2)]
    assert rows(dummy.sql("SELECT id FROM d.plain WHERE id > 1")) == [(2,)]
    for text in (
        "SELECT * FROM d.t",
        "INSERT INTO d.t SELECT 1, 'a', 1",
        "DELETE FROM d.t",
        "CREATE TABLE d.n (id int)",
    ):
        with pytest.raises(TransactionsOffError):
            dummy.sql(text)
