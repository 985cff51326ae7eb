"""CREATE OR REPLACE TABLE: a table that is there, and defined in the same way, gets other rows at once."""

from typing import Any

import pytest

from hive_acid.errors import AlreadyExistsError, ColumnError, SqlError, UnsupportedTableError
from hive_acid.spark import AcidSession

KINDS = {
    "plain": "",
    "partitioned": "PARTITIONED BY (p)",
    "bucketed": "CLUSTERED BY (id) INTO 2 BUCKETS",
    "both": "PARTITIONED BY (p) CLUSTERED BY (id) INTO 3 BUCKETS",
    "insert-only": "TBLPROPERTIES ('transactional_properties' = 'insert_only')",
}
OLD = "SELECT CAST(id AS int) AS id, CAST('a' AS char(3)) AS c, string(id % 2) AS p FROM range(6)"
NEW = "SELECT CAST(id AS int) AS id, CAST('bc' AS char(3)) AS c, '7' AS p FROM range(4)"


def rows(frame: Any) -> list[Any]:
    return sorted(tuple(row) for row in frame.collect())


def replaced(acid: AcidSession, clauses: str, query: str) -> Any:
    return acid.sql(f"/* dbt */ create or replace table d.t {clauses} as {query}")


@pytest.mark.parametrize("clauses", KINDS.values(), ids=KINDS)
def test_rows_are_replaced(acid: AcidSession, clauses: str) -> None:
    """Which are those of the query by itself, also of one that reads the table."""
    assert replaced(acid, clauses, OLD).collect()[0].num_inserted_rows == 6
    before, id_before = acid.table("d.t"), acid.connection.table("d", "t").id
    said = rows(before)
    assert said == rows(acid.sql(OLD))
    assert replaced(acid, clauses, NEW).collect()[0].num_inserted_rows == 4
    assert rows(acid.table("d.t")) == rows(acid.sql(NEW))
    assert rows(before) == said
    of_itself = "SELECT id + 10 AS id, c, p FROM d.t WHERE id > 1"
    meant = rows(acid.sql(of_itself))
    replaced(acid, clauses, of_itself)
    assert rows(acid.table("d.t")) == meant == [(12, "bc", "7"), (13, "bc", "7")]
    assert acid.connection.table("d", "t").id == id_before


def test_properties_are_set_and_a_definition_without_rows_leaves_none(acid: AcidSession) -> None:
    acid.sql("CREATE OR REPLACE TABLE d.t (id int, c char(3)) TBLPROPERTIES ('x' = '1', 'y' = '1')")
    acid.sql("INSERT INTO d.t VALUES (1, 'a')")
    acid.sql("CREATE OR REPLACE TABLE d.t (ID int, c CHAR(3)) COMMENT 'new' TBLPROPERTIES ('x' = '2')")
    assert acid.table("d.t").isEmpty()
    assert acid.connection.table("d", "t").parameters.items() >= {"x": "2", "y": "1", "comment": "new"}.items()


@pytest.mark.parametrize(
    ("clauses", "query", "words"),
    [
        ("PARTITIONED BY (p) TBLPROPERTIES ('transactional_properties' = 'insert_only')", NEW, "other kind"),
        ("PARTITIONED BY (p) LOCATION '/nowhere' TBLPROPERTIES ('transactional' = 'false')", NEW, "other kind"),
        ("PARTITIONED BY (p) STORED AS PARQUET TBLPROPERTIES ('transactional' = 'false')", NEW, "other format, kind"),
    ],
)
def test_another_definition_is_refused(acid: AcidSession, clauses: str, query: str, words: str) -> None:
    replaced(acid, "PARTITIONED BY (p)", OLD)
    with pytest.raises(UnsupportedTableError, match=words):
        replaced(acid, clauses, query)
    assert rows(acid.table("d.t")) == rows(acid.sql(OLD))


def test_what_fails_changes_nothing(acid: AcidSession) -> None:
    replaced(acid, "TBLPROPERTIES ('x' = '1')", OLD)
    with pytest.raises(Exception, match="here it ends"):
        replaced(
            acid,
            "TBLPROPERTIES ('x' = '2')",
            "SELECT id, CAST(if(id > 3, raise_error('here it ends'), c) AS char(3)) AS c, p FROM d.t",
        )
    assert rows(acid.table("d.t")) == rows(acid.sql(OLD))
    assert acid.connection.table("d", "t").parameters["x"] == "1"


def test_what_replaces_nothing(acid: AcidSession) -> None:
    acid.sql("CREATE VIEW d.v AS SELECT 1 AS one")
    acid.sql("CREATE TABLE d.t (id int)")
    for statement, error, words in (
        ("CREATE OR REPLACE TABLE d.v AS SELECT 1 AS one", SqlError, r"d\.v is a view"),
        ("CREATE OR REPLACE TABLE IF NOT EXISTS d.t (id int)", SqlError, "exclude each other"),
        ("CREATE OR REPLACE TABLE d.t LIKE d.t", SqlError, "does not go with LIKE"),
        ("CREATE OR REPLACE TABLE d.t (id int) AS SELECT 1 AS id", ColumnError, "takes its columns from the query"),
        ("CREATE TABLE d.t (id int)", AlreadyExistsError, r"d\.t"),
        ("CREATE EXTERNAL TABLE d.e (id int)", SqlError, "has to say how its files are STORED AS"),
    ):
        with pytest.raises(error, match=words):
            acid.sql(statement)


def test_a_partitioned_insert_only_table(acid: AcidSession) -> None:
    """An overwrite would leave the partitions that no row falls into."""
    clauses = "PARTITIONED BY (p) TBLPROPERTIES ('transactional_properties' = 'insert_only')"
    replaced(acid, clauses, OLD)
    replaced(acid, clauses, NEW)
    assert rows(acid.table("d.t")) == rows(acid.sql(NEW))
    assert acid.table("d.t").partitions() == ["p=7"]
