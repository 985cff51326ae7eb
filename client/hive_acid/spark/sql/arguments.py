"""Arguments of a statement in the place of their marks: ``:name``, or ``?`` one after the other.

Queries hand their arguments to Spark. A statement that changes a table is taken apart, so there they become literals.
Days and times are literals in both: Spark would take them by way of Java's old calendar and lose some days of old ones.
So are texts where a query reads CHAR columns: their blanks count or not by what they are compared with.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyspark.sql import functions as F

from hive_acid.errors import SqlError
from hive_acid.numbers import python_number
from hive_acid.spark.sql.tokens import tokens_of
from hive_acid.spark.values.assign import text_value
from hive_acid.tokens import Token

Arguments = Mapping[str, object] | Sequence[object] | None
"""Values by name, or in the order of the marks; Python's, as `pyspark.sql.functions.lit` takes them."""

_INT = range(-(1 << 31), 1 << 31)
_BIGINT = range(-(1 << 63), 1 << 63)
_MOST_DIGITS = 38
_MICROS_PER_DAY = 86_400_000_000
_EPOCH = date(1970, 1, 1).toordinal()
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
"""After so many years, and days, the calendar is the same again."""


def for_query(arguments: Arguments, *, wall_clocks: Callable[[], bool]) -> Any:
    """`arguments` as Spark is given them with a query; `wall_clocks` as for `bound`."""

    def given(value: object) -> object:
        value = python_number(value)
        return F.expr(literal(value, wall_clocks=wall_clocks)) if isinstance(value, date) else value

    if isinstance(arguments, Mapping):
        return {name: given(value) for name, value in arguments.items()}
    return arguments if arguments is None or isinstance(arguments, str) else [given(value) for value in arguments]


def has_texts(arguments: Arguments) -> bool:
    """Whether there is a text among the values."""
    values = arguments.values() if isinstance(arguments, Mapping) else arguments or ()
    return not isinstance(arguments, str) and any(map(_is_text, values))


def with_texts(text: str, arguments: Arguments) -> tuple[str, Arguments]:
    """`text` with literals for the marks of texts, and the arguments for the others."""
    text = bound(text, arguments, wanted=_is_text)
    if isinstance(arguments, Mapping):
        return text, {name: value for name, value in arguments.items() if not _is_text(value)}
    return text, [value for value in arguments or () if not _is_text(value)]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def bound(
    text: str,
    arguments: Arguments,
    *,
    wall_clocks: Callable[[], bool] = lambda: False,
    wanted: Callable[[object], bool] = lambda _: True,
) -> str:
    """`text` with literals for its marks, of which others stay than those of `wanted` values.

    `wall_clocks` tells whether a time without zone is one of Spark's without zone; else it is of the process's zone.
    Raises SqlError for a value without literal, and for missing ones.
    """
    if arguments is None:
        return text
    if isinstance(arguments, str):
        raise SqlError("arguments are a dict of names to values, or a list of values")
    tokens = tokens_of(text)
    parts, at, count = [], 0, 0
    for number, token in enumerate(tokens):
        if isinstance(arguments, Mapping):
            if not _is_named_mark(tokens, number):
                continue
            name, end = tokens[number + 1].value, tokens[number + 1].end
            if name not in arguments:
                raise SqlError(f"the statement has a parameter :{name}, for which no argument is given")
            value = arguments[name]
        else:
            if token.word != "?":
                continue
            if count >= len(arguments):
                raise SqlError(f"the statement has more parameters than the {len(arguments)} arguments given")
            value, end = arguments[count], token.end
            count += 1
        if not wanted(value):
            continue
        parts += [text[at : token.start], _apart(text, token.start, end, literal(value, wall_clocks=wall_clocks))]
        at = end
    return "".join((*parts, text[at:]))


def _is_named_mark(tokens: Sequence[Token], at: int) -> bool:
    """Whether a colon begins a parameter; behind a name, without space, it would be a path into a variant."""
    if tokens[at].word != ":" or at + 1 == len(tokens) or tokens[at + 1].start != tokens[at].end:
        return False
    before = tokens[at - 1] if at else None
    is_path = before is not None and before.end == tokens[at].start and (before.word[-1:].isalnum() or not before.word)
    return not is_path and tokens[at + 1].word[:1].isidentifier()


def _apart(text: str, start: int, end: int, value: str) -> str:
    """A literal that is to stand for a mark in `text`, which letters beside it would become a part of."""
    before, after = text[:start][-1:], text[end:][:1]
    return f"{' ' * _is_of_word(before)}{value}{' ' * _is_of_word(after)}"


def _is_of_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


def literal(value: object, *, wall_clocks: Callable[[], bool] = lambda: False) -> str:
    """A Python value in Spark's SQL; `wall_clocks` as for `bound`. Raises SqlError if it has no literal."""
    value = python_number(value)
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int() if value in _INT:
            return f"({value})" if value < 0 else str(value)
        case int() if value in _BIGINT:
            return f"CAST('{value}' AS BIGINT)"
        case float():
            # Behind a minus another one would begin a comment.
            is_plain = math.isfinite(value) and math.copysign(1, value) > 0
            return f"{float(value)!r}D" if is_plain else f"CAST('{float(value)!r}' AS DOUBLE)"
        case Decimal() if value.is_finite() and _digits(value) <= _MOST_DIGITS:
            return f"({value:f}BD)"
        case str():
            return text_value(value)
        case bytes() | bytearray():
            return f"X'{value.hex()}'"
        case date() if value != value:
            return "NULL"
        case datetime() if value.tzinfo is None and wall_clocks():
            return f"TIMESTAMP_NTZ'{value.replace(fold=0).isoformat(' ', 'microseconds')[:26]}'"
        case datetime():
            return f"TIMESTAMP_LTZ'{_in_utc(_micros(value))}'"
        case date():
            return f"DATE'{value.isoformat()}'"
        case int() | Decimal():
            raise SqlError(f"the argument {value} is no number of SQL: of those bigint and decimal(38) are the widest")
        case _:
            raise SqlError(f"an argument of type {type(value).__name__} can be given to queries only")


def _digits(number: Decimal) -> int:
    """How many digits a decimal has in SQL."""
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    return max(len(digits) + max(exponent, 0), -exponent)


def _micros(moment: datetime) -> int:
    """Microseconds since 1970, exactly; without a zone it is in that of the process, as to Spark."""
    if moment.tzinfo is None:
        return int(time.mktime(moment.timetuple())) * 1_000_000 + moment.microsecond
    since = moment.replace(tzinfo=None) - datetime(1970, 1, 1) - (moment.utcoffset() or timedelta())
    return since // timedelta(microseconds=1)


def _in_utc(micros: int) -> str:
    """The text of a moment in UTC, also of one beyond Python's years."""
    days, of_day = divmod(micros, _MICROS_PER_DAY)
    ordinal = days + _EPOCH
    cycle = 1 if ordinal < 1 else -1 if ordinal > date.max.toordinal() else 0
    moment = datetime.fromordinal(ordinal + cycle * _CYCLE_DAYS) + timedelta(microseconds=of_day)
    year = moment.year - cycle * _CYCLE_YEARS
    return f"{'+' * (year > 9999)}{year:04}-{moment:%m-%d %H:%M:%S.%f}Z"
