"""Databases for tests, which are put back as they were: to make each anew took a quarter of a second.

A database that a test has left is emptied, and gets the rows and the counters of its template. One that is no more of
the template's shape, or whose tables were analysed, or that has become large, is dropped.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg2

_names = itertools.count(1)
_USES = 100
"""After so many tests a database is made anew: what they have deleted is still in its files."""

_SHAPE = """
SELECT md5(concat_ws('/',
  (SELECT string_agg(concat_ws(' ', c.oid, c.relname, c.relkind, c.reloptions, c.relacl, c.reltuples), ','
                     ORDER BY c.oid)
     FROM pg_class c WHERE c.oid >= 16384 AND c.relkind <> 't' AND c.relpersistence <> 't'),
  (SELECT string_agg(concat_ws(' ', a.attrelid, a.attnum, a.attname, a.atttypid, a.attnotnull), ',' ORDER BY 1)
     FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.oid >= 16384 AND c.relkind = 'r' AND c.relpersistence <> 't' AND a.attnum > 0),
  (SELECT string_agg(concat_ws(' ', p.oid, p.xmin), ',' ORDER BY p.oid) FROM pg_proc p WHERE p.oid >= 16384),
  (SELECT string_agg(concat_ws(' ', c.oid, c.convalidated), ',' ORDER BY c.oid) FROM pg_constraint c
    WHERE c.oid >= 16384),
  (SELECT string_agg(concat_ws(' ', t.oid, t.tgenabled), ',' ORDER BY t.oid) FROM pg_trigger t WHERE t.oid >= 16384),
  (SELECT string_agg(n.nspname, ',' ORDER BY n.oid) FROM pg_namespace n WHERE n.nspname NOT LIKE 'pg_temp%'
      AND n.nspname NOT LIKE 'pg_toast%'),
  (SELECT concat_ws(' ', d.datconnlimit, d.datallowconn) FROM pg_database d WHERE d.datname = current_database()),
  (SELECT string_agg(s.setconfig::text, ',') FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase
    WHERE d.datname = current_database())))
"""
_TABLES = """
SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname),
       (SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute a
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '')
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.oid >= 16384 AND c.relkind = 'r' AND c.relpersistence <> 't'
"""
_COUNTERS = """
SELECT quote_ident(schemaname) || '.' || quote_ident(sequencename), coalesce(last_value, start_value),
       last_value IS NOT NULL
  FROM pg_sequences
"""
_ALONE = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""
_SIZE = "SELECT pg_database_size(current_database())"
_LARGE = 4
"""So many times the size of its template makes a database a large one."""


class Databases:
    """The databases of one template, which is at `template_url` and has the name `template`."""

    def __init__(self, postgres_url: str, template: str) -> None:
        self._url, self._template = postgres_url, template
        self._free: list[tuple[str, int]] = []
        with self._connected(template) as cursor:
            self._shape, self._size = _one(cursor, _SHAPE), _one(cursor, _SIZE)
            cursor.execute(_TABLES)
            self._tables = dict(cursor.fetchall())
            self._rows = {table: _copied(cursor, table, names) for table, names in self._tables.items()}
            cursor.execute(_COUNTERS)
            self._counters = cursor.fetchall()

    @contextmanager
    def one(self) -> Iterator[str]:
        """URL of a database like the template, for as long as the body lasts."""
        name, uses = self._free.pop() if self._free else (_made(self._url, self._template), 0)
        yield url_of(self._url, name)
        if uses < _USES and self._is_as_before(name):
            self._free.append((name, uses + 1))
        else:
            _drop(self._url, name)

    def _is_as_before(self, name: str) -> bool:
        """Whether a database could be put back as it was."""
        try:
            with self._connected(name) as cursor:
                cursor.execute(_ALONE)
                if _one(cursor, _SHAPE) != self._shape or _one(cursor, _SIZE) > _LARGE * self._size:
                    return False
                cursor.execute("SET session_replication_role = replica")  # no trigger, no foreign key
                cursor.execute(";".join(f"DELETE FROM {table}" for table in self._tables))
                for table, rows in self._rows.items():
                    if rows:
                        cursor.copy_expert(f"COPY {table} ({self._tables[table]}) FROM STDIN", io.StringIO(rows))
                for counter in self._counters:
                    cursor.execute("SELECT setval(%s, %s, %s)", counter)
        except psycopg2.Error:
            return False
        return True

    @contextmanager
    def _connected(self, name: str) -> Iterator[Any]:
        with closing(psycopg2.connect(url_of(self._url, name))) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                yield cursor


@contextmanager
def copied(postgres_url: str, template: str) -> Iterator[str]:
    """URL of a copy of `template` that is dropped when the body ends: for who needs one for long."""
    name = _made(postgres_url, template)
    try:
        yield url_of(postgres_url, name)
    finally:
        _drop(postgres_url, name)


def _made(postgres_url: str, template: str) -> str:
    name = f"test_{next(_names)}"
    administer(postgres_url, f"CREATE DATABASE {name} TEMPLATE {template}")
    return name


def _drop(postgres_url: str, name: str) -> None:
    administer(postgres_url, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _one(cursor: Any, query: str) -> Any:
    cursor.execute(query)
    return cursor.fetchone()[0]


def _copied(cursor: Any, table: str, names: str) -> str:
    out = io.StringIO()
    cursor.copy_expert(f"COPY {table} ({names}) TO STDOUT", out)
    return out.getvalue()


def url_of(postgres_url: str, database: str) -> str:
    """URL of another database of the same server."""
    return postgres_url.replace("/metastore?", f"/{database}?")


def administer(url: str, statement: str) -> None:
    """Carry out one statement outside of any transaction."""
    with closing(psycopg2.connect(url)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
