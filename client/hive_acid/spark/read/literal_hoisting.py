"""Literal hoisting: conditions in a form of which Spark generates the same code whatever numbers are in them.

Spark writes numbers into the Java that it generates, and a class that differs in one is compiled by Janino and then by
the JVM again: for ``id = 17`` after ``id = 16`` that is half of the cost of a small statement. So the numbers of a
plain condition are put where `events.constant` puts write ids. What is not surely understood stays as it is: a number
also tells Spark precisions, places and widths.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from hive_acid.catalog.table import Column, Table
from hive_acid.format.rows import KEY
from hive_acid.spark.conditions.literals import type_name
from hive_acid.spark.read.scan import row_fields
from hive_acid.spark.read.table_frame import KEY_COLUMNS

_INTEGERS = frozenset({"tinyint", "smallint", "int", "integer", "bigint"})
_, _COLUMN, _ = KEY_COLUMNS
_OPERATORS = frozenset({"and", "or", "not", "between"})
_WORDS = _OPERATORS | {"is", "null", "true", "false"}
_COMPARISONS = frozenset({"=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">="})
_HOISTED = re.compile(r"array\((\d+)\)\[coalesce\(\(\w+ & 0\), 0\)\]")
_TOKEN = re.compile(
    r"\s+|[A-Za-z_]\w*|\d{1,9}(?![\w.])|<=>|<>|<=|>=|!=|==|[=<>%+*()-]|\.(?=[A-Za-z_`])|`\w+`", re.ASCII
)


def with_hoisted_literals(condition: str, table: Table, alias: str) -> str:
    """`condition`, SQL text about the frame of `read_rows`, with its numbers out of the code; or just as it is.

    Only comparisons and sums of whole numbers are changed: they mean the same, and their types stay. `alias` may stand
    before a column.
    """
    tokens = _tokens(condition)
    columns = _whole_numbers(table.all_columns)
    if not tokens or not _is_plain(tokens, columns, alias.lower()) or not _compares(tokens):
        return condition
    return "".join(_hoisted(token, _COLUMN) if token.isdecimal() else token for token in tokens)


def early_condition(condition: str, table: Table, alias: str) -> str | None:
    """The same condition over the columns of `scan`, to be asked before it is known which rows are deleted.

    None if it cannot be: it is then asked of rows that are gone, and for those it must not fail. So it may only compare
    columns, and remainders of them, with each other and with numbers. Written as `with_hoisted_literals` has it, it is
    the same to Spark, which asks once.
    """
    tokens = _tokens(condition)
    if not tokens or not _is_plain(tokens, _whole_numbers(table.columns), alias.lower()):
        return None
    if not _compares(tokens) or not _never_fails(tokens):
        return None
    seen = _without_blanks(tokens)
    return " ".join(
        _hoisted(token, KEY[1]) if token.isdecimal() else _field(token) if _is_name(token) else token
        for token, after in zip(seen, [*seen[1:], ""], strict=True)
        if token != "." and after != "."
    )


def _whole_numbers(columns: Iterable[Column]) -> set[str]:
    return {column.name for column in columns if type_name(column) in _INTEGERS}


def _tokens(condition: str) -> list[str]:
    """The tokens of a condition, blanks included; none if there is one of another kind, or nothing but blanks."""
    if condition.isspace():
        return []
    found: list[str] = []
    at = 0
    while at < len(condition):
        match = _TOKEN.match(condition, at)
        if match is None or "--" in condition:
            return []
        found.append(match[0])
        at = match.end()
    return found


def _without_blanks(tokens: list[str]) -> list[str]:
    return [token for token in tokens if not token.isspace()]


def _is_plain(tokens: list[str], columns: Collection[str], alias: str) -> bool:
    """Whether all names are of columns in `columns`, with or without `alias`, and no function is called."""
    seen = _without_blanks(tokens)
    for token, after in zip(seen, [*seen[1:], ""], strict=True):
        name = token.strip("`").lower()
        if _is_name(token):
            known = after != "(" and (name == alias if after == "." else name in columns)
        else:
            known = not name[0].isidentifier() or after != "(" or name in _OPERATORS
        if not known:
            return False
    return True


def _compares(tokens: list[str]) -> bool:
    """Whether it can be a condition at all; what is none is Spark's to refuse, as it is written."""
    return any(token in _COMPARISONS or token.lower() in ("is", "between") for token in tokens)


def _never_fails(tokens: list[str]) -> bool:
    """Whether nothing is computed that may fail: a sum may be too large, and nothing can be divided by 0."""
    seen = _without_blanks(tokens)
    for before, token, after in zip(["(", *seen], seen, [*seen[1:], ""], strict=False):
        if token == "%" and not (after.isdecimal() and int(after)):
            return False
        is_sign = after.isdecimal() and before != ")" and not before.isdecimal() and not _is_name(before)
        if token == "*" or (token in "+-" and not is_sign):
            return False
    return True


def _is_name(token: str) -> bool:
    return token[0] == "`" or (token[0].isidentifier() and token.lower() not in _WORDS)


def _field(name: str) -> str:
    (field,) = row_fields([name.strip("`").lower()])
    return field


def _hoisted(number: str, column: str) -> str:
    """The number in a list, at a place that takes a column to compute; Spark still moves the condition to the scan.

    Of a place that is null without the column Spark would conclude that it is not null, and push that, which replaces
    the search argument of the scan.
    """
    return f"array({number})[coalesce({column} & 0, 0)]"


def with_literals_put_back(words: str) -> str:
    """What Spark says of a condition of `with_hoisted_literals`, with the numbers as they were written."""
    return _HOISTED.sub(r"\1", words)
