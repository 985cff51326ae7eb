"""What stands behind FROM and USING: a table, a view or a query in parentheses, with its alias."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hive_acid.spark.sql.tokens import Cursor


@dataclass(frozen=True, slots=True)
class Relation:
    """A query for the rows of a source, and the one name by which their columns are called."""

    query: str
    alias: str


def relation(inside: Cursor) -> Relation:
    """The one source that `inside` names. Raises SqlError for a join: it has to be a query in parentheses."""
    if inside.sees("("):
        query = inside.parentheses("a query").source
        alias = alias_of(inside, ())
        if alias is None:
            raise inside.error("a query in parentheses needs an alias")
    else:
        name = inside.name("a table or a query in parentheses")
        query = f"SELECT * FROM {inside.text[name.start : name.end]}"
        alias = alias_of(inside, ()) or name.parts[-1]
    if not inside.at_end:
        raise inside.error("one source is understood here: put a join in parentheses, (SELECT … FROM … JOIN …) AS s")
    return Relation(query, alias)


def alias_of(cursor: Cursor, ends: Collection[str]) -> str | None:
    """The alias that comes next, with or without AS, if it is none of the keywords `ends`."""
    if cursor.accept("AS"):
        return cursor.identifier("an alias")
    if cursor.sees_identifier() and cursor.peek() not in ends:
        return cursor.identifier("an alias")
    return None
