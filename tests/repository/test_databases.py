"""A database that a test has left is as its template is, or another one."""

from contextlib import closing
from typing import Any

import psycopg2
import pytest

from tests.databases import Databases, administer, url_of

TABLES = "SELECT oid::regclass::text FROM pg_class WHERE oid >= 16384 AND relkind = 'r' ORDER BY 1"
COUNTERS = "SELECT sequencename, last_value FROM pg_sequences ORDER BY 1"
SETTING = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET work_mem = ''1MB''', current_database()); END $$"


@pytest.fixture
def databases(postgres_url: str, template: str) -> Any:
    return Databases(postgres_url, template)


def run(url: Any, *statements: Any) -> Any:
    with closing(psycopg2.connect(url)) as connection:
        connection.autocommit = True
        cursor = connection.cursor()
        for statement in statements:
            cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []


def content(url: Any) -> Any:
    tables = {name: run(url, f"SELECT t::text FROM {name} t ORDER BY 1") for (name,) in run(url, TABLES)}
    return tables, run(url, COUNTERS)


def test_rows_and_counters_are_those_of_the_template(databases: Databases, postgres_url: str, template: str) -> None:
    expected = content(url_of(postgres_url, template))
    assert len(expected[0]) > 30
    assert any(expected[0].values())
    with databases.one() as first:
        assert content(first) == expected
        for name, rows in expected[0].items():
            if rows:
                run(first, "SET session_replication_role = replica", f"DELETE FROM {name}")
        for (counter,) in run(first, "SELECT format('%I.%I', schemaname, sequencename) FROM pg_sequences"):
            run(first, f"SELECT nextval('{counter}')")
        left_open = psycopg2.connect(first)
        left_open.cursor().execute("SELECT 1")
        assert content(first) != expected
    with databases.one() as second:
        assert second == first
        assert content(second) == expected
    with pytest.raises(psycopg2.Error):
        left_open.cursor().execute("SELECT 1")


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE more (a int)",
        "ALTER TABLE {table} ADD COLUMN more int",
        "CREATE FUNCTION more() RETURNS int LANGUAGE sql RETURN 1",
        "CREATE SCHEMA more",
        "ANALYZE {table}",
        SETTING,
    ],
)
def test_one_of_another_shape_is_not_given_again(databases: Databases, statement: Any) -> None:
    with databases.one() as first:
        table = run(first, TABLES)[0][0]
        run(first, statement.replace("{table}", table))
    with databases.one() as second:
        assert second != first


def test_one_that_was_dropped_is_not_given_again(databases: Databases, postgres_url: str) -> None:
    with databases.one() as first:
        name = first.rpartition("/")[2].partition("?")[0]
        administer(postgres_url, f"DROP DATABASE {name} WITH (FORCE)")
    with databases.one() as second:
        assert second != first
