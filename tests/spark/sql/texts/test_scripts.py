"""Several statements in one text, and columns that only Hive has."""

from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from hive_acid.errors import NoSuchObjectError, ScriptError, SqlError
from hive_acid.spark import AcidSession
from hive_acid.spark.sql.statements.script import statements_of

SCRIPTS = {
    "": [],
    ";;": [],
    " -- only words; of no statement\n/* and; more */ ;": [],
    "SELECT 1": ["SELECT 1"],
    "SELECT 1;": ["SELECT 1"],
    ";SELECT 1;;\n;SELECT 2;": ["SELECT 1", "SELECT 2"],
    "SELECT ';' ; SELECT \"a;b\"": ["SELECT ';'", 'SELECT "a;b"'],
    "SELECT 'it''s;' ; SELECT 'a\\';b'": ["SELECT 'it''s;'", "SELECT 'a\\';b'"],
    "SELECT `a;b` FROM `d``;`.t; SELECT r'\\;'": ["SELECT `a;b` FROM `d``;`.t", "SELECT r'\\;'"],
    "SELECT 1 -- one; two\n+ 1; SELECT /* ; */ 2": ["SELECT 1 -- one; two\n+ 1", "SELECT /* ; */ 2"],
    "SELECT /*+ BROADCAST(t) */ 1; /* x */ SELECT 2": ["SELECT /*+ BROADCAST(t) */ 1", "SELECT 2"],
    "SELECT 1 /* a /* nested; */ ; */; SELECT 2": ["SELECT 1", "SELECT 2"],
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_semicolons_part_statements_outside_of_quotes_and_comments(script: str) -> None:
    found = list(statements_of(script))
    assert [one.text.strip() for one in found] == SCRIPTS[script]
    assert [one.number for one in found] == list(range(1, len(found) + 1))
    for one in found:
        lines = one.text.split("\n")
        assert not "".join(lines[: one.line - 1]).strip()
        column = len(lines[one.line - 1]) - len(lines[one.line - 1].lstrip())
        assert script.split("\n")[one.line - 1][column:].startswith(one.text.strip().split("\n")[0].split(";")[0])


def test_a_script_runs_statement_by_statement(acid: AcidSession) -> None:
    results = acid.sql_script(
        """
        CREATE TABLE d.t (id int, name string);  -- one; and more
        INSERT INTO d.t VALUES (1, 'a;b'), (2, :name);
        SET spark.hive_acid.test = 2;
        UPDATE d.t SET name = 'c' WHERE id = ${spark.hive_acid.test};
        USE d;
        SELECT * FROM t ORDER BY id;
        """,
        {"name": "x;y"},
    )
    assert len(results) == 6
    assert [row.num_affected_rows for row in results[1].collect()] == [2]
    assert [tuple(row) for row in results[-1].collect()] == [(1, "a;b"), (2, "c")]
    assert acid.sql_script("-- nothing") == []


def test_an_error_names_the_statement_and_its_line(acid: AcidSession) -> None:
    script = "CREATE TABLE d.t (id int);\n\nINSERT INTO d.t\nVALUES (1);\n{}\n; INSERT INTO d.t VALUES (2)"
    wrong: dict[str, tuple[type[Exception], str]] = {
        "DROP TABLE d.t\n  PURGE NONSENSE": (SqlError, "statement 3, in line 5: .* at line 6, column 9: NONSENSE"),
        "  NONSENSE": (SqlError, "statement 3, in line 5: .* at line 5, column 3: NONSENSE"),
        "SELECT nothere FROM d.t": (AnalysisException, "statement 3, in line 5: .*nothere"),
        "DESCRIBE HISTORY d.nothere": (NoSuchObjectError, "statement 3, in line 5: the metastore has no table"),
        "SELECT * FROM d.t VERSION AS OF 1": (SqlError, "statement 3, in line 5: d.t: AS OF is not supported"),
    }
    for statement, (cause, said) in wrong.items():
        with pytest.raises(ScriptError, match=said) as raised:
            acid.sql_script(script.format(statement)).clear()
        assert (raised.value.number, raised.value.line) == (3, 5)
        assert isinstance(raised.value.__cause__, cause)
        assert acid.table("d.t").collect() == [(1,)], "those before it are done, and no other one"
        acid.drop_table("d.t")
    with pytest.raises(SqlError, match="not of type int"):
        acid.sql_script(1)  # type: ignore[arg-type]
    with pytest.raises(SqlError, match="a dict of names to values"):
        acid.sql_script("SELECT ?", [1])  # type: ignore[arg-type]


def test_a_script_is_one_transaction_within_a_block(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql("CREATE TABLE d.t (id int)")
    with pytest.raises(ScriptError, match="statement 2"), acid.transaction():
        acid.sql_script("INSERT INTO d.t SELECT * FROM {rows}; INSERT INTO d.t SELECT 'x'", rows=spark.range(3))
    assert acid.table("d.t").count() == 0


HIVES = ("INPUT__FILE__NAME", "BLOCK__OFFSET__INSIDE__FILE", "ROW__OFFSET__INSIDE__BLOCK", "ROW__IS__DELETED")


@pytest.mark.parametrize("column", HIVES)
def test_a_column_that_only_hive_has_is_refused_by_its_name(acid: AcidSession, column: Any) -> None:
    acid.sql("CREATE TABLE d.t (id int)")
    for text in (
        f"SELECT id, {column}\nFROM d.t",
        f"SELECT t.{column.lower()} FROM d.t",
        f"INSERT INTO d.t SELECT id FROM d.t WHERE {column} = 1",
        f"DELETE FROM d.t WHERE {column} = 1",
        f"EXPLAIN SELECT {column} FROM d.t",
    ):
        with pytest.raises(SqlError, match=f"{column} is a column of Hive's alone: .* at line 1, column"):
            acid.sql(text)
    assert acid.sql(f"SELECT id AS {column} FROM d.t").columns == [column]
    assert acid.sql(f"SELECT `{column}` FROM (SELECT id AS `{column}` FROM d.t)").columns == [column]
    acid.sql(f"CREATE TABLE d.u (`{column}` int)")
    assert acid.sql(f"SELECT `{column}` FROM d.u").count() == 0
    with pytest.raises(AnalysisException):
        acid.sql(f"SELECT {column} FROM range(3)")
