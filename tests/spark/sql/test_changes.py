"""INSERT, UPDATE, DELETE, MERGE and multi-insert in SQL do what the verbs do."""

from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from hive_acid.errors import ColumnError, MergeCardinalityError, SqlError
from hive_acid.spark import AcidSession
from tests.spark.checker import check_table, location_of

COLUMNS = {"id": "int", "name": "string", "n": "bigint"}


@pytest.fixture
def twins(acid: AcidSession, spark: SparkSession) -> Any:
    """``d.a`` for SQL and ``d.b`` for verbs, with the same rows in the same order; ``d.s`` is a source."""
    for name in ("d.a", "d.b"):
        acid.create_table(name, COLUMNS, partitioned_by={"p": "string"})
        acid.insert(name, spark.range(12).selectExpr("int(id) id", "concat('n', id) name", "id n", "string(id % 2) p"))
    acid.create_table("d.s", {"id": "int", "v": "string"})
    acid.insert("d.s", spark.createDataFrame([(1, "x"), (4, "y"), (40, "z")], "id int, v string"))
    return acid


def rows(acid: AcidSession, name: Any) -> Any:
    return sorted((tuple(row) for row in acid.table(name).collect()), key=str)


def same(acid: AcidSession) -> Any:
    """Both tables, which have to be equal, by rows and by what is in their directories."""
    sql, verbs = rows(acid, "d.a"), rows(acid, "d.b")
    assert sql == verbs
    for name in ("d.a", "d.b"):
        check_table(location_of(acid, name))
    return sql


def temporary_views(spark: SparkSession) -> Any:
    return [view.name for view in spark.catalog.listTables() if view.isTemporary]


@pytest.mark.slow
def test_update_and_delete(twins: Any, spark: SparkSession) -> None:
    sql = twins.sql
    views = temporary_views(spark)
    updated = sql(
        "UPDATE d.a AS x SET name = upper(x.name), `n` = CASE WHEN x.n > 5 THEN 0 ELSE n + 1 END WHERE x.p = '1';"
    )
    verb = twins.update("d.b", {"name": "upper(name)", "n": "CASE WHEN n > 5 THEN 0 ELSE n + 1 END"}, "p = '1'")
    assert updated.collect()[0].asDict() == {"num_affected_rows": verb} == {"num_affected_rows": 6}
    same(twins)
    among = "a.id IN (SELECT id FROM d.s WHERE s.id <> d.a.n + 1)"
    sql(f"UPDATE d.a SET d.a.n = -1, name = (SELECT max(v) FROM d.s) WHERE {among}")
    twins.update("d.b", {"n": "-1", "name": "'z'"}, "id IN (1, 4) AND id <> n + 1")
    assert ("z" in str(same(twins))) is True
    assert sql(
        "DELETE FROM d.a t WHERE t.id > 8 OR EXISTS (SELECT 1 FROM d.s WHERE s.id = t.id AND v = 'x')"
    ).collect() == [(twins.delete("d.b", "id > 8 OR id = 1"),)]
    same(twins)
    assert sql("DELETE FROM d.a WHERE ROW__ID.rowId = 0 AND a.row__id.writeId = 1").collect()[0][0] > 0
    assert sql("UPDATE d.a SET n = n WHERE id IS DISTINCT FROM id").collect() == [(0,)]
    assert temporary_views(spark) == views


def test_update_and_delete_with_a_source(twins: Any, spark: SparkSession) -> None:
    source = spark.createDataFrame([(1, "x"), (4, "y"), (40, "z")], "id int, v string")
    changed = twins.sql("UPDATE d.a t SET name = s.v, n = t.n * 10 FROM d.s AS s WHERE t.id = s.id AND s.v <> 'x'")
    verb = twins.update(
        "d.b", {"name": "s.v", "n": "t.n * 10"}, source=source, on="t.id = s.id AND s.v <> 'x'", target_alias="t"
    )
    assert changed.collect() == [(verb,)] == [(1,)]
    same(twins)
    joined = "(SELECT s.id FROM d.s JOIN d.b USING (id)) AS q"
    assert twins.sql(f"DELETE FROM d.a USING {joined} WHERE a.id = q.id").collect() == [(2,)]
    assert twins.delete("d.b", "id IN (1, 4)") == 2
    same(twins)
    with pytest.raises(MergeCardinalityError):
        twins.sql("UPDATE d.a SET name = s.v FROM d.s WHERE a.id <> s.id")
    same(twins)


