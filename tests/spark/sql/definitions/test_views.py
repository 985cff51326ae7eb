"""Views of the metastore: each query shows what its text would show in its place, of one snapshot."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from hive_acid.errors import (
    AlreadyExistsError,
    ColumnError,
    SqlError,
    TransactionClosedError,
    ViewError,
)
from hive_acid.spark import AcidSession
from hive_acid.wire import ttypes

ROWS = [(1, "ab", "north", 10), (2, "ab ", "south", -20), (3, None, "north", None), (4, "x", None, 10)]
SCHEMA = "id int, code char(4), place string, n bigint"

VIEWS = {
    "SELECT * FROM d.t": "",
    "SELECT id, code, n FROM d.t WHERE code = 'ab'": "",
    "SELECT t.place, count(*) AS c, sum(n) AS s FROM d.t GROUP BY t.place": "",
    "SELECT t.id, u.code, d.u.n FROM d.t JOIN d.u ON t.id = u.id AND t.code = u.code": "",
    "WITH c AS (SELECT id FROM d.t WHERE n > 0) SELECT * FROM d.u WHERE id IN (SELECT id FROM c)": "",
    "SELECT id, place FROM d.t UNION ALL SELECT id, place FROM d.u": "",
    "SELECT *, row_number() OVER (PARTITION BY place ORDER BY id) AS r FROM d.t": "",
    "SELECT id, n, place FROM d.t": "(k COMMENT 'the key', m, `a place`)",
    "FROM d.t SELECT DISTINCT place": "",
    "TABLE d.t": "",
    "SELECT * FROM (VALUES (1, 'ab'), (2, '{x}')) AS v(id, code)": "",
}
"""Queries, and the names of columns that a view of each gives."""

READS = (
    "SELECT * FROM {v}",
    "SELECT count(*) FROM {v} AS w",
    "SELECT w.* FROM {v} w WHERE w.{c} IS NOT NULL",
    "SELECT {v}.{c} FROM {v} ORDER BY 1 LIMIT 2",
    "SELECT a.{c} FROM {v} a LEFT JOIN {v} b ON a.{c} = b.{c}",
    "SELECT id FROM d.t WHERE EXISTS (SELECT 1 FROM {v} w WHERE string(w.{c}) = string(t.id))",
    "WITH w AS (SELECT * FROM {v}) SELECT x.{c} FROM w x, d.u",
    "SELECT max({c}) FROM (SELECT * FROM {v} UNION SELECT * FROM {v})",
)


def rows(frame: Any) -> list[Any]:
    return sorted((tuple(row) for row in frame.collect()), key=repr)


@pytest.fixture
def filled(acid: AcidSession, spark: SparkSession, tmp_path: Path) -> Iterator[AcidSession]:
    """Two tables in `d`, and copies of them in Spark's own database `s`."""
    spark.sql(f"CREATE DATABASE s LOCATION '{tmp_path}/s'")
    for name, some in (("t", ROWS), ("u", ROWS[1:])):
        acid.sql(f"CREATE TABLE d.{name} ({SCHEMA}) PARTITIONED BY (place)")
        acid.sql(f"INSERT INTO d.{name} (id, code, place, n) VALUES {values(some)}")
        spark.sql(f"CREATE TABLE s.{name} (id int, code char(4), n bigint, place string) USING orc")
        spark.sql(f"INSERT INTO s.{name} (id, code, place, n) VALUES {values(some)}")
    yield acid
    spark.sql("DROP DATABASE s CASCADE")


def values(some: Any) -> str:
    return ", ".join("(" + ", ".join("NULL" if v is None else repr(v) for v in row) + ")" for row in some)


@pytest.mark.parametrize("query", VIEWS)
def test_a_view_shows_what_its_text_shows(filled: AcidSession, query: str) -> None:
    """Text in its place is the oracle, on the same tables: what texts show is tested against plain Spark elsewhere."""
    names = VIEWS[query]
    filled.sql(f"CREATE VIEW d.v {names} AS {query}")
    filled.sql("CREATE VIEW d.over AS SELECT * FROM d.v")
    called = [column.name for column in filled.connection.table("d", "v").columns]
    text = f"(SELECT * FROM ({query}) AS x({', '.join(f'`{name}`' for name in called)}))"
    for view in ("v", "over"):
        assert rows(filled.table(f"d.{view}")) == rows(filled.sql(f"SELECT * FROM {text}"))
        for read in READS:
            seen = filled.sql(read.replace("{v}.", f"{view}.").format(v=f"d.{view}", c=f"`{called[0]}`"))
            inline = read.replace("{v}.", "").replace("{v} AS", "{v}").replace("FROM {v} ORDER", "FROM {v} y ORDER")
            meant = filled.sql(inline.format(v=text, c=f"`{called[0]}`"))
            assert (seen.columns, rows(seen)) == (meant.columns, rows(meant)), read


