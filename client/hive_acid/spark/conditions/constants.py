"""Expressions of literals in a condition, as literals: ``k < 3 * 7``, ``day >= date_sub(current_date(), 7)``.

Spark makes literals of them while it plans, which is too late for what is read. So their text is taken out of the
condition, Spark is asked what it is, and the answer stands in its place. That is for hints only: Spark asks the rows by
the condition as it is.

The present moment goes on: a frame may be used days after it was made, and asks for the time then. Of an expression
that grows with it (`_Time.GROWS`) it is known that it will be no less than it is now, and so it bounds from below;
nothing else that depends on it is a hint.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import date, timedelta
from enum import IntEnum
from functools import lru_cache, partial
from itertools import accumulate
from typing import NamedTuple

from pyspark.sql import SparkSession

from hive_acid.spark.conditions import trees
from hive_acid.spark.conditions.literals import INTEGERS, LARGEST_INT
from hive_acid.spark.conditions.sql_tokens import (
    COMPARISONS,
    DAY,
    NOW,
    NUMBER,
    SHORT_NUMBER,
    TEXT,
    TIME,
    is_name,
    tokens_of,
)
from hive_acid.spark.conditions.trees import SINCE
from hive_acid.spark.jvm.frames.folded import folded

_MOST = 20
"""So many expressions of a condition are looked at."""

_MARGIN_DAYS = 2
"""By which a day of the present moment may be earlier: clocks are set back, and sessions have other time zones."""

_LONGEST = 10_000
_KEPT = 256
_DECIMAL = re.compile(r"\d{1,18}|\d{0,18}\.\d{1,18}|\d{1,18}\.")
_PLAIN_TEXT = re.compile(r"[^'\"\\{}$\x00-\x1f]*")
_UNITS = frozenset(
    unit + plural
    for unit in ("year", "month", "week", "day", "hour", "minute", "second", "millisecond", "microsecond")
    for plural in ("", "s")
)
_CASTS = INTEGERS | {"string", "date", "timestamp", "decimal", "double", "float"}
_GROW_BY_FIRST = {
    "add_months", "date", "date_add", "date_sub", "last_day", "timestamp", "to_date", "to_timestamp", "trunc",
}  # fmt: skip
_GROW_BY_SECOND = {"date_trunc"}
_DAYS_OF = {"date", "to_date"}
"""Functions of a column of times that conditions are understood with."""

_GROW_ALONE = {"date", "timestamp", "to_date", "to_timestamp"}
_OTHERS = {
    "abs", "bigint", "ceil", "coalesce", "concat", "concat_ws", "date_format", "datediff", "day", "dayofmonth",
    "dayofweek", "floor", "greatest", "ifnull", "int", "least", "left", "length", "lower", "lpad", "ltrim",
    "make_date", "mod", "month", "months_between", "next_day", "nvl", "pmod", "quarter", "replace", "right", "round",
    "rpad", "rtrim", "smallint", "string", "substr", "substring", "tinyint", "to_char", "trim", "unix_date", "upper",
    "weekofyear", "year",
}  # fmt: skip
_FUNCTIONS = _GROW_BY_FIRST | _GROW_BY_SECOND | _OTHERS
"""What gives the same for the same values."""

_COMPUTES = _FUNCTIONS | {"cast", "try_cast", "+", "-", "*", "/", "%", "div"}
"""Of which an expression of literals has one, unless it is the present moment itself."""


class _Time(IntEnum):
    """How an expression depends on the present moment."""

    NONE = 0
    GROWS = 1
    OTHER = 2


class _Part(NamedTuple):
    """Where an expression ends among some tokens, how it depends on the time, and whether it is a mere literal."""

    end: int
    time: _Time
    is_literal: bool = False


class _Constant(NamedTuple):
    """Where an expression of literals begins and ends in a text."""

    start: int
    end: int
    time: _Time


Ask = Callable[[Sequence[str]], Sequence[tuple[str, str | None]] | None]
"""Gives the type and the text of each of some expressions; None if Spark does not know one."""


def ask_of(spark: SparkSession) -> Ask:
    """What asks a session."""
    return partial(folded, spark)


def with_literals(condition: str, ask: Ask) -> str:
    """A condition, for a hint, in which expressions of literals are literals, as far as they are understood."""
    found = _constants(condition) if len(condition) <= _LONGEST else ()
    if not found or len(found) > _MOST:
        return condition
    told = ask([condition[of.start : of.end] for of in found])
    if told is None:
        return condition
    for of, (kind, value) in reversed(list(zip(found, told, strict=True))):
        literal = None if value is None else _literal(of.time, kind, value)
        if literal is not None:
            condition = condition[: of.start] + literal + condition[of.end :]
    return condition


def without_alias(tokens: Sequence[str], alias: str, known: Collection[str]) -> str | None:
    """A condition of some tokens that has expressions of literals, its columns without the table's `alias`.

    None if it has none, or names something else than columns that are `known`, all in lower case.
    """
    condition = "".join(tokens).strip()
    of_literals = {at for of in _constants(condition) for at in range(of.start, of.end)}
    pieces = ["", *tokens_of(condition), ""]
    starts = list(accumulate(map(len, pieces), initial=0))
    qualifiers: set[int] = set()  # the places of an alias, and of the point behind it
    for place in range(1, len(pieces) - 1):
        before, piece, after = pieces[place - 1 : place + 2]
        name = piece.strip("`").lower()
        if starts[place] in of_literals or not is_name(piece.lower()):
            continue
        if name == alias and after == "." and before != ".":
            qualifiers |= {place, place + 1}
        elif not (after == "(" and piece.lower() in _DAYS_OF):
            is_qualified = before == "." and place - 1 in qualifiers
            if name not in known or after in (".", "(") or (before == "." and not is_qualified):
                return None
    kept = (piece for place, piece in enumerate(pieces) if place not in qualifiers)
    return "".join(kept) if of_literals else None


def _literal(time: _Time, kind: str, value: str) -> str | None:
    """A value of a type as SQL, None where no hint would be made of it."""
    if time is _Time.GROWS:
        try:
            day = date.fromisoformat(value[:10]) - timedelta(days=_MARGIN_DAYS)
        except (ValueError, OverflowError):
            return None
        return f"{SINCE}('{day}')" if kind in ("date", "timestamp") else None
    if kind in ("tinyint", "smallint", "int"):
        return value
    if kind == "bigint":
        # By its digits it would be taken for an INT, which beside a decimal is another type.
        return value if abs(int(value)) > LARGEST_INT else f"CAST({value} AS BIGINT)"
    if kind == "timestamp" and trees.DAY_OR_TIME.fullmatch(value):
        return f"TIMESTAMP'{value}'"
    if kind == "string" and _PLAIN_TEXT.fullmatch(value):
        return f"'{value}'"
    return f"DATE'{value}'" if kind == "date" and trees.DAY.fullmatch(value) else None


@lru_cache(maxsize=_KEPT)
def _constants(condition: str) -> tuple[_Constant, ...]:
    """The expressions of literals that are sides of comparisons, or in a list, and more than a literal."""
    tokens = tokens_of(condition)
    places = [at for at, token in enumerate(tokens) if not token.isspace()]
    seen = [tokens[at].lower() for at in places]
    if not any(token in _COMPUTES or NOW.fullmatch(token) for token in set(seen)):
        return ()
    starts = list(accumulate(map(len, tokens), initial=0))
    try:
        return tuple(
            _Constant(starts[places[begin]], starts[places[part.end - 1] + 1], part.time)
            for begin, part in _sides(_Reader(seen), seen)
            if not part.is_literal and part.time is not _Time.OTHER
        )
    except RecursionError:
        return ()


def _sides(reader: _Reader, seen: Sequence[str]) -> Iterator[tuple[int, _Part]]:
    """The sides of comparisons, bounds of BETWEEN and values of lists that are expressions of literals.

    PySpark shows a comparison of a Column as a function, ``>=(day, date_sub(current_date(), 7))``.
    """
    between, at = 0, 0
    opened: list[str] = []
    while at < len(seen):
        before = seen[at - 1] if at else ""
        of_between = before == "between" or (before == "and" and between > 0)
        between += (before == "between") - (before == "and" and between > 0)
        part = reader.sum(at)
        if part is None:
            if seen[at] == "(":
                opened.append(before)
            elif seen[at] == ")" and opened:
                opened.pop()
            at += 1
            continue
        after = seen[part.end] if part.end < len(seen) else ""
        is_argument = bool(opened) and (opened[-1] == "in" or opened[-1] in COMPARISONS)
        is_argument = is_argument and before in ("(", ",") and after in (",", ")")
        is_right = (before in COMPARISONS or of_between) and after in ("", ")", "and", "or")
        is_left = after in COMPARISONS and before in ("", "(", "and", "or", "not")
        if is_argument or is_right or is_left:
            yield at, part
        at = part.end


class _Reader:
    """Reads expressions of literals from tokens in lower case; None where something else stands."""

    def __init__(self, seen: Sequence[str]) -> None:
        self._seen = seen

    def sum(self, at: int) -> _Part | None:
        return self._chain(at, ("+", "-"), self._product)

    def _product(self, at: int) -> _Part | None:
        return self._chain(at, ("*", "%", "/", "div"), self._signed)

    def _chain(self, at: int, operators: Sequence[str], part: Callable[[int], _Part | None]) -> _Part | None:
        found = part(at)
        while found is not None and self._at(found.end) in operators:
            operator, other = self._at(found.end), part(found.end + 1)
            if other is None:
                return None
            grows = operator == "+" and not found.time
            grows = grows or (operator in ("+", "-") and not other.time)
            time = max(found.time, other.time)
            found = _Part(other.end, time if grows else _Time.OTHER if time else _Time.NONE)
        return found

    def _signed(self, at: int) -> _Part | None:
        if self._at(at) != "-":
            return self._value(at)
        found = self._signed(at + 1)
        return found and found._replace(time=_Time.OTHER if found.time else _Time.NONE)

    def _value(self, at: int) -> _Part | None:
        token = self._at(at)
        if NOW.fullmatch(token):
            return _Part(at + 1, _Time.GROWS)
        if token == "interval":
            return self._interval(at + 1)
        if self._is_literal(at):
            return _Part(at + 1, _Time.NONE, is_literal=True)
        if token == "(":
            inner = self.sum(at + 1)
            return inner._replace(end=inner.end + 1) if inner and self._at(inner.end) == ")" else None
        if self._at(at + 1) != "(":
            return None
        if token in ("cast", "try_cast"):
            return self._cast(at + 2)
        return self._call(token, at + 2) if token in _FUNCTIONS else None

    def _call(self, name: str, at: int) -> _Part | None:
        times: list[_Time] = []
        while self._at(at) != ")" or times:
            argument = self.sum(at)
            if argument is None or self._at(argument.end) not in (",", ")"):
                return None
            times.append(argument.time)
            at = argument.end
            if self._at(at) == ")":
                break
            at += 1
        growing = 0 if name in _GROW_BY_FIRST else 1 if name in _GROW_BY_SECOND else None
        if len(times) > 1 and name in _GROW_ALONE:
            growing = None  # by a format the order of texts decides
        grows = all(not time or (place == growing and time is _Time.GROWS) for place, time in enumerate(times))
        return _Part(at + 1, max(times, default=_Time.NONE) if grows else _Time.OTHER)

    def _cast(self, at: int) -> _Part | None:
        found = self.sum(at)
        if found is None or self._at(found.end) != "as" or self._at(found.end + 1) not in _CASTS:
            return None
        kind, end = self._at(found.end + 1), found.end + 2
        if self._at(end) == "(":
            end = next((place + 1 for place, of in enumerate(self._seen) if place > end and of == ")"), end)
        if self._at(end) != ")":
            return None
        grows = not found.time or (kind in ("date", "timestamp") and found.time is _Time.GROWS)
        return _Part(end + 1, found.time if grows else _Time.OTHER)

    def _interval(self, at: int) -> _Part | None:
        at += self._at(at) == "-"
        token = self._at(at)
        if not SHORT_NUMBER.fullmatch(token) and not TEXT.fullmatch(token):
            return None
        at += 1
        while self._at(at) in _UNITS:
            at += 1
            if SHORT_NUMBER.fullmatch(self._at(at)) and self._at(at + 1) in _UNITS:
                at += 1
        return _Part(at, _Time.NONE)

    def _is_literal(self, at: int) -> bool:
        token = self._at(at)
        return any(of.fullmatch(token) for of in (NUMBER, _DECIMAL, DAY, TIME, TEXT)) and self._at(at + 1) != "("

    def _at(self, at: int) -> str:
        return self._seen[at] if at < len(self._seen) else ""
