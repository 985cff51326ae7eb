"""UPDATE and DELETE, with subqueries, and with a source: UPDATE … FROM, DELETE … USING."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from hive_acid.catalog.table import Table
from hive_acid.errors import SqlError
from hive_acid.spark.sql.defaults import default_value, is_default
from hive_acid.spark.sql.relations import Relation, alias_of, ctes, relation
from hive_acid.spark.sql.rewriting.reads import ChangedTable
from hive_acid.spark.sql.rewriting.rewriter import Rewriter
from hive_acid.spark.sql.run import Query, Run
from hive_acid.spark.sql.tokens import Cursor, Name
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.types import check_distinct

_BEHIND_TARGET = frozenset({"SET", "USING", "WHERE", "FROM", "ON"})


def update(run: Run, cursor: Cursor) -> DataFrame | None:
    """``[WITH …] UPDATE t [AS a] SET c = value, … [FROM source] [WHERE condition]``; None if the table is not ours.

    A value may be ``DEFAULT``.
    """
    named = ctes(cursor, "UPDATE")
    cursor.expect("UPDATE")
    target = target_of(run, cursor, _BEHIND_TARGET)
    if target is None:
        return None
    cursor.expect("SET")
    values = assignments(run, cursor.until("FROM", "WHERE"), target)
    source = relation(cursor.until("WHERE")) if cursor.accept("FROM") else None
    condition = cursor.rest() if cursor.accept("WHERE") else None
    cursor.finish()
    target = target if source is None else replace(target, source=source.name)
    rewriter = Rewriter(run.names, ctes=named.names)
    templates = {column: rewriter.expression(value, target) for column, value in values.items()}
    where = rewriter.expression(condition, target) if condition is not None else None
    query = run.prepared(named.before(source.query)) if source else None
    read = run.ctes_of(rewriter, named)

    def work() -> int:
        with run.subqueries(rewriter, read) as text:
            values = {column: text(template) for column, template in templates.items()}
            rows = _rows_of(source, query, text(where) if where is not None else None)
            return run.acid.update(target.table, values, target_alias=target.alias, **rows)

    return run.counts(num_affected_rows=run.in_transaction(work, _tables(target, rewriter, query, *read.values())))


def delete(run: Run, cursor: Cursor) -> DataFrame | None:
    """``[WITH …] DELETE FROM t [AS a] [USING source] [WHERE condition]``; None if the table is not ours."""
    named = ctes(cursor, "DELETE")
    cursor.expect("DELETE", "FROM")
    target = target_of(run, cursor, _BEHIND_TARGET)
    if target is None:
        return None
    source = relation(cursor.until("WHERE")) if cursor.accept("USING") else None
    condition = cursor.rest() if cursor.accept("WHERE") else None
    cursor.finish()
    target = target if source is None else replace(target, source=source.name)
    rewriter = Rewriter(run.names, ctes=named.names)
    where = rewriter.expression(condition, target) if condition is not None else None
    query = run.prepared(named.before(source.query)) if source else None
    read = run.ctes_of(rewriter, named)

    def work() -> int:
        with run.subqueries(rewriter, read) as text:
            rows = _rows_of(source, query, text(where) if where is not None else None)
            return run.acid.delete(target.table, target_alias=target.alias, **rows)

    return run.counts(num_affected_rows=run.in_transaction(work, _tables(target, rewriter, query, *read.values())))


def target_of(run: Run, cursor: Cursor, ends: Collection[str]) -> ChangedTable | None:
    """The table that is to be changed, with its alias before one of `ends`; None if it is not ours."""
    name = cursor.name()
    table = run.names.written(name)
    return None if table is None else ChangedTable(table, alias_of(cursor, ends) or name.parts[-1])


def assignments(run: Run, inside: Cursor, target: ChangedTable) -> dict[str, str]:
    """``column = value, …`` as a verb takes them. Raises SqlError, and ColumnError for a column that is given twice."""
    given = [_assignment(run, item, target) for item in inside.separated("SET")]
    check_distinct(column.lower() for column, _ in given)
    return dict(given)


def _assignment(run: Run, item: Cursor, target: ChangedTable) -> tuple[str, str]:
    """``column = value``, where the column may say whose it is, or be a field of a struct; as a verb takes it.

    Raises SqlError.
    """
    if item.sees("("):
        raise item.error("SET takes one column at a time: (a, b) = … is not understood")
    name = item.name("a column's name")
    item.expect("=")
    path = assigned_path(name, target)
    # A dot in a name is not one between names.
    called = path[0].lower() if len(path) == 1 and "." not in path[0] else ".".join(map(quoted, path))
    if is_default(item):
        if path[1:]:
            raise item.error(f"DEFAULT is a value for a column, and {name} is a field of one")
        return called, default_value(target.table, path[0])
    value = item.rest()
    if not value:
        raise item.error(f"a value for {name} was expected")
    return called, value


def assigned_path(name: Name, target: ChangedTable) -> tuple[str, ...]:
    """The column that is meant by a name, which may say whose it is, and the fields in it.

    As Spark does, it is looked at what stands before the column first: ``db.table``, then the alias. Raises SqlError.
    """
    table: Table = target.table
    columns = {column.name for column in table.all_columns}
    lower = [part.lower() for part in name.parts]
    owners = [[table.database, table.name], [target.alias.lower()], []]
    owners = owners[target.hides_database :]
    paths = [name.parts[len(owner) :] for owner in owners if lower[: len(owner)] == owner]
    path = next((path for path in paths if path and path[0].lower() in columns), paths[0])
    if not path or (path[1:] and path[0].lower() not in columns):
        raise SqlError(f"{name} is assigned: columns of {table.full_name} can be, and fields of its structs")
    return path


def _tables(target: ChangedTable, rewriter: Rewriter, *queries: Query | None) -> list[str]:
    """All tables of a statement."""
    return [target.table.full_name, *rewriter.tables, *(name for query in queries if query for name in query.tables)]


def _rows_of(source: Relation | None, query: Query | None, condition: str | None) -> dict[str, Any]:
    """The arguments of a verb that tell which rows it changes: a condition, or a source that is joined by it."""
    if source is None or query is None:
        return {"where": condition}
    return {"source": query.frame(), "on": condition or "true", "source_alias": source.alias}