@pytest.mark.parametrize("query", VIEWS)
def test_a_view_is_as_plain_sparks(filled: AcidSession, spark: SparkSession, query: str) -> None:
    names = VIEWS[query]
    spark.sql(f"CREATE VIEW s.v {names} AS {query.replace('d.', 's.')}")
    filled.sql(f"CREATE VIEW d.v {names} AS {query}")
    assert rows(filled.sql("SELECT * FROM d.v")) == rows(spark.table("s.v"))
    assert filled.table("d.v").columns == spark.table("s.v").columns


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO d.u (id, code, place, n) SELECT id, code, place, n FROM {0}",
        "UPDATE d.u SET n = 0 WHERE id IN (SELECT id FROM {0})",
        "DELETE FROM d.u WHERE EXISTS (SELECT 1 FROM {0} w WHERE w.code = u.code)",
        "MERGE INTO d.u USING {0} AS s ON u.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n + 1 "
        "WHEN NOT MATCHED THEN INSERT *",
        "INSERT OVERWRITE d.u SELECT id, code, n, place FROM {0}",
        "UPDATE d.u SET n = s.n FROM {0} AS s WHERE s.id = u.id",
    ],
)
def test_changes_read_views(filled: AcidSession, statement: str) -> None:
    text = "SELECT id, code, n + 1 AS n, place FROM d.t WHERE code = 'ab'"
    filled.sql(f"CREATE VIEW d.v AS {text}")
    filled.sql("CREATE TABLE d.kept AS SELECT * FROM d.u")
    filled.sql(statement.format(f"({text})"))
    meant = rows(filled.table("d.u"))
    filled.sql("INSERT OVERWRITE d.u SELECT id, code, n, place FROM d.kept")
    filled.sql(statement.format("d.v"))
    assert rows(filled.table("d.u")) == meant


def test_each_query_has_one_snapshot(filled: AcidSession) -> None:
    filled.sql("CREATE VIEW d.v AS SELECT t.id AS a, u.id AS b FROM d.t JOIN d.u ON t.id = u.id")
    before = filled.sql("SELECT v.a, v.b FROM d.v JOIN d.t ON t.id = v.a")
    with filled.snapshot():
        within = filled.table("d.v")
    filled.sql("DELETE FROM d.t")
    assert rows(before) == rows(within) == [(2, 2), (3, 3), (4, 4)]
    assert filled.sql("SELECT * FROM d.v").isEmpty()
    with filled.transaction():
        filled.sql("INSERT INTO d.t (id, place) VALUES (3, 'own')")
        assert rows(filled.table("d.v")) == [(3, 3)]


def test_names_in_a_view_are_those_of_where_it_was_made(filled: AcidSession, spark: SparkSession) -> None:
    filled.sql("CREATE DATABASE e")
    filled.sql("CREATE TABLE e.t (id int)")
    filled.sql("USE d")
    filled.sql("CREATE VIEW e.v AS SELECT id FROM t WHERE id = 1")
    filled.sql("USE e")
    spark.range(7).createOrReplaceTempView("t")
    try:
        assert rows(filled.sql("SELECT * FROM v")) == [(1,)]
        spark.range(3).createOrReplaceTempView("v")
        assert filled.sql("SELECT * FROM v").count() == 3
        assert filled.sql("SELECT * FROM e.v").count() == 1
    finally:
        spark.catalog.dropTempView("t")
        spark.catalog.dropTempView("v")
        filled.sql("USE default")


def stored(acid: AcidSession, name: str, text: str, columns: dict[str, str], **parameters: str) -> None:
    """A view as another client stores it."""
    fields = [ttypes.FieldSchema(name=column, type=kind) for column, kind in columns.items()]
    descriptor = ttypes.StorageDescriptor(cols=fields, serdeInfo=ttypes.SerDeInfo(parameters={}), parameters={})
    acid.connection.call(
        "create_table",
        ttypes.Table(
            tableName=name,
            dbName="d",
            owner="somebody",
            sd=descriptor,
            partitionKeys=[],
            parameters=parameters,
            tableType="VIRTUAL_VIEW",
            viewOriginalText="of no use here",
            viewExpandedText=text,
        ),
    )


