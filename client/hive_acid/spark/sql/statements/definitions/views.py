"""CREATE, ALTER and DROP of views: the metastore keeps their texts, and each query of them has its own snapshot."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from hive_acid.catalog.table import VIRTUAL_VIEW, Column, Table
from hive_acid.errors import AlreadyExistsError, ColumnError, SqlError, ViewError
from hive_acid.spark.sql.columns import comment, properties, removed_properties
from hive_acid.spark.sql.rewriting.reads import StoredQuery
from hive_acid.spark.sql.rewriting.rewriter import Rewriter
from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.tokens import Cursor, Name
from hive_acid.spark.sql.views import is_out_column, out_columns
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.types import check_distinct, column_type


@dataclass
class _Clauses:
    """What stands between a view's name and its query; names of columns with their comments."""

    columns: list[tuple[str, str | None]] = field(default_factory=list)
    properties: dict[str, str] = field(default_factory=dict)


def create_view(run: Run, cursor: Cursor) -> DataFrame | None:
    """``CREATE [OR REPLACE] [[GLOBAL] TEMPORARY] VIEW [IF NOT EXISTS] v [(columns)] [COMMENT …] AS query``.

    None for a view of Spark's, which shows nothing of the metastore. A temporary one keeps the snapshot of its query.
    """
    cursor.expect("CREATE")
    replaces, is_global = cursor.accept("OR", "REPLACE"), cursor.accept("GLOBAL")
    is_temporary = cursor.accept("TEMPORARY") or cursor.accept("TEMP")
    if not cursor.accept("VIEW"):
        return None
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    if replaces and if_not_exists:
        raise cursor.error("OR REPLACE and IF NOT EXISTS exclude each other: leave one of them out")
    name = cursor.name("a view's name")
    if is_temporary:
        return _temporary(run, cursor, name, replaces=replaces, is_global=is_global)
    clauses = _clauses(cursor)
    cursor.expect("AS")
    query = cursor.rest()
    cursor.finish()
    stored = Rewriter(run.names).stored(query)
    if not run.names.is_ours(name):
        if stored.is_ours:
            raise SqlError(f"{name}: a view of Spark's cannot show tables of the metastore: give it a database of that")
        return None
    if (stored.foreign or stored.plain) and not stored.is_ours:
        return None
    _refuse_foreign(stored)
    if if_not_exists and run.names.defined(name) is not None:
        return run.nothing()
    view = _definition(run, name, clauses, stored.text, query)
    there = run.names.defined(name) if replaces else None
    if there is None:
        run.acid.create_view(view, if_not_exists=if_not_exists)
    elif there.is_view:
        _redefine(run, view)
    else:
        raise AlreadyExistsError(f"{there.full_name} is a table: DROP TABLE it first, or give the view another name")
    return run.nothing()


def _definition(run: Run, name: Name, clauses: _Clauses, text: str, as_written: str) -> Table:
    """A view, its columns with the types that its query has now. Raises ColumnError."""
    fields = run.prepared(text).frame().schema.fields
    given = clauses.columns or [(of.name, None) for of in fields]
    if len(given) != len(fields):
        raise ColumnError(f"the view {name} names {len(given)} columns, and its query has {len(fields)}")
    check_distinct(called for called, _ in given)
    database, view = run.names.full(name).split(".", 1)
    return Table(
        database=database,
        name=view,
        columns=tuple(
            Column(called.lower(), column_type(of), said) for (called, said), of in zip(given, fields, strict=True)
        ),
        parameters=clauses.properties | out_columns(of.name for of in fields),
        table_type=VIRTUAL_VIEW,
        input_format="",
        output_format="",
        serde="",
        view_text=text,
        view_text_as_written=as_written,
    )


def _redefine(run: Run, view: Table) -> None:
    """Give a view another query. Raises SqlError if it would show itself."""
    Rewriter(run.names.of_view(view)).query(view.view_text)
    run.acid.redefine_view(view)


