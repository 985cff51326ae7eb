"""Everyday forms of statements: CTEs before changes, VALUES with names, DEFAULT, STORED AS."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import ColumnError, SqlError, TableNotAcidError, UnsupportedTableError
from hive_acid.spark import AcidSession
from hive_acid.wire import ttypes

ROWS = [(1, 10), (2, 20), (3, 30)]


@pytest.fixture
def numbers(acid: AcidSession, spark: SparkSession) -> Any:
    """``d.t`` with the rows above, and ``d.s`` with the ids 2, 3 and 4, each with 100 times its id."""
    for name in ("d.t", "d.s"):
        acid.create_table(name, {"id": "int", "n": "int"})
    acid.insert("d.t", spark.createDataFrame(ROWS, "id int, n int"))
    acid.insert("d.s", spark.range(2, 5).selectExpr("int(id) id", "int(id * 100) n"))
    return acid


def rows(acid: AcidSession, name: Any = "d.t") -> Any:
    return sorted((tuple(row) for row in acid.table(name).collect()), key=str)


class UndoneError(Exception):
    """What is raised to have a transaction aborted."""


UPSERT = "WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)"
UPSERTED = {1: 10, 2: 5, 3: 30, 9: 6}
FORMS = {
    # A source of VALUES, or with other names for its columns.
    f"MERGE INTO d.t USING (VALUES (2, 5), (9, 6)) AS s(id, n) ON t.id = s.id {UPSERT}": UPSERTED,
    f"MERGE INTO d.t USING VALUES (2, 5), (9, 6) AS s(id, n) ON t.id = s.id {UPSERT}": UPSERTED,
    f"MERGE INTO d.t USING (SELECT 2, 5 UNION ALL SELECT 9, 6) s (id, n) ON t.id = s.id {UPSERT}": UPSERTED,
    f"MERGE INTO d.t USING d.s AS s(n, id) ON t.id * 100 = s.id {UPSERT}":
        {1: 10, 2: 2, 3: 3, 400: 4},
    "UPDATE d.t SET n = x.b FROM (VALUES (1, 7)) AS x(a, `b`) WHERE t.id = x.a": {1: 7, 2: 20, 3: 30},
    "DELETE FROM d.t USING d.s AS x(k, m) WHERE t.id = x.k": {1: 10},
    # CTEs: in the source, in conditions, in values, under names that the table and its columns have.
    f"WITH s AS (VALUES (2, 5), (9, 6) AS v(id, n)) MERGE INTO d.t USING s ON t.id = s.id {UPSERT}": UPSERTED,
    f"WITH q(id, n) AS (VALUES (2, 5), (9, 6)) MERGE INTO d.t USING q AS s ON t.id = s.id {UPSERT}": UPSERTED,
    f"WITH a AS (SELECT 2 AS id), b AS (SELECT id, 5 AS n FROM a) "
    f"MERGE INTO d.t USING (SELECT * FROM b) AS s ON t.id = s.id {UPSERT}": {1: 10, 2: 5, 3: 30},
    f"WITH a AS (SELECT 9 AS id) MERGE INTO d.t USING (WITH a AS (SELECT 2 AS id, 5 AS n) SELECT * FROM a) AS s "
    f"ON t.id = s.id {UPSERT}": {1: 10, 2: 5, 3: 30},
    "WITH k AS (SELECT id FROM d.s WHERE n > 200) MERGE INTO d.t USING d.s ON t.id = s.id "
    "WHEN MATCHED AND t.id IN (SELECT id FROM k) THEN DELETE": {1: 10, 2: 20},
    "WITH k AS (SELECT id FROM d.s WHERE n > 200) UPDATE d.t SET n = 0 WHERE id IN (SELECT id FROM k)":
        {1: 10, 2: 20, 3: 0},
    "WITH k AS (SELECT max(n) AS m FROM d.s) UPDATE d.t SET n = (SELECT k.m FROM k) WHERE id = 1":
        {1: 400, 2: 20, 3: 30},
    "WITH k AS (SELECT 1 AS id), j AS (SELECT id + 1 AS id FROM k) "
    "UPDATE d.t AS k SET k.n = 0 WHERE k.id IN (SELECT j.id FROM j)": {1: 10, 2: 0, 3: 30},
    "WITH q AS (SELECT * FROM d.s) UPDATE d.t SET n = q.n FROM q WHERE t.id = q.id": {1: 10, 2: 200, 3: 300},
    "WITH t AS (SELECT 1 AS id) DELETE FROM d.t WHERE id IN (SELECT id FROM t)": {2: 20, 3: 30},
    "WITH t AS (SELECT 1 AS id) DELETE FROM d.t WHERE id IN (SELECT id FROM d.t WHERE n > 10)": {1: 10},
    "WITH k AS (SELECT 1 AS id) DELETE FROM d.t WHERE EXISTS (WITH k AS (SELECT 2 AS id) SELECT 1 FROM k "
    "WHERE k.id = t.id)": {1: 10, 3: 30},
    "WITH q AS (SELECT * FROM d.s) DELETE FROM d.t USING q AS x WHERE t.id = x.id": {1: 10},
    "WITH q AS (SELECT 4 AS id) INSERT INTO d.t SELECT id, 40 FROM q": {1: 10, 2: 20, 3: 30, 4: 40},
    "INSERT INTO d.t WITH q AS (SELECT 4 AS id) SELECT id, 40 FROM q": {1: 10, 2: 20, 3: 30, 4: 40},
    "WITH q AS (SELECT 4 AS id) INSERT INTO d.t WITH r AS (SELECT id, 40 FROM q) SELECT * FROM r":
        {1: 10, 2: 20, 3: 30, 4: 40},
    "WITH q AS (SELECT 3 AS id) INSERT INTO d.t REPLACE WHERE id IN (SELECT id FROM q) VALUES (3, 33)":
        {1: 10, 2: 20, 3: 33},
    "WITH q AS (SELECT 3 AS id) FROM d.s INSERT INTO d.t SELECT id + 10, n WHERE id IN (SELECT id FROM q) "
    "INSERT INTO d.t SELECT id + 20, n WHERE id > (SELECT max(id) FROM q)": {1: 10, 2: 20, 3: 30, 13: 300, 24: 400},
    # DEFAULT: of n it is -1, of id there is none.
    "INSERT INTO d.t VALUES (4, DEFAULT), (default, 5)": {1: 10, 2: 20, 3: 30, 4: -1, None: 5},
    "INSERT INTO d.t (n, id) VALUES (DEFAULT, 4)": {1: 10, 2: 20, 3: 30, 4: -1},
    "INSERT INTO d.t SELECT id + 2, DEFAULT FROM d.s WHERE id = 2": {1: 10, 2: 20, 3: 30, 4: -1},
    "UPDATE d.t SET n = DEFAULT WHERE id = 1": {1: -1, 2: 20, 3: 30},
    "UPDATE d.t AS x SET x.n = default, id = 9 WHERE id = 1": {9: -1, 2: 20, 3: 30},
    "MERGE INTO d.t USING d.s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = DEFAULT "
    "WHEN NOT MATCHED THEN INSERT VALUES (s.id, DEFAULT)": {1: 10, 2: -1, 3: -1, 4: -1},
}  # fmt: skip


def test_forms(numbers: Any, spark: SparkSession) -> None:
    default = ttypes.SQLDefaultConstraint(
        "hive", "d", "t", "n", "-(1)", "n_default", enable_cstr=True, validate_cstr=False, rely_cstr=False
    )
    numbers.connection.call("add_default_constraint", ttypes.AddDefaultConstraintRequest([default]))
    wrong = {}
    for text, expected in FORMS.items():
        try:
            with numbers.transaction():
                numbers.sql(text)
                found = rows(numbers)
                if found != sorted(expected.items(), key=str):  # type: ignore[attr-defined]
                    wrong[text] = found
                raise UndoneError
        except UndoneError:
            pass
        except Exception as error:
            wrong[text] = str(error)[:200]
    assert not wrong, wrong
    assert rows(numbers) == ROWS
    assert not any(view.isTemporary for view in spark.catalog.listTables())


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (
            "MERGE INTO d.t USING (VALUES (1, 2)) AS s(id, id) ON t.id = s.id WHEN MATCHED THEN DELETE",
            ColumnError,
            "twice",
        ),
        ("MERGE INTO d.t USING (VALUES (1, 2)) AS s(id) ON t.id = s.id WHEN MATCHED THEN DELETE", Exception, "column"),
        ("WITH q AS (SELECT 1 AS id) UPDATE q SET id = 2", Exception, "q"),
        ("UPDATE d.t SET n = DEFAULT + 1", ColumnError, "DEFAULT"),
        ("UPDATE d.t SET n = `default`", ColumnError, "default"),
        ("INSERT INTO d.t SELECT * FROM (SELECT 1, DEFAULT)", Exception, "DEFAULT"),
    ],
)
def test_what_is_no_form_of_them_is_refused(numbers: Any, text: Any, error: Any, words: Any) -> None:
    with pytest.raises(error, match=words):
        numbers.sql(text)
    assert rows(numbers) == ROWS


def test_names_of_columns_behind_an_alias_are_not_those_of_the_table(numbers: Any) -> None:
    """A WHERE that speaks of them says nothing of the table's columns that are called so."""
    sql = numbers.sql
    assert sorted(map(tuple, sql("SELECT * FROM d.t AS s(n, id) WHERE id = 10").collect())) == [(1, 10)]
    assert sorted(map(tuple, sql("SELECT * FROM d.t AS s(n, id) WHERE s.n >= 2 AND id < 30").collect())) == [(2, 20)]
    unpivot = "SELECT k, id FROM (SELECT id AS a, n AS b FROM d.t) UNPIVOT (id FOR k IN (a, b)) WHERE id = 30"
    assert sql(unpivot).collect() == [("b", 30)]