def test_fields_of_structs_are_set(acid: AcidSession) -> None:
    """A name may be an alias, a column or both: it is the alias where a column follows, as it is for Spark."""
    acid.sql("CREATE TABLE d.t (id int, s struct<a:int,s:struct<a:int,`b c`:string>>)")
    acid.sql("INSERT INTO d.t SELECT 1, named_struct('a', 1, 's', named_struct('a', 1, 'b c', 'x'))")

    def row() -> Any:
        return acid.sql("SELECT s.a, s.s.a, s.s.`b c` FROM d.t WHERE id = 1").collect()

    acid.sql("UPDATE d.t SET s.a = 2, S.S.A = id + 2, t.s.s.`b c` = upper(s.s.`b c`)")
    assert row() == [(2, 3, "X")]
    acid.sql("UPDATE d.t AS s SET s.s.a = 4, d.t.s.s.a = 5 WHERE s.id = 1")  # of the alias, the column and its field
    assert row() == [(4, 5, "X")]
    acid.sql(
        "MERGE INTO d.t USING (SELECT 1 AS id, 'y' AS v) AS n ON t.id = n.id "
        "WHEN MATCHED AND t.s.a = 4 THEN UPDATE SET t.s.s.`b c` = n.v, s.a = t.s.s.a"
    )
    assert row() == [(5, 5, "y")]
    with pytest.raises(ColumnError, match="no field nothing"):
        acid.sql("UPDATE d.t SET s.nothing = 1")
    with pytest.raises(SqlError, match=r"no fields of structs: s\.a"):
        acid.sql("MERGE INTO d.t USING (SELECT 2 AS id) n ON t.id = n.id WHEN NOT MATCHED THEN INSERT (s.a) VALUES (1)")


def test_merge(twins: Any, spark: SparkSession) -> None:
    text = """
        MERGE INTO d.a AS t USING (SELECT *, id % 2 AS odd FROM d.s) AS s ON t.id = s.id
        WHEN MATCHED AND s.v = 'x' THEN DELETE
        WHEN MATCHED THEN UPDATE SET t.name = s.v, n = CASE WHEN t.n = 4 THEN 44 END
        WHEN NOT MATCHED AND s.id > 50 THEN INSERT VALUES (s.id, s.v, 0, '0')
        WHEN NOT MATCHED BY TARGET THEN INSERT (id, name, p) VALUES (s.id, concat(s.v, 'WHEN'), '7')
        WHEN NOT MATCHED BY SOURCE AND t.id > 10 THEN DELETE
        WHEN NOT MATCHED BY SOURCE AND t.id > 9 THEN UPDATE SET n = -t.n
    """
    counts = twins.sql(text).collect()[0].asDict()
    source = spark.sql("SELECT id, v, id % 2 AS odd FROM VALUES (1, 'x'), (4, 'y'), (40, 'z') AS s(id, v)")
    verb = (
        twins.merge("d.b", source, "t.id = s.id")
        .whenMatchedDelete("s.v = 'x'")
        .whenMatchedUpdate(None, {"name": "s.v", "n": "CASE WHEN t.n = 4 THEN 44 END"})
        .whenNotMatchedInsert(None, {"id": "s.id", "name": "concat(s.v, 'WHEN')", "p": "'7'"})
        .whenNotMatchedBySourceDelete("t.id > 10")
        .whenNotMatchedBySourceUpdate("t.id > 9", {"n": "-t.n"})
        .execute()
    )
    assert counts == {
        "num_affected_rows": sum(verb),
        "num_updated_rows": verb.updated,
        "num_deleted_rows": verb.deleted,
        "num_inserted_rows": verb.inserted,
    }
    assert tuple(verb) == (1, 2, 2)
    same(twins)
    spark.sql("SELECT 4 AS id, 'all' AS name, 1L AS n, '0' AS p").createOrReplaceTempView("one")
    try:
        every = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        assert twins.sql(f"MERGE INTO d.a USING one ON d.a.id = one.id {every}").collect() == [(1, 1, 0, 0)]
        twins.update("d.b", {"name": "'all'", "n": "1"}, "id = 4")
        same(twins)
        for refused in (
            "MERGE INTO d.a USING one ON a.id = one.id WHEN MATCHED THEN INSERT *",
            "MERGE INTO d.a USING one ON a.id = one.id WHEN NOT MATCHED THEN UPDATE SET n = 1",
            "MERGE INTO d.a USING one JOIN d.s ON a.id = one.id WHEN MATCHED THEN DELETE",
            "MERGE INTO d.a USING (SELECT 1) ON true WHEN MATCHED THEN DELETE",
        ):
            with pytest.raises(SqlError):
                twins.sql(refused)
        with pytest.raises(ColumnError, match="4 columns"):
            twins.sql("MERGE INTO d.a USING one ON a.id = one.id WHEN NOT MATCHED THEN INSERT VALUES (1)")
    finally:
        spark.catalog.dropTempView("one")


