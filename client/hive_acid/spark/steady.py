"""Conditions in a form of which Spark generates the same code whatever numbers are in them.

Spark writes numbers into the Java that it generates, and a class that differs in one is compiled by Janino and then by
the JVM again: for ``id = 17`` after ``id = 16`` that is half of the cost of a small statement. So the numbers of a
plain condition are put where `events.constant` puts write ids. What is not surely understood stays as it is: a number
also tells Spark precisions, places and widths.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from hive_acid.catalog import Table
from hive_acid.spark.literals import type_name
from hive_acid.spark.read import KEY_COLUMNS

_INTEGERS = frozenset({"tinyint", "smallint", "int", "integer", "bigint"})
_, _COLUMN, _ = KEY_COLUMNS
_OPERATORS = frozenset({"and", "or", "not", "between"})
_WORDS = _OPERATORS | {"is", "null", "true", "false"}
_TOKEN = re.compile(
    r"\s+|[A-Za-z_]\w*|\d{1,9}(?![\w.])|<=>|<>|<=|>=|!=|==|[=<>%+*()-]|\.(?=[A-Za-z_`])|`\w+`", re.ASCII
)


def steady(condition: str, table: Table, alias: str) -> str:
    """`condition`, SQL text about the frame of `read_rows`, with its numbers out of the code; or just as it is.

    Only comparisons and sums of whole numbers are changed: they mean the same, and their types stay. `alias` may stand
    before a column.
    """
    columns = {c.name for c in (*table.columns, *table.partition_keys) if type_name(c) in _INTEGERS}
    tokens = _tokens(condition)
    if not tokens or not _is_plain(tokens, columns, alias.lower()):
        return condition
    return "".join(_hidden(token) if token.isdecimal() else token for token in tokens)


def _tokens(condition: str) -> list[str]:
    """The tokens of a condition, blanks included; none if there is one of another kind."""
    found: list[str] = []
    at = 0
    while at < len(condition):
        match = _TOKEN.match(condition, at)
        if match is None or "--" in condition:
            return []
        found.append(match[0])
        at = match.end()
    return found


def _is_plain(tokens: list[str], columns: Collection[str], alias: str) -> bool:
    """Whether all names are of columns in `columns`, with or without `alias`, and no function is called."""
    seen = [token for token in tokens if not token.isspace()]
    for token, after in zip(seen, [*seen[1:], ""], strict=True):
        name = token.strip("`").lower()
        if not name[0].isidentifier():
            continue
        if name in _WORDS and token[0] != "`":
            known = after != "(" or name in _OPERATORS
        else:
            known = after != "(" and (name == alias if after == "." else name in columns)
        if not known:
            return False
    return True


def _hidden(number: str) -> str:
    """The number in a list, at a place that takes a column to compute; Spark still moves the condition to the scan."""
    return f"array({number})[{_COLUMN} & 0]"