def test_views_of_others(filled: AcidSession) -> None:
    """Hive writes each name in full; Spark keeps the database of USE beside the text, and what the columns were."""
    filled.sql("CREATE DATABASE IF NOT EXISTS e")
    filled.sql("CREATE TABLE e.t (id int)")
    filled.sql("INSERT INTO e.t VALUES (77)")
    stored(filled, "of_hive", "SELECT `t`.`id` AS `k` FROM `d`.`t` WHERE `t`.`id` > 3", {"k": "int"})
    of_spark = {"view.catalogAndNamespace.numParts": "2", "view.catalogAndNamespace.part.0": "spark_catalog"}
    out = {"view.query.out.numCols": "1", "view.query.out.col.0": "id"}
    stored(
        filled,
        "of_spark",
        "SELECT * FROM t",
        {"renamed": "int"},
        **of_spark,
        **{"view.catalogAndNamespace.part.1": "e"},
        **out,
    )
    assert rows(filled.sql("SELECT k FROM d.of_hive")) == [(4,)]
    filled.sql("ALTER TABLE e.t ADD COLUMNS (more string)")
    assert rows(filled.sql("SELECT renamed FROM d.of_spark")) == rows(filled.table("d.of_spark")) == [(77,)]


def test_a_view_shows_what_is_told_about_a_table(filled: AcidSession) -> None:
    filled.sql("USE d")
    filled.sql("CREATE VIEW v AS SELECT path, rows FROM t.files")
    filled.sql("USE default")
    assert rows(filled.sql("SELECT * FROM d.v")) == rows(filled.sql("SELECT path, rows FROM d.t.files"))
    with pytest.raises(AnalysisException, match=r"`d`\.`v`(\.`files`)?"):
        filled.sql("SELECT * FROM d.v.files")


def test_columns_stay_those_of_the_view(filled: AcidSession) -> None:
    filled.sql("CREATE VIEW d.v (a, b, c, e) AS SELECT * FROM d.t")
    shown = rows(filled.sql("SELECT * FROM d.v"))
    filled.sql("ALTER TABLE d.t ADD COLUMNS (more string)")
    assert rows(filled.sql("SELECT * FROM d.v")) == shown
    filled.sql("ALTER TABLE d.t RENAME COLUMN n TO other")
    with pytest.raises(ColumnError, match=r"d\.v shows the columns n, which its query does not have"):
        filled.sql("SELECT * FROM d.v")
    filled.sql("ALTER VIEW d.v AS SELECT id, other FROM d.t")
    assert filled.table("d.v").columns == ["id", "other"]
    filled.sql("DROP TABLE d.t")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        filled.sql("SELECT * FROM d.v").collect()


def test_views_are_made_changed_and_dropped(filled: AcidSession) -> None:
    sql = filled.sql
    sql("CREATE VIEW d.v (k COMMENT 'it''s', m) COMMENT 'some' TBLPROPERTIES ('x' = 'y') AS SELECT id, n FROM d.t")
    (text,) = sql("SHOW CREATE TABLE d.v").collect()[0]
    sql(text.replace("`v`", "`again`"))
    assert rows(sql("SELECT k, m FROM d.again")) == rows(sql("SELECT id, n FROM d.t"))
    again = sql("SHOW CREATE TABLE d.again").collect()[0][0]
    assert again == text.replace("`v`", "`again`")
    assert [tuple(row)[:2] for row in sql("SHOW VIEWS IN d").collect()] == [("d", "again"), ("d", "v")]
    assert [tuple(row)[:2] for row in sql("SHOW VIEWS IN d LIKE 'a*'").collect()] == [("d", "again")]
    described = {row.col_name: row.data_type for row in sql("DESCRIBE EXTENDED d.v").collect()}
    assert described["Type"] == "VIEW"
    assert described["View Text"] == "SELECT id, n FROM `d`.`t`"
    assert (described["k"], described["m"]) == ("int", "bigint")
    sql("CREATE VIEW IF NOT EXISTS d.v AS SELECT 1 AS one")
    with pytest.raises(AlreadyExistsError):
        sql("CREATE VIEW d.v AS SELECT 1 AS one")
    with pytest.raises(AlreadyExistsError, match="is a table"):
        sql("CREATE OR REPLACE VIEW d.t AS SELECT 1 AS one")
    sql("ALTER VIEW d.v SET TBLPROPERTIES ('x' = 'z', 'w' = '1')")
    sql("ALTER VIEW d.v UNSET TBLPROPERTIES ('w')")
    sql("ALTER VIEW d.v AS SELECT place FROM d.t WHERE id = 1")
    view = filled.connection.table("d", "v")
    assert (view.parameters["x"], view.parameters["comment"], "w" in view.parameters) == ("z", "some", False)
    assert rows(sql("SELECT * FROM d.v")) == [("north",)]
    sql("CREATE OR REPLACE VIEW d.v AS SELECT code FROM d.t WHERE id = 4")
    assert "comment" not in filled.connection.table("d", "v").parameters
    sql("ALTER VIEW d.v RENAME TO d.w")
    assert [tuple(row) for row in sql("SELECT trim(code) FROM d.w").collect()] == [("x",)]
    sql("DROP VIEW d.w")
    sql("DROP VIEW IF EXISTS d.again")
    assert sql("SHOW VIEWS IN d").isEmpty()


