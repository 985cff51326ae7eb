"""Literal hoisting: conditions in a form of which Spark generates the same code whatever numbers are in them.

Spark writes numbers into the Java that it generates, and a class that differs in one is compiled by Janino and then by
the JVM again: for ``id = 17`` after ``id = 16`` that is half of the cost of a small statement. So the numbers of a
plain condition are put where `events.constant` puts write ids. What is not surely understood stays as it is: a number
also tells Spark precisions, places and widths.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from pyspark.sql import SparkSession

from hive_acid.catalog.table import Column, Table
from hive_acid.spark.conditions.failures import DAYS_AS_TEXTS, compares_as_they_are, texts_are_days
from hive_acid.spark.conditions.literals import INTEGERS, type_name
from hive_acid.spark.jvm.session_settings import is_on
from hive_acid.spark.read.scan import hoisted
from hive_acid.spark.read.table_frame import KEY_COLUMNS

_, _COLUMN, _ = KEY_COLUMNS
_OPERATORS = frozenset({"and", "or", "not", "between"})
_WORDS = _OPERATORS | {"is", "null", "true", "false"}
_COMPARISONS = frozenset({"=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">="})
_HOISTED = re.compile(r"array\((\d+|DATE '[-\d]+')\)\[coalesce\(\(\w+ & 0\), 0\)\]")
_DAY = re.compile(r"date\s*'\d{4}-\d{2}-\d{2}'", re.IGNORECASE)
_TEXT_OF_DAY = re.compile(r"'\d{4}-\d{2}-\d{2}'")
_PIECE = re.compile(
    rf"\s+|{_DAY.pattern}|'[^'\\]*'|`[^`]*`|[A-Za-z_]\w*|\d[\w.]*|\.\d\w*|<=>|<>|<=|>=|!=|==|[^\s\w'`\"\\]",
    re.ASCII | re.IGNORECASE,
)
_MOST_DIGITS = 9
"""An integer of so many is an INT to Spark, in a list, too."""

_TOKEN = re.compile(
    r"\s+|[A-Za-z_]\w*|\d{1,9}(?![\w.])|<=>|<>|<=|>=|!=|==|[=<>%+*()-]|\.(?=[A-Za-z_`])|`\w+`", re.ASCII
)


def with_hoisted_literals(spark: SparkSession, condition: str, table: Table, alias: str) -> str:
    """`condition`, SQL text about the frame of `read_rows`, with its numbers out of the code; or just as it is.

    Comparisons and sums of whole numbers are changed, and whole numbers and dates that are compared with what is one,
    too, whatever else there is: they mean the same, and their types stay. So are texts that are compared with dates,
    unless the session has Spark compare them as texts. `alias` may stand before a column.
    """
    tokens = _tokens(condition)
    columns = _whole_numbers(table.all_columns)
    if tokens and _is_plain(tokens, columns, alias.lower()) and _compares(tokens):
        return "".join(hoisted(token, _COLUMN) if token.isdecimal() else token for token in tokens)
    return _with_compared_hoisted(spark, condition, table, alias)


def _with_compared_hoisted(spark: SparkSession, condition: str, table: Table, alias: str) -> str:
    """`condition` with those numbers and dates out of the code that stand alone on a side of a comparison."""
    tokens = _PIECE.findall(condition)
    if "".join(tokens) != condition or "--" in condition or not compares_as_they_are(condition, table, alias):
        return condition
    seen = [token.lower() for token in tokens if not token.isspace()]
    neighbours = iter(zip(["", *seen], [*seen[1:], ""], strict=False))
    with_days = any(map(_TEXT_OF_DAY.fullmatch, tokens)) and texts_are_days(condition, table, alias)
    with_days = with_days and not is_on(spark, DAYS_AS_TEXTS)
    changed = []
    for token in tokens:
        before, after = ("", "") if token.isspace() else next(neighbours)
        is_side = before in (*_COMPARISONS, "between", "and") and after in ("", ")", "and", "or")
        is_short = token.isdecimal() and len(token) <= _MOST_DIGITS
        if with_days and is_side and _TEXT_OF_DAY.fullmatch(token):
            changed.append(hoisted(f"DATE {token}", _COLUMN))
        else:
            changed.append(hoisted(token, _COLUMN) if is_side and (is_short or _DAY.fullmatch(token)) else token)
    return "".join(changed)


def _whole_numbers(columns: Iterable[Column]) -> set[str]:
    return {column.name for column in columns if type_name(column) in INTEGERS}


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


def _is_name(token: str) -> bool:
    return token[0] == "`" or (token[0].isidentifier() and token.lower() not in _WORDS)


def with_literals_put_back(words: str) -> str:
    """What Spark says of a condition of `with_hoisted_literals`, with the numbers as they were written."""
    return _HOISTED.sub(r"\1", words)
