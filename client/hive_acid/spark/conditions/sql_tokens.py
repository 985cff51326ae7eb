"""Tokens of SQL expressions: which of them are literals that may as well be columns.

Nothing but columns, operators and functions that are known here is understood. A literal may be a column where it is
beside one: of literals alone Spark makes one before it computes anything, and what follows from that, as that a
condition is false for all rows, it would not see then.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from hive_acid.catalog.table import Column
from hive_acid.spark.conditions import trees
from hive_acid.spark.conditions.literals import INTEGERS, type_name

_OPERATORS = frozenset({"and", "or", "not", "between", "div", "in", "like", "case", "when", "then", "else"})
_CONSTANTS = frozenset({"null", "true", "false"})
_WORDS = _OPERATORS | _CONSTANTS | {"as", "is", "end"}
COMPARISONS = frozenset({"=", "==", "<=>", "<>", "!=", "<", "<=", ">", ">="})
_ENDS = _WORDS - _CONSTANTS - {"div", "end"}
"""Words at which a side of a comparison ends."""

_SUMS = frozenset({"+", "-", "*", "/", "%", "div"})
_SIGNS = COMPARISONS | _SUMS | frozenset("(),")
_OF_ALL = {"cast", "coalesce", "greatest", "hash", "if", "ifnull", "isnotnull", "isnull", "least", "nullif", "nvl"}
_OF_MORE = {"try_cast", "xxhash64"}
_OF_NUMBERS = {"abs", "mod", "pmod", "shiftleft", "shiftright", "shiftrightunsigned"}
_OF_DAYS = {"add_months", "date_add", "date_sub", "date_trunc", "datediff", "last_day", "to_date", "trunc"}
_PARTS = {"day", "dayofmonth", "dayofweek", "dayofyear", "month", "quarter", "weekday", "weekofyear", "year"}
_PARTS_OF_TIMES = {"hour", "minute", "second"}
_OF_TEXTS = {"ascii", "char_length", "concat", "instr", "left", "length", "right", "substr", "substring"}
_TEXTS = {"lower", "ltrim", "rtrim", "trim", "upper"}
_FUNCTIONS = frozenset[str]().union(
    _OF_ALL, _OF_MORE, _OF_NUMBERS, _OF_DAYS, _PARTS, _PARTS_OF_TIMES, _OF_TEXTS, _TEXTS
)
"""Those that take any value where they take a number or a date, and give one whose type does not depend on it."""

_CASTS = INTEGERS | {"float", "double", "string", "boolean", "date", "timestamp"}
_TYPES = INTEGERS | {"float", "double", "string", "varchar", "char", "boolean", "date", "timestamp"}
"""Those of which a number tells no precision, as it does beside a decimal."""

_MOST_IN_LIST = 10
"""So many values of an IN Spark compares one by one, and more in a set, which is not in the code."""

DAY = re.compile(rf"date\s*'{trees.DAY.pattern}'", re.IGNORECASE)
TEXT_OF_TIME = re.compile(f"'{trees.DAY_OR_TIME.pattern}'")
TIME = re.compile(rf"timestamp\s*{TEXT_OF_TIME.pattern}", re.IGNORECASE)
TEXT = re.compile(r"'[^'\\]*'")
SHORT_NUMBER = re.compile(r"\d{1,9}")
"""An integer of so many digits is an INT to Spark, in a list, too."""

NUMBER = re.compile(rf"{SHORT_NUMBER.pattern}|\d{{11,18}}|\d{{1,18}}L|\d{{1,15}}(?:\.\d{{1,15}})?D", re.IGNORECASE)
"""A number that is of one type wherever it stands."""

NOW = re.compile(r"(?:current_timestamp|current_date|now)\s*\(\s*\)|current_(?:timestamp|date)", re.IGNORECASE)
"""Of which Spark makes a literal of each statement."""

_BY_SIGN = re.compile(r"\d{10}")
"""A number of which the sign decides whether it is an INT."""

_PIECE = re.compile(
    rf"\s+|{DAY.pattern}|{TIME.pattern}|{TEXT.pattern}|`[^`]*`|(?:{NOW.pattern})(?!\w)|[A-Za-z_]\w*|\d[\w.]*|\.\d\w*"
    r"|<=>|<>|<=|>=|!=|==|[^\s\w'`\"\\]",
    re.ASCII | re.IGNORECASE,
)


class Token(NamedTuple):
    """A token, and whether it stands alone on the right of a comparison, and may be a column if it is a literal."""

    text: str
    is_side: bool
    may_vary: bool


def tokens_of(expression: str) -> list[str]:
    """The tokens of an expression, blanks included; none if there is one of another kind, or nothing but blanks."""
    tokens = _PIECE.findall(expression)
    is_whole = "".join(tokens) == expression and not expression.isspace()
    return tokens if is_whole and "--" not in expression and "/*" not in expression else []


def compares(tokens: Sequence[str]) -> bool:
    """Whether some tokens can be a condition at all."""
    return any(token in COMPARISONS or token.lower() in ("is", "between", "in", "like") for token in tokens)


Names = Mapping[str, Collection[str]]
"""Columns that are known here, by the alias that stands before them, "" without one; all in lower case."""


def known_names(columns: Mapping[str, Iterable[Column]]) -> Names:
    """The names of columns of types that are known here, by their aliases. Those of several stand with theirs alone."""
    every = [column.name.lower() for of in columns.values() for column in of]
    known = {
        alias.lower(): {column.name.lower() for column in of if type_name(column) in _TYPES}
        for alias, of in columns.items()
    }
    return {**known, "": {name for of in known.values() for name in of if every.count(name) == 1}}


def is_plain(tokens: Sequence[str], names: Names) -> bool:
    """Whether tokens are nothing but columns that `names` has, and what is known here."""
    seen = _seen(tokens)
    places = zip(["", "", *seen], ["", *seen], seen, [*seen[1:], ""], strict=False)
    return bool(seen) and all(_is_known(*place, names) for place in places)


def conjuncts(tokens: Sequence[str]) -> Iterator[Sequence[str]]:
    """What AND joins on the outside, and these ANDs; all tokens together where OR is there, too."""
    outside = list(_outside(tokens))
    start = 0
    for place, token in enumerate(outside):
        if token == "and" and "or" not in outside:
            yield tokens[start:place]
            yield tokens[place : place + 1]
            start = place + 1
    yield tokens[start:]


def placed(tokens: Sequence[str]) -> Iterator[Token]:
    """Tokens that `is_plain` has been asked of, with their places."""
    seen = _seen(tokens)
    places = iter(zip(["", *seen], [*seen[1:], ""], _may_vary(seen), strict=False))
    for token in tokens:
        before, after, may_vary = ("", "", False) if token.isspace() else next(places)
        is_side = before in (*COMPARISONS, "between", "and") and after in ("", ")", "and", "or")
        yield Token(token, is_side, may_vary)


def _seen(tokens: Sequence[str]) -> list[str]:
    return [token.lower() for token in tokens if not token.isspace()]


def _is_known(first: str, before: str, token: str, after: str, names: Names) -> bool:
    """Whether a token is known, behind two and before one other."""
    name = token.strip("`")
    if before == "as":
        return name in _CASTS and after == ")"
    if not is_name(token):
        is_word = name in (_OPERATORS if after == "(" else _WORDS)
        return is_word or token in _SIGNS or token == "." or (_is_value(token) and after != "(")
    if after == "(":
        return name in _FUNCTIONS and token[0] != "`"
    if after == ".":
        return name in names and before != "."
    # What two words beside each other mean is not known here, nor of a word and a value.
    alias = first.strip("`") if before == "." else ""
    return name in names.get(alias, ()) and (after in ("", *_SIGNS) or after in _WORDS)


def is_name(token: str) -> bool:
    """Whether a token in lower case is neither a value nor a word of conditions."""
    return token[0] == "`" or (token[0].isidentifier() and token not in _WORDS and not _is_value(token))


def _is_value(token: str) -> bool:
    return any(pattern.fullmatch(token) for pattern in (NUMBER, _BY_SIGN, DAY, TIME, NOW, TEXT))


def _may_vary(seen: Sequence[str]) -> list[bool]:
    """Of each token whether it may be a column, if it is a literal.

    That is in those parts of a condition, between AND and OR, that have a column, and no operator or function of
    literals alone. One that is all of an expression may, too.
    """
    if len(seen) <= 1 or (len(seen) == 2 and seen[0] == "-"):
        return [True] * len(seen)
    is_column = [
        is_name(token) and after not in ("(", ".") and before != "as"
        for before, token, after in zip(["", *seen], seen, [*seen[1:], ""], strict=False)
    ]
    of_sets, of_literals = _parentheses(seen, is_column)
    may_vary: list[bool] = []
    for start, end in _parts(seen):
        known = any(is_column[start:end]) and not any(of_literals[start:end])
        known = known and not any(_is_of_literals(seen, place) for place in range(start, end))
        may_vary += [known and not of_sets[place] for place in range(start, end)]
    return may_vary


def _parts(seen: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where the parts of a condition between AND and OR begin and end; the AND of a BETWEEN divides none."""
    start, between = 0, 0
    for place, token in enumerate(seen):
        between += token == "between"
        if token == "or" or (token == "and" and not between):
            yield start, place
            start, between = place, 0
        elif token == "and":
            between -= 1
    yield start, len(seen)