FORMATS = ["orc", "PARQUET", "TextFile", "JSONFILE"]
INSERT_ONLY = "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"


@pytest.mark.parametrize("form", FORMATS)
def test_insert_only_tables_are_stored_in_every_format(acid: AcidSession, form: Any) -> None:
    sql = acid.sql
    sql(f"CREATE TABLE d.t (id int, name string) PARTITIONED BY (p int) STORED AS {form} {INSERT_ONLY}")
    sql("INSERT INTO d.t VALUES (1, 'a', 1), (2, NULL, 2)")
    sql("INSERT OVERWRITE d.t PARTITION (p = 2) SELECT 3, 'c'")
    assert rows(acid) == [(1, "a", 1), (3, "c", 2)]
    sql(f"CREATE TABLE d.c STORED AS {form} {INSERT_ONLY} AS SELECT id, name FROM d.t")
    sql("CREATE TABLE d.l LIKE d.t")
    sql("INSERT INTO d.l SELECT * FROM d.t")
    assert (rows(acid, "d.c"), rows(acid, "d.l")) == ([(1, "a"), (3, "c")], rows(acid))
    made = {name: acid.connection.wire_table("d", name).sd for name in "tcl"}
    kinds = {(of.inputFormat, of.outputFormat, of.serdeInfo.serializationLib) for of in made.values()}
    assert len(kinds) == 1
    assert {"orc": "Orc", "PARQUET": "Parquet", "TextFile": "Text", "JSONFILE": "Text"}[form] in str(kinds)
    with pytest.raises(TableNotAcidError, match="insert-only"):
        sql("DELETE FROM d.t")