def test_insert_in_all_forms(twins: Any, spark: SparkSession) -> None:
    sql = twins.sql
    frame = spark.sql("SELECT 100 AS id, 'k' AS name, 1L AS n, '5' AS p")
    assert sql("INSERT INTO d.a VALUES (100, 'k', 1, '5')").collect() == [(1, 1)]
    twins.insert("d.b", frame)
    sql("INSERT INTO TABLE d.a PARTITION (p = 5) (id, n) SELECT 101, 2")
    sql("INSERT INTO d.a (p, id) SELECT v, id FROM d.s")
    sql("WITH q AS (SELECT 7 AS id) INSERT INTO d.a BY NAME SELECT id, 'y' AS P FROM q")
    sql("INSERT INTO d.a PARTITION (p) WITH q AS (SELECT * FROM d.s) SELECT id, v, id, NULL FROM q WHERE v = 'z'")
    sql("INSERT INTO d.a PARTITION (p = NULL) (SELECT 1, 'last', 1)")
    for given in (
        "101 id, NULL name, 2L n, '5' p",
        "1 id, NULL name, NULL n, 'x' p",
        "4 id, NULL name, NULL n, 'y' p",
        "40 id, NULL name, NULL n, 'z' p",
        "7 id, NULL name, NULL n, 'y' p",
        "40 id, 'z' name, 40L n, NULL p",
        "1 id, 'last' name, 1L n, NULL p",
    ):
        twins.insert("d.b", spark.sql(f"SELECT {given}"))
    assert len(same(twins)) == 20
    for text, words in (
        ("INSERT INTO d.a SELECT 1, 2", "takes 4 columns"),
        ("INSERT INTO d.a (id, id) SELECT 1, 2", "twice"),
        ("INSERT INTO d.a PARTITION (q = 1) SELECT 1", "no partition key"),
        ("INSERT INTO d.a PARTITION (p = 1) (id, p) SELECT 1, 2", "PARTITION and by the columns"),
        ("INSERT INTO d.a (id, x, p) SELECT 1, 2, 3", "unknown: x"),
    ):
        with pytest.raises(ColumnError, match=words):
            sql(text)
    same(twins)


def test_insert_overwrite(twins: Any, spark: SparkSession) -> None:
    sql = twins.sql
    sql("INSERT OVERWRITE TABLE d.s SELECT id + 1, v FROM d.s WHERE id < 10")
    assert rows(twins, "d.s") == [(2, "x"), (5, "y")]
    sql("INSERT OVERWRITE d.a PARTITION (p = '1') SELECT id, v, 0 FROM d.s")
    twins.overwrite("d.b", spark.sql("SELECT 2 id, 'x' name, 0L n UNION ALL SELECT 5, 'y', 0L"), partition={"p": "1"})
    sql("INSERT OVERWRITE d.a PARTITION (p = '1') IF NOT EXISTS SELECT 9, '', 0")
    sql("INSERT OVERWRITE d.a PARTITION (p) SELECT id, name, n, 'new' FROM d.a WHERE p = '0'")
    old = twins.table("d.b").where("p = '0'")
    twins.overwrite("d.b", old.selectExpr("id", "name", "n", "'new' p"))
    sql("INSERT OVERWRITE d.a PARTITION (p = '0') SELECT 1, '', 0 WHERE false")
    twins.overwrite("d.b", spark.sql("SELECT 1 id, '' name, 0L n WHERE false"), partition={"p": "0"})
    assert len(same(twins)) == 8