def drop_view(run: Run, cursor: Cursor) -> DataFrame | None:
    """``DROP VIEW [IF EXISTS] v``; None if it is not the metastore's. Raises ViewError for a table."""
    cursor.expect("DROP", "VIEW")
    cursor.accept("IF", "EXISTS")
    name = cursor.name("a view's name")
    cursor.finish()
    view = _view(run, name, "DROP TABLE")
    if view is None:
        return None
    run.acid.drop_table(view.full_name, if_exists=True)
    return run.nothing()


def alter_view(run: Run, cursor: Cursor) -> DataFrame | None:
    """``ALTER VIEW v AS query | RENAME TO w | SET | UNSET TBLPROPERTIES (…)``; None if it is not the metastore's."""
    cursor.expect("ALTER", "VIEW")
    name = cursor.name("a view's name")
    view = _view(run, name, "ALTER TABLE")
    if view is None:
        return None
    if cursor.accept("RENAME", "TO"):
        to = run.names.full(cursor.name("a view's name"))
        cursor.finish()
        run.acid.rename_table(view, to)
    elif cursor.accept("SET", "TBLPROPERTIES"):
        given = properties(cursor)
        cursor.finish()
        run.acid.set_properties(view, given)
    elif cursor.accept("UNSET", "TBLPROPERTIES"):
        removed = removed_properties(cursor)
        cursor.finish()
        run.acid.set_properties(view, removed)
    elif cursor.accept("AS") or cursor.sees("SELECT") or cursor.sees("WITH"):
        query = cursor.rest()
        cursor.finish()
        stored = Rewriter(run.names).stored(query)
        _refuse_foreign(stored)
        made = _definition(run, name, _Clauses(), stored.text, query)
        kept = {key: value for key, value in view.parameters.items() if not is_out_column(key)}
        _redefine(run, replace(made, parameters=kept | made.parameters))
    else:
        raise cursor.error("of ALTER VIEW, AS, RENAME TO, SET and UNSET TBLPROPERTIES are understood")
    return run.nothing()


def _view(run: Run, name: Name, instead: str) -> Table | None:
    """The metastore's view of a name; None for a temporary one, and for what Spark knows. Raises ViewError."""
    if run.names.is_temporary_view(name):
        return None
    found = run.names.defined(name)
    if found is not None and not found.is_view:
        raise ViewError(f"{found.full_name} is a table, and no view: say {instead}")
    return found


def _refuse_foreign(stored: StoredQuery) -> None:
    if stored.foreign:
        raise SqlError(
            f"{', '.join(stored.foreign)} is not the metastore's, whose tables alone a view can show that stays: make "
            "it CREATE TEMPORARY VIEW, or put the rows into a table of the metastore"
        )


def _clauses(cursor: Cursor) -> _Clauses:
    found = _Clauses()
    if cursor.sees("("):
        for item in cursor.items("columns"):
            found.columns.append((item.identifier("a column's name"), comment(item)))
            item.finish()
    while not cursor.sees("AS"):
        if cursor.accept("TBLPROPERTIES"):
            found.properties |= properties(cursor)
        elif (text := comment(cursor)) is not None:
            found.properties["comment"] = text
        else:
            raise cursor.error("of CREATE VIEW, names of columns, COMMENT, TBLPROPERTIES and AS are understood")
    return found


def _temporary(run: Run, cursor: Cursor, name: Name, *, replaces: bool, is_global: bool) -> DataFrame | None:
    ahead = Cursor(cursor.text)
    ahead.until("AS")
    if not ahead.accept("AS"):
        return None
    query = ahead.rest()
    if not run.reads_ours(query):
        return None
    if len(name.parts) > 1:
        raise SqlError(f"{name}: a temporary view has no database")
    clauses = _clauses(cursor)
    if clauses.properties:
        raise cursor.error("of CREATE TEMPORARY VIEW a name, names of columns and AS are understood")
    frame = run.prepared(query).frame(of_view=True)
    if run.explains:
        return run.nothing()
    shown = frame.toDF(*(called for called, _ in clauses.columns)) if clauses.columns else frame
    kind = ("createOrReplace" if replaces else "create") + ("Global" if is_global else "") + "TempView"
    view = name.parts[-1]
    getattr(shown, kind)(view if view.isidentifier() else quoted(view))
    return run.nothing()
