"""MERGE INTO, with all its clauses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from hive_acid.catalog.table import Table
from hive_acid.errors import ColumnError, SqlError
from hive_acid.spark.change.merge import MergeBuilder, RowCounts
from hive_acid.spark.sql.defaults import default_value, is_default
from hive_acid.spark.sql.relations import ctes, relation
from hive_acid.spark.sql.rewriting.reads import ChangedTable
from hive_acid.spark.sql.rewriting.rewriter import Rewriter
from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.statements.change import assigned_path, assignments, target_of
from hive_acid.spark.sql.tokens import Cursor

_ENDS = frozenset({"USING", "ON"})


@dataclass(frozen=True, slots=True)
class _Clause:
    """One WHEN clause: the builder's method that takes it, the templates of its condition and of its values."""

    method: str
    condition: str | None
    values: dict[str, str] | None


def merge(run: Run, cursor: Cursor) -> DataFrame | None:
    """``[WITH …] MERGE [WITH SCHEMA EVOLUTION] INTO t USING source ON condition WHEN …``; None if it is not ours."""
    named = ctes(cursor, "MERGE")
    cursor.expect("MERGE")
    evolves = cursor.accept("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    target = target_of(run, cursor, _ENDS)
    if target is None:
        return None
    cursor.expect("USING")
    source = relation(cursor.until("ON"))
    cursor.expect("ON")
    target = replace(target, source=source.name)
    rewriter = Rewriter(run.names, ctes=named.names)
    on = rewriter.expression(cursor.until("WHEN").source, target)
    clauses = []
    while cursor.accept("WHEN"):
        clauses.append(_clause(run, cursor, rewriter, target))
    cursor.finish()
    query = run.prepared(named.before(source.query))
    read = run.ctes_of(rewriter, named)

    def work() -> RowCounts:
        with run.subqueries(rewriter, read) as text:
            builder = run.acid.merge(
                target.table, query.frame(), text(on), target_alias=target.alias, source_alias=source.alias
            )
            if evolves:
                builder = builder.withSchemaEvolution()
            for clause in clauses:
                builder = _added(builder, clause, text)
            return builder.execute()

    others = (name for one in (query, *read.values()) for name in one.tables)
    counts = run.in_transaction(work, [target.table.full_name, *rewriter.tables, *others])
    return run.counts(
        num_affected_rows=counts.inserted + counts.updated + counts.deleted,
        num_updated_rows=counts.updated,
        num_deleted_rows=counts.deleted,
        num_inserted_rows=counts.inserted,
    )


def _clause(run: Run, cursor: Cursor, rewriter: Rewriter, target: ChangedTable) -> _Clause:
    matched = not cursor.accept("NOT")
    cursor.expect("MATCHED")
    by_source = not matched and cursor.accept("BY", "SOURCE")
    if not matched and not by_source:
        cursor.accept("BY", "TARGET")
    condition = None
    if cursor.accept("AND"):
        condition = rewriter.expression(cursor.until("THEN").source, target)
    cursor.expect("THEN")
    inserts = not matched and not by_source
    verb = cursor.one_of(*(("INSERT",) if inserts else ("UPDATE", "DELETE")))
    when = "whenMatched" if matched else "whenNotMatchedBySource" if by_source else "whenNotMatched"
    method = when + verb.capitalize()
    if verb == "DELETE":
        return _Clause(method, condition, None)
    if verb == "UPDATE":
        cursor.expect("SET")
    if not by_source and cursor.accept("*"):
        return _Clause(method + "All", condition, None)
    if verb == "INSERT":
        given = _inserted(run, cursor, target)
    else:
        given = assignments(run, cursor.until("WHEN"), target)
    return _Clause(method, condition, {name: rewriter.expression(value, target) for name, value in given.items()})


def _inserted(run: Run, cursor: Cursor, target: ChangedTable) -> dict[str, str]:
    """``[(columns)] VALUES (values)``; without columns, all of the table in their order, as Hive has it.

    A value may be ``DEFAULT``.
    """
    table: Table = target.table
    if cursor.sees("("):
        paths = [assigned_path(item.name("a column's name"), target) for item in cursor.items("columns")]
        if fields := [".".join(path) for path in paths if path[1:]]:
            raise SqlError(f"MERGE into {table.full_name}: INSERT takes no fields of structs: {', '.join(fields)}")
        names = [path[0].lower() for path in paths]
    else:
        names = [column.name for column in table.all_columns]
    cursor.expect("VALUES")
    items = cursor.items("values")
    if len(names) != len(items):
        raise ColumnError(
            f"MERGE into {table.full_name}: INSERT has {len(names)} columns ({', '.join(names)}) and {len(items)} "
            "values"
        )
    if len(set(names)) < len(names):
        raise SqlError(f"MERGE into {table.full_name}: INSERT names a column twice")
    return {
        name: default_value(table, name) if is_default(item) else item.rest()
        for name, item in zip(names, items, strict=True)
    }


def _added(builder: MergeBuilder, clause: _Clause, text: Callable[[str], str]) -> MergeBuilder:
    add = getattr(builder, clause.method)
    condition = text(clause.condition) if clause.condition is not None else None
    added: MergeBuilder
    if clause.values is None:
        added = add(condition)
    else:
        added = add(condition, {name: text(value) for name, value in clause.values.items()})
    return added
