"""From a query's text to its syntax tree, by the dialects that Spark's SQL is covered by."""

from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from hive_acid.errors import SqlError
from hive_acid.spark.conditions.nesting import deeply_nested
from hive_acid.spark.sql.names import Names
from hive_acid.spark.sql.tokens import tokens_of
from hive_acid.tokens import Token

SHOWN_LENGTH = 80
"""So much of a text is shown in an error."""

_DIALECTS = ("spark", "databricks")
_BEFORE_TABLE = frozenset({"", "UNION", "ALL", "DISTINCT", "EXCEPT", "MINUS", "INTERSECT"})
_BEFORE_PARENTHESIS = _BEFORE_TABLE | {"FROM", "JOIN", "IN", "EXISTS", "AS", "(", ","}
_UNITS = frozenset({"SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"})


def parsed(text: str, shown: str) -> exp.Expr:
    """The syntax tree of a query, of which an error shows the part `shown`. Raises SqlError."""
    failure = ""
    for dialect in _DIALECTS:
        try:
            with deeply_nested(shown):
                tree = sqlglot.parse_one(text, dialect=dialect)
        except SqlglotError as error:
            failure = failure or str(error).splitlines()[0]
            continue
        if isinstance(tree, exp.Query | exp.Values):
            return tree
        failure = failure or "it is no query"
    raise SqlError(f"cannot read '{shown[:SHOWN_LENGTH]}': {failure}")


def without_table_statements(text: str, names: Names) -> str:
    """``TABLE t`` as the query that it stands for. Raises SqlError for a table given to a function."""
    tokens = tokens_of(text)
    found: list[int] = []
    for at, token in enumerate(tokens):
        if token.word != "TABLE" or at + 1 == len(tokens):
            continue
        if _starts_query(tokens, at) and tokens[at + 1].word != "(":
            found.append(at)
        elif _names_ours(tokens[at + 1 :], names):
            raise SqlError("TABLE(…) with a table of the metastore: make a temporary view of acid.table(…) for it")
    for at in reversed(found):
        text = text[: tokens[at].start] + "SELECT * FROM" + text[tokens[at].end :]
    return text


def with_cut_times(text: str) -> str:
    """Hive's ``FLOOR(t TO hour)`` as the function that Spark has for it. Raises SqlError, as `tokens_of`."""
    if "floor" not in text.lower():
        return text
    tokens = tokens_of(text)
    opened: list[int] = []
    edits: list[tuple[int, int, str]] = []
    for at, token in enumerate(tokens):
        if token.word == "(":
            opened.append(at)
        elif token.word == ")" and opened:
            begin = opened.pop()
            to, unit = tokens[at - 2], tokens[at - 1].word
            is_cut = begin > 0 and tokens[begin - 1].word == "FLOOR" and at - begin > 3
            if is_cut and to.word == "TO" and unit in _UNITS:
                edits.append((tokens[begin - 1].start, tokens[begin].end, f"date_trunc('{unit}', "))
                edits.append((tokens[at - 3].end, tokens[at - 1].end, ""))
    for start, end, meant in sorted(edits, reverse=True):
        text = text[:start] + meant + text[end:]
    return text


def _starts_query(tokens: Sequence[Token], at: int) -> bool:
    before = tokens[at - 1].word if at else ""
    if before == "(":
        return (tokens[at - 2].word if at > 1 else "") in _BEFORE_PARENTHESIS
    return before in _BEFORE_TABLE


def _names_ours(tokens: Sequence[Token], names: Names) -> bool:
    if tokens[0].word == "(":
        tokens = tokens[1:]
    parts: list[str] = []
    for name, dot in zip(tokens[::2], [*tokens[1::2], None], strict=False):
        parts.append(name.value)
        if dot is None or dot.word != ".":
            break
    return bool(parts) and names.read(parts) is not None
