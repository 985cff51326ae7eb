"""DEFAULT as a value of INSERT, UPDATE and MERGE: what the metastore keeps as a column's default, null without one."""

from __future__ import annotations

from collections.abc import Sequence

from hive_acid.catalog.constraints import in_parentheses
from hive_acid.catalog.table import Table
from hive_acid.spark.sql.tokens import Cursor, tokens_of

_AROUND = frozenset({"(", ",", ")", "SELECT", "FROM", ""})


def is_default(item: Cursor) -> bool:
    """Whether a value is the word DEFAULT; in quotes it would be a name or a text."""
    return item.sees("DEFAULT") and item.text[item.start :].strip().upper() == "DEFAULT"


def default_value(table: Table, column: str) -> str:
    """The SQL of a column's default, as it was written when the column was made; NULL if it has none."""
    value = table.defaults.get(column.lower())
    return "NULL" if value is None else in_parentheses(value)


def has_default(query: str) -> bool:
    """Whether a query may have DEFAULT among its values."""
    words = ["", *(token.word for token in tokens_of(query)), ""]
    return any(
        word == "DEFAULT" and before in _AROUND and behind in _AROUND
        for before, word, behind in zip(words, words[1:], words[2:], strict=False)
    )


def with_defaults(table: Table, query: str, columns: Sequence[str]) -> str:
    """VALUES, or a SELECT, with what its DEFAULTs stand for; `columns` are those that its values are for.

    One that stands elsewhere is left to Spark, which refuses it.
    """
    edits: list[tuple[int, int, str]] = []
    for items in _rows(Cursor(query)):
        for position, item in enumerate(items):
            if is_default(item):
                if position >= len(columns):
                    raise item.error("DEFAULT stands for a column, and there is none at this place")
                edits.append((item.start, item.start + len(item.source), default_value(table, columns[position])))
    for start, end, value in reversed(edits):
        query = query[:start] + value + query[end:]
    return query


def _rows(cursor: Cursor) -> list[list[Cursor]]:
    """The lists of values of VALUES or of the one SELECT that a query is; none for any other."""
    if cursor.accept("VALUES"):
        rows = cursor.until("AS").separated("VALUES")
        return [row.items("values") if row.sees("(") else [row] for row in rows]
    if cursor.accept("SELECT"):
        items = cursor.until("FROM", "WHERE", "UNION", "EXCEPT", "INTERSECT", "MINUS", "LIMIT", "ORDER").separated(
            "SELECT"
        )
        cursor.until("UNION", "EXCEPT", "INTERSECT", "MINUS")
        return [items] if cursor.at_end else []
    return []
