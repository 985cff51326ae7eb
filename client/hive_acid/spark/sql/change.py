"""UPDATE and DELETE, with subqueries, and with a source: UPDATE … FROM, DELETE … USING."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pyspark.sql import DataFrame

from hive_acid.catalog import Table
from hive_acid.errors import SqlError
from hive_acid.spark.sql.relations import Relation, alias_of, relation
from hive_acid.spark.sql.rewrite import Rewriter, Target
from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.tokens import Cursor

_BEHIND_TARGET = frozenset({"SET", "USING", "WHERE", "FROM", "ON"})


def update(run: Run, cursor: Cursor) -> DataFrame | None:
    """``UPDATE t [AS a] SET c = value, … [FROM source] [WHERE condition]``; None if the table is not ours."""
    cursor.expect("UPDATE")
    target = target_of(run, cursor, _BEHIND_TARGET)
    if target is None:
        return None
    cursor.expect("SET")
    values = dict(assignment(item, target) for item in cursor.until("FROM", "WHERE").separated("SET"))
    source = relation(cursor.until("WHERE")) if cursor.accept("FROM") else None
    condition = cursor.rest() if cursor.accept("WHERE") else None
    cursor.finish()
    rewriter = Rewriter(run.names)
    templates = {column: rewriter.expression(value, target) for column, value in values.items()}
    where = rewriter.expression(condition, target) if condition is not None else None
    with run.in_transaction(), run.subqueries(rewriter) as text:
        values = {column: text(template) for column, template in templates.items()}
        rows = _rows_of(run, source, text(where) if where is not None else None)
        changed = run.acid.update(target.table, values, target_alias=target.alias, **rows)
    return run.counts(num_affected_rows=changed)


def delete(run: Run, cursor: Cursor) -> DataFrame | None:
    """``DELETE FROM t [AS a] [USING source] [WHERE condition]``; None if the table is not ours."""
    cursor.expect("DELETE", "FROM")
    target = target_of(run, cursor, _BEHIND_TARGET)
    if target is None:
        return None
    source = relation(cursor.until("WHERE")) if cursor.accept("USING") else None
    condition = cursor.rest() if cursor.accept("WHERE") else None
    cursor.finish()
    rewriter = Rewriter(run.names)
    where = rewriter.expression(condition, target) if condition is not None else None
    with run.in_transaction(), run.subqueries(rewriter) as text:
        rows = _rows_of(run, source, text(where) if where is not None else None)
        changed = run.acid.delete(target.table, target_alias=target.alias, **rows)
    return run.counts(num_affected_rows=changed)


def target_of(run: Run, cursor: Cursor, ends: Collection[str]) -> Target | None:
    """The table that is to be changed, with its alias before one of `ends`; None if it is not ours."""
    name = cursor.name()
    table = run.names.written(name)
    return None if table is None else Target(table, alias_of(cursor, ends) or name.parts[-1])


def assignment(item: Cursor, target: Target) -> tuple[str, str]:
    """``column = value``, where the column may say whose it is; the column in lower case. Raises SqlError."""
    if item.sees("("):
        raise item.error("SET takes one column at a time: (a, b) = … is not understood")
    name = item.name("a column's name")
    table: Table = target.table
    allowed = [[], [target.alias.lower()], [table.database, table.name]]
    if [part.lower() for part in name.parts[:-1]] not in allowed:
        raise SqlError(f"SET {name}: columns of {table.full_name} only, and no fields of a struct")
    item.expect("=")
    value = item.rest()
    if not value:
        raise item.error(f"a value for {name} was expected")
    return name.parts[-1].lower(), value


def _rows_of(run: Run, source: Relation | None, condition: str | None) -> dict[str, Any]:
    """The arguments of a verb that tell which rows it changes: a condition, or a source that is joined by it."""
    if source is None:
        return {"where": condition}
    return {"source": run.query(source.query), "on": condition or "true", "source_alias": source.alias}
