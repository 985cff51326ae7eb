"""What stands behind FROM and USING: a table, a view or a query in parentheses, with its alias; and the CTEs before."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlglot import exp

from hive_acid.spark.sql.parsing import parsed
from hive_acid.spark.sql.tokens import Cursor
from hive_acid.spark.values.quoting import quoted

_INSIDE = ("WITH", "VALUES")
"""How queries begin that no CTE can stand before."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A query for the rows of a source, and the one name by which their columns are called."""

    query: str
    alias: str
    name: tuple[str, ...] = ()
    """That of a table without an alias, in small letters, if it has several parts."""


@dataclass(frozen=True, slots=True)
class Ctes:
    """The CTEs before a statement: their text with WITH, empty without any, and their names."""

    text: str = ""
    names: tuple[str, ...] = ()

    def before(self, query: str) -> str:
        """`query`, which may have CTEs of its own, behind these."""
        if not self.text:
            return query
        return f"{self.text} SELECT * FROM ({query})" if Cursor(query).peek() in _INSIDE else f"{self.text} {query}"


def ctes(cursor: Cursor, *ends: str) -> Ctes:
    """The CTEs that come next, before one of the keywords `ends`. Raises SqlError."""
    start = cursor.start
    if not cursor.accept("WITH"):
        return Ctes()
    cursor.until(*ends)
    text = cursor.text[start : cursor.start]
    with_ = parsed(f"{text} SELECT 1", text).args.get("with_")
    return Ctes(text, tuple(cte.alias for cte in with_.expressions) if isinstance(with_, exp.With) else ())


def relation(inside: Cursor) -> Relation:
    """The one source that `inside` names; its columns may get other names: ``(VALUES (1, 2)) AS s(id, n)``.

    Raises SqlError for a join: it has to be a query in parentheses.
    """
    called: tuple[str, ...] = ()
    if inside.sees("("):
        query = inside.parentheses("a query").source
        alias = alias_of(inside, ())
        if alias is None:
            raise inside.error("a query in parentheses needs an alias")
        rows = f"({query})"
    elif inside.sees("VALUES"):
        rows = query = inside.until("AS").source
        alias = alias_of(inside, ())
        if alias is None:
            raise inside.error("VALUES need an alias: VALUES (1, 2) AS s(id, n)")
    else:
        name = inside.name("a table or a query in parentheses")
        rows = inside.text[name.start : name.end]
        query = f"SELECT * FROM {rows}"
        given = alias_of(inside, ())
        alias = given or name.parts[-1]
        if given is None and len(name.parts) > 1:
            called = tuple(part.lower() for part in name.parts)
    if inside.sees("("):
        query = f"SELECT * FROM {rows} AS {quoted(alias)}({_columns(inside)})"
    if not inside.at_end:
        raise inside.error("one source is understood here: put a join in parentheses, (SELECT … FROM … JOIN …) AS s")
    return Relation(query, alias, called)


def _columns(inside: Cursor) -> str:
    names: Sequence[Cursor] = inside.items("names of columns")
    found = []
    for item in names:
        found.append(quoted(item.identifier("a column's name")))
        item.finish()
    return ", ".join(found)


def alias_of(cursor: Cursor, ends: Collection[str]) -> str | None:
    """The alias that comes next, with or without AS, if it is none of the keywords `ends`."""
    if cursor.accept("AS"):
        return cursor.identifier("an alias")
    if cursor.sees_identifier() and cursor.peek() not in ends:
        return cursor.identifier("an alias")
    return None