@pytest.mark.parametrize(
    ("statement", "error", "words"),
    [
        ("DROP TABLE d.v", SqlError, r"d\.v is a view"),
        ("DROP VIEW d.t", ViewError, r"d\.t is a table, and no view: say DROP TABLE"),
        ("ALTER VIEW d.t AS SELECT 1 AS one", ViewError, "say ALTER TABLE"),
        ("ALTER TABLE d.v ADD COLUMNS (x int)", SqlError, r"d\.v is a view"),
        ("INSERT INTO d.v VALUES (1)", SqlError, r"d\.v is a view"),
        ("UPDATE d.v SET id = 1", SqlError, r"d\.v is a view"),
        ("DELETE FROM d.v", SqlError, r"d\.v is a view"),
        ("MERGE INTO d.v USING d.t ON v.id = t.id WHEN MATCHED THEN DELETE", SqlError, r"d\.v is a view"),
        ("TRUNCATE TABLE d.v", SqlError, r"d\.v is a view"),
        ("ANALYZE TABLE d.v COMPUTE STATISTICS", SqlError, r"d\.v is a view"),
        ("CREATE OR REPLACE VIEW d.v AS SELECT * FROM d.over", SqlError, "shows itself"),
        ("ALTER VIEW d.v AS SELECT * FROM d.over", SqlError, "shows itself"),
        ("CREATE OR REPLACE VIEW IF NOT EXISTS d.v AS SELECT 1", SqlError, "exclude each other"),
        ("CREATE VIEW d.w (a, a) AS SELECT id, n FROM d.t", ColumnError, "a"),
        ("CREATE VIEW d.w AS SELECT id, id FROM d.t", ColumnError, "id"),
        ("CREATE VIEW d.w (a) AS SELECT id, n FROM d.t", ColumnError, "names 1 columns, and its query has 2"),
        ("CREATE VIEW d.w AS SELECT * FROM d.t, four", SqlError, "four is not the metastore's"),
        ("CREATE VIEW d.w PARTITIONED ON (id) AS SELECT * FROM d.t", SqlError, "CREATE VIEW"),
        ("ALTER VIEW d.v WITH SCHEMA EVOLUTION", SqlError, "(?i)alter view|cannot read"),
        ("CREATE TEMPORARY VIEW d.w AS SELECT * FROM d.t", SqlError, "has no database"),
    ],
)
def test_what_views_do_not_take(
    filled: AcidSession, spark: SparkSession, statement: str, error: type[Exception], words: str
) -> None:
    filled.sql("CREATE VIEW d.v AS SELECT id FROM d.t")
    filled.sql("CREATE VIEW d.over AS SELECT id FROM d.v")
    spark.range(4).createOrReplaceTempView("four")
    try:
        with pytest.raises(error, match=words):
            filled.sql(statement)
    finally:
        spark.catalog.dropTempView("four")
    assert rows(filled.sql("SELECT * FROM d.over")) == [(1,), (2,), (3,), (4,)]


def test_verbs_know_views(filled: AcidSession) -> None:
    filled.sql("CREATE VIEW d.v AS SELECT id, n FROM d.t")
    assert rows(filled.table("d.v", where="id = 1")) == [(1, 10)]
    with pytest.raises(ViewError, match="has no rows of its own"):
        filled.table("d.v", row_id=True)
    with pytest.raises(ViewError, match="has no rows of its own"):
        filled.update("d.v", {"n": "1"})
    with pytest.raises(ViewError, match="has no rows of its own"):
        filled.insert("d.v", filled.spark.range(1))
    with filled.transaction(), pytest.raises(TransactionClosedError):
        filled.sql("DROP VIEW d.v")