def _outside(tokens: Sequence[str]) -> Iterator[str]:
    """Tokens in lower case, without those in parentheses or CASE, and without the AND of a BETWEEN."""
    depth, between = 0, 0
    for token in map(str.lower, tokens):
        depth += (token in ("(", "case")) - (token in (")", "end"))
        between += token == "between" and not depth
        of_between = token == "and" and not depth and bool(between)
        between -= of_between
        yield "" if depth or of_between else token


def _parentheses(seen: Sequence[str], is_column: Sequence[bool]) -> tuple[list[bool], list[bool]]:
    """Of each token whether it is in a list that is a set, and whether it opens parentheses without a column."""
    of_sets, of_literals = [False] * len(seen), [False] * len(seen)
    opened: list[int] = []
    for place, token in enumerate(seen):
        if token == "(":
            opened.append(place)
        elif token == ")" and opened:
            start = opened.pop()
            if start and seen[start - 1] == "in":
                if seen[start:place].count(",") >= _MOST_IN_LIST:
                    of_sets[start:place] = [True] * (place - start)
            else:
                of_literals[start] = not any(is_column[start:place])
    return of_sets, of_literals


def _is_of_literals(seen: Sequence[str], place: int) -> bool:
    """Whether a token is an operator between literals, without regard to what is in parentheses."""
    token = seen[place]
    before, after = range(place - 1, -1, -1), range(place + 1, len(seen))
    if token == "between":
        tested = range(place - 1 - (seen[place - 1] == "not"), -1, -1)
        return all(map(_is_literal, _side(map(seen.__getitem__, tested), ")", "(")))
    if token in COMPARISONS:
        left, right = _side(map(seen.__getitem__, before), ")", "("), _side(map(seen.__getitem__, after), "(", ")")
        return all(map(_is_literal, (*left, *right)))
    if token not in _SUMS or not place or not _is_literal(seen[place - 1]):
        return False
    other = seen[place - 2] if place > 1 else ""
    binds = other not in _SUMS or (other in ("+", "-") and token not in ("+", "-"))
    return binds and _is_literal(next((seen[at] for at in after if seen[at] not in ("+", "-")), ""))


def _side(tokens: Iterable[str], opening: str, closing: str) -> Iterator[str]:
    """What is on a side of a comparison, from there on, but operators."""
    depth = 0
    for token in tokens:
        depth += (token == opening) - (token == closing)
        if depth < 0 or token in COMPARISONS or token in _ENDS or token == ",":
            return
        if token not in _SUMS:
            yield token


def _is_literal(token: str) -> bool:
    return _is_value(token) or token in _CONSTANTS
