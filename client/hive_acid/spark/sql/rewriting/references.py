"""The names in a query that mean tables of the metastore, and the columns that it calls by them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlglot import exp

from hive_acid.catalog.table import Table
from hive_acid.errors import SqlError
from hive_acid.spark.read.table_frame import ROW_ID, has_row_ids
from hive_acid.spark.sql.hints import direct_sources
from hive_acid.spark.sql.rewriting.edits import Edits
from hive_acid.spark.values.quoting import quoted


@dataclass(frozen=True, slots=True)
class Reference:
    """A name in a query that means a table of the metastore."""

    node: exp.Table
    table: Table
    select: exp.Select | None

    @property
    def alias(self) -> str:
        return str(self.node.alias or self.node.name)


def asks_for_rows(tree: exp.Expr, references: list[Reference]) -> bool:
    """Whether a WHERE has a value from a subquery that may ask for the rows that the WHERE is about."""
    if not any(isinstance(found.this, exp.Query) for found in tree.find_all(exp.Subquery)):
        return False
    columns = {column.name for found in references for column in found.table.all_columns}
    return any(
        not isinstance(query.parent, exp.From | exp.Join | exp.In) and _is_correlated(query, columns)
        for where in tree.find_all(exp.Where)
        for query in where.find_all(exp.Subquery)
    )


def _is_correlated(query: exp.Subquery, columns: Collection[str]) -> bool:
    """Whether a subquery may name what is around it: `columns`, or those of a source that is not its own."""
    own = {of.alias_or_name.lower() for select in query.find_all(exp.Select) for of in direct_sources(select)}
    return any(
        (column.table.lower() not in own if column.table else column.name.lower() in columns)
        for column in query.find_all(exp.Column)
    )


def shorten_columns(tree: exp.Expr, references: list[Reference], edits: Edits) -> None:
    """``database.table.column`` becomes ``table.column``: the frame is known by its last name only."""
    plain = [reference for reference in references if not reference.node.alias]
    if not plain:
        return
    for column in tree.find_all(exp.Column):
        parts = column.parts
        for reference in plain:
            of_table = [reference.table.called_in, reference.table.name]
            written = [part.name.lower() for part in reference.node.parts]
            for prefix in (written, of_table):
                if len(prefix) > 1 and [part.name.lower() for part in parts[: len(prefix)]] == prefix:
                    edits.replace(parts[0].meta["start"], parts[len(prefix) - 1].meta["start"], "")
                    break


def mentions_row_id(node: exp.Expr) -> bool:
    return any(found.name.upper() == ROW_ID for found in node.find_all(exp.Identifier))


def hide_row_ids(references: list[Reference], edits: Edits) -> None:
    """ROW__ID is a pseudo column: it is there where a query names it, and no ``*`` shows it."""
    selects = {id(found.select): found.select for found in references if found.select is not None}
    for select in selects.values():
        shown = [found.alias for found in references if found.select is select and has_row_ids(found.table)]
        if not shown or not mentions_row_id(select):
            continue
        if any(found.args.get("method") == "NATURAL" for found in select.args.get("joins") or ()):
            raise SqlError("ROW__ID beside a NATURAL JOIN would be joined by: name the columns with USING")
        if any(found.find_ancestor(exp.Select) is select for found in select.find_all(exp.Pivot)):
            raise SqlError("ROW__ID beside PIVOT or UNPIVOT would be one of its columns: put the table in a subquery")
        for star in select.find_all(exp.Star):
            if star.find_ancestor(exp.Select) is select and not isinstance(star.parent, exp.Count):
                _except_row_id(star, shown, edits)


def _except_row_id(star: exp.Star, shown: list[str], edits: Edits) -> None:
    excepted = [f"{quoted(alias)}.{ROW_ID}" for alias in shown]
    if isinstance(star.parent, exp.Column):
        qualifier = star.parent.table.lower()
        if qualifier not in (alias.lower() for alias in shown):
            return
        excepted = [ROW_ID]
    if "start" not in star.meta or star.args.get("except_") or star.args.get("replace"):
        raise SqlError("ROW__ID beside a * with EXCEPT, or one that is not written: name the columns")
    end = star.meta["end"] + 1
    edits.replace(end, end, "", f" EXCEPT ({', '.join(excepted)})")