@pytest.mark.parametrize("kind", ["full", "insert_only"])
def test_if_not_exists_replaces_nothing(acid: AcidSession, spark: SparkSession, kind: str) -> None:
    """Neither where rows tell the partition, nor where somebody makes it between a look and the lock."""
    properties = {"transactional_properties": "insert_only"} if kind == "insert_only" else {}
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "int", "q": "int"}, properties=properties)
    before = [(1, 1, 1), (2, 2, 2)]
    acid.sql("INSERT INTO d.t VALUES (1, 1, 1), (2, 2, 2)")
    for partition in ("p, q", "p = 1, q", "q = 1, p"):
        with pytest.raises(ColumnError, match="IF NOT EXISTS is of one partition"):
            acid.sql(f"INSERT OVERWRITE d.t PARTITION ({partition}) IF NOT EXISTS SELECT 9, 1, 1")
    frame = spark.sql("SELECT 9 id")
    assert acid.overwrite("d.t", frame, partition={"p": "1", "q": "01"}, if_not_exists=True) == 0
    assert acid.table("d.t").overwrite(frame, partition={"p": "2", "q": "2"}, if_not_exists=True) == 0
    assert rows(acid, "d.t") == before
    assert acid.overwrite("d.t", frame, partition={"p": "1", "q": "2"}, if_not_exists=True) == 1
    for given in ({}, {"partition": {"p": "1"}}, {"partition": {"p": "1", "q": "1"}, "where": "id = 1"}):
        with pytest.raises(ColumnError, match="if_not_exists is of one partition"):
            acid.overwrite("d.t", spark.sql("SELECT 9 id, 1 q"), if_not_exists=True, **given)
    assert rows(acid, "d.t") == sorted([*before, (9, 1, 2)])


def test_replace_where(twins: Any, spark: SparkSession) -> None:
    sql = twins.sql
    text = "INSERT INTO TABLE d.a REPLACE WHERE a.id IN (SELECT id + 1 FROM d.s) AND d.a.n IS DISTINCT FROM 5"
    done = sql(f"{text} SELECT id + 1, v, -1, '0' FROM d.s WHERE id < 5")
    assert done.collect()[0].asDict() == {"num_affected_rows": 2, "num_inserted_rows": 2}
    twins.delete("d.b", "id IN (2, 5, 41) AND n <> 5")
    twins.insert("d.b", spark.sql("SELECT 2 id, 'x' name, -1L n, '0' p UNION ALL SELECT 5, 'y', -1L, '0'"))
    assert len(same(twins)) == 13
    sql("WITH c AS (SELECT 'z' AS p, 3 AS id) INSERT INTO d.a BY NAME REPLACE WHERE p = 'z' OR id = 3 SELECT * FROM c")
    twins.overwrite("d.b", spark.sql("SELECT 3 id, null name, null n, 'z' p"), where="p = 'z' OR id = 3")
    same(twins)
    with pytest.raises(ColumnError, match="not one of those"):
        sql("INSERT INTO d.a REPLACE WHERE id = 3 VALUES (4, '', 0, '')")
    for words, said in (
        ("INSERT INTO d.a REPLACE WHERE SELECT 1", "a condition was expected"),
        ("INSERT OVERWRITE d.a REPLACE WHERE id = 1 SELECT 1", "REPLACE"),
        ("FROM d.s INSERT INTO d.a REPLACE WHERE id = 1 SELECT *", "of its own"),
    ):
        with pytest.raises(SqlError, match=said):
            sql(words)
    same(twins)