KINDS = [
    "'TRANSACTIONAL'='TRUE', 'transactional_properties'='INSERT_ONLY'",
    "'Transactional_Properties'='Insert_Only', 'Transactional'='true'",
    "'transactional'='True', 'TRANSACTIONAL_PROPERTIES'='insert_only'",
]


@pytest.mark.parametrize("kind", KINDS)
def test_the_case_of_the_words_for_a_kind_does_not_count(acid: AcidSession, kind: Any) -> None:
    acid.sql(f"CREATE TABLE d.t (id int) STORED AS PARQUET TBLPROPERTIES ({kind})")
    acid.sql("INSERT INTO d.t VALUES (1)")
    assert rows(acid) == [(1,)]
    assert not acid.connection.table("d", "t").is_full_acid
    acid.sql(f"CREATE TABLE d.l LIKE d.t TBLPROPERTIES ({kind})")
    acid.create_table("d.v", {"id": "int"}, properties={"TRANSACTIONAL": "False"})
    acid.sql(f"ALTER TABLE d.v SET TBLPROPERTIES ({kind})")
    assert {acid.connection.table("d", name).parameters["transactional_properties"] for name in "tlv"} == {
        "insert_only"
    }


def test_plain_tables_are_stored_in_every_format(acid: AcidSession, spark: SparkSession) -> None:
    with hive_acid.spark.session(
        spark, acid.connection.uri, settings={"hive.support.concurrency": "false", "hive.txn.manager": _DUMMY}
    ) as plain:
        for form in FORMATS:
            acid.sql(f"CREATE TABLE d.{form} (id int) STORED AS {form} TBLPROPERTIES ('transactional'='false')")
            assert not acid.connection.table("d", form).is_transactional
            if form in ("orc", "PARQUET"):
                plain.sql(f"INSERT INTO d.{form} VALUES (1), (2)")
                assert rows(plain, f"d.{form}") == [(1,), (2,)]


_DUMMY = "org.apache.hadoop.hive.ql.lockmgr.DummyTxnManager"


def test_full_acid_tables_are_orc(acid: AcidSession, spark: SparkSession) -> None:
    for text in (
        "CREATE TABLE d.x (id int) STORED AS PARQUET",
        "CREATE TABLE d.x STORED AS PARQUET AS SELECT 1 AS id",
        "CREATE TABLE d.x (id int) STORED AS PARQUET TBLPROPERTIES ('transactional'='true')",
    ):
        with pytest.raises(SqlError, match=r"STORED AS ORC.*insert_only.*'transactional'='false'"):
            acid.sql(text)
    with pytest.raises(UnsupportedTableError, match="insert_only"):
        acid.create_table("d.x", {"id": "int"}, stored_as="parquet")
    with pytest.raises(UnsupportedTableError, match="STORED AS sequencefile is not written here"):
        acid.sql(f"CREATE TABLE d.x (id int) STORED AS sequencefile {INSERT_ONLY}")
    assert acid.connection.call("get_all_tables", "d") == []