def test_insert_with_schema_evolution(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (id int, name string) PARTITIONED BY (p int)")
    acid.sql("INSERT WITH SCHEMA EVOLUTION INTO d.t SELECT 1, 'a', 7, date'2020-01-01' AS day")
    acid.sql("INSERT WITH SCHEMA EVOLUTION INTO TABLE d.t BY NAME SELECT 2 AS ID, 7 AS p, 1.5 AS x")
    acid.sql("INSERT WITH SCHEMA EVOLUTION INTO d.t PARTITION (p = 7) SELECT 3, 'c', date'2020-01-03', 2.5, 'z' AS z")
    assert [(c.name, c.type) for c in acid.connection.table("d", "t").columns] == [
        ("id", "int"), ("name", "string"), ("day", "date"), ("x", "decimal(2,1)"), ("z", "string"),
    ]  # fmt: skip
    found = acid.sql("SELECT id, name, day(day), double(x), z, p FROM d.t ORDER BY id").collect()
    assert found == [(1, "a", 1, None, None, 7), (2, None, None, 1.5, None, 7), (3, "c", 3, 2.5, "z", 7)]
    with pytest.raises(ColumnError, match="takes 6 columns"):
        acid.sql("INSERT WITH SCHEMA EVOLUTION INTO d.t SELECT 4, 'd'")
    with pytest.raises(SqlError, match="does not change the columns"):
        acid.sql("INSERT WITH SCHEMA EVOLUTION OVERWRITE d.t SELECT 4, 'd'")


def test_multi_insert_is_one_transaction_over_one_source(twins: Any, spark: SparkSession) -> None:
    before = same(twins)
    counts = twins.sql("""
        FROM (SELECT id, v, rand() AS r FROM d.s) AS src
        INSERT INTO TABLE d.a PARTITION (p = 'm') SELECT src.id, string(src.r), 1 WHERE src.id < 10
        INSERT INTO d.b SELECT id, string(r), count(*), 'm' GROUP BY id, r HAVING id < 10
        INSERT OVERWRITE TABLE d.s (v, id) SELECT DISTINCT 'one', 1
    """)
    assert counts.collect() == [(5, 5)]
    after = same(twins)
    assert len(after) == len(before) + 2
    assert rows(twins, "d.s") == [(1, "one")]
    assert twins.connection.call("get_valid_write_ids", request("d.a")).tblValidWriteIds[0].writeIdHighWaterMark == 2
    twins.sql("FROM d.s JOIN d.a AS t ON s.id = t.id INSERT INTO d.b SELECT t.id, s.v, t.n, p WHERE t.p = 'm'")
    assert len(rows(twins, "d.b")) == len(after) + 1
    for text in ("SELECT s.n, s.v, 1, p", "SELECT id, v, n, p"):  # d.s has no n, and both sides have an id
        with pytest.raises(AnalysisException):
            twins.sql(f"FROM d.s JOIN d.a AS t ON s.id = t.id INSERT INTO d.b {text}")
    with pytest.raises(ColumnError):
        twins.sql("FROM d.s INSERT INTO d.a SELECT id, v, 1, 'm' INSERT INTO d.b SELECT id")
    assert rows(twins, "d.a") == after
    with twins.transaction():
        with pytest.raises(ColumnError):
            twins.sql("FROM d.s INSERT INTO d.a SELECT id, v, 1, 'm' INSERT INTO d.b SELECT id")
        twins.sql("FROM d.s INSERT OVERWRITE d.s SELECT 3, v")
    assert (rows(twins, "d.a"), rows(twins, "d.s")) == (after, [(3, "one")])


def request(name: Any) -> Any:
    from hive_acid.wire import ttypes

    return ttypes.GetValidWriteIdsRequest(fullTableNames=[name])


def test_a_failed_statement_leaves_nothing(twins: Any) -> None:
    before = check_table(location_of(twins, "d.a"))
    for text in (
        "UPDATE d.a SET name = 1/0 WHERE id IN (SELECT id FROM d.nothing)",
        "UPDATE d.a SET n = raise_error('no')",
        "DELETE FROM d.a WHERE id = raise_error('no')",
    ):
        with pytest.raises(Exception, match=r"nothing|no"):
            twins.sql(text).collect()
    assert check_table(location_of(twins, "d.a")) == before
    for text, words in (
        ("UPDATE d.a SET (name, n) = ('a', 1)", "one column at a time"),
        ("UPDATE d.a SET s.v = 1 FROM d.s", "columns of d.a"),
        ("UPDATE d.a SET name", "= was expected"),
        ("UPDATE d.a name = 1", "SET was expected"),
        ("DELETE d.a", "DELETE FROM was expected"),
        ("DELETE FROM d.a WHERE id = 1 LIMIT", "not one value"),
        ("UPDATE d.a SET n = 1 FROM d.s JOIN d.b ON s.id = b.id WHERE true", "one source"),
    ):
        with pytest.raises(SqlError, match=words):
            twins.sql(text)
