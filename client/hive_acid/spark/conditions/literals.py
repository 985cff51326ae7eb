"""Literals of SQL and values of Python as exact values of a column's type: those that compare as the column's do.

What a literal becomes when Spark compares it with a column depends on both types and on settings. So only forms count
of which it is one and the same in all cases; all others are None, which is no hint.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

from sqlglot import exp

from hive_acid.catalog.table import Column
from hive_acid.format.orc.statistics import Bound
from hive_acid.spark.conditions.trees import DAY, DAY_OR_TIME, bare


@dataclass(frozen=True, slots=True)
class LiteralKind:
    """How literals of SQL and values of Python become exact values of a column's type, None where they do not."""

    of_literal: Callable[[exp.Expr | None], Bound | None]
    of_python: Callable[[object], Bound | None]


_INTEGER = re.compile(r"-?(0|[1-9]\d{0,17})")
INTEGERS = frozenset({"tinyint", "smallint", "int", "integer", "bigint"})
"""The names of the types of whole numbers."""

_LARGEST_LONG = 2**63 - 1
LARGEST_INT = 2**31 - 1
_DIGITS_OF_INT, _DIGITS_OF_LONG, _MOST_DIGITS = 10, 20, 38
_LARGEST_FLOAT = 3.4e38


def type_name(column: Column) -> str:
    """The column's type without parameters, in lower case."""
    return re.split(r"[(<]", column.type.strip().lower())[0].strip()


def digits_of(column: Column) -> tuple[int, int]:
    """Precision and scale of a decimal column."""
    digits = [int(of) for of in re.findall(r"\d+", column.type)]
    return (digits or [10])[0], digits[1] if len(digits) > 1 else 0


def kind_of(column: Column) -> LiteralKind | None:
    """How values of the column's type are told; None for types whose comparisons have rules of their own."""
    name = type_name(column)
    if name in ("decimal", "numeric", "dec"):
        precision, scale = digits_of(column)
        return LiteralKind(lambda tree: _decimal_literal(tree, precision, scale), lambda value: _decimal(value, scale))
    return _KINDS.get("int" if name in INTEGERS else name)


def _number(tree: exp.Expr | None) -> Decimal | None:
    """A number without exponent, as SQL has it: exact."""
    tree = bare(tree)
    if negative := isinstance(tree, exp.Neg):
        tree = bare(tree.this)
    if not isinstance(tree, exp.Literal) or tree.is_string or not re.fullmatch(r"\d+(\.\d*)?|\.\d+", tree.this):
        return None
    number = Decimal(tree.this)
    return -number if negative else number


def _text(tree: exp.Expr | None) -> str | None:
    """A text without quotes in it: two of them are one, or none by a setting of Spark."""
    tree = bare(tree)
    return tree.this if isinstance(tree, exp.Literal) and tree.is_string and "'" not in tree.this else None


def _integer(value: object) -> int | None:
    if isinstance(value, Decimal):
        value = int(value) if value == value.to_integral_value() else None
    if isinstance(value, bool) or not isinstance(value, int) or not -_LARGEST_LONG <= value <= _LARGEST_LONG:
        return None
    return value


def _integer_literal(tree: exp.Expr | None) -> int | None:
    tree = bare(tree)
    if isinstance(tree, exp.Cast) and tree.to.this is exp.DataType.Type.BIGINT:
        return _integer(_number(tree.this))
    text = _text(tree)
    if text is not None:
        return int(text) if _INTEGER.fullmatch(text) and text != "-0" else None
    return _integer(_number(tree))


def _decimal_literal(tree: exp.Expr | None, precision: int, scale: int) -> Decimal | None:
    """A number beside which no value of the column is rounded: there is a decimal that holds all of both types.

    Without one Spark gives up places behind the point, and 1E-38 is equal to 0.
    """
    number = _number(tree)
    if number is None:
        return None
    of_number = -int(number.as_tuple().exponent)
    whole = len(number.as_tuple().digits) - of_number
    if not of_number:
        # By a setting, an integer counts as wide as its type is.
        whole = _DIGITS_OF_INT if abs(number) <= LARGEST_INT else max(whole, _DIGITS_OF_LONG)
    fits = max(precision - scale, whole) + max(scale, of_number) <= _MOST_DIGITS
    return _decimal(number, scale) if fits else None


def _decimal(value: object, scale: int) -> Decimal | None:
    if isinstance(value, int) and not isinstance(value, bool):
        value = Decimal(value)
    if not isinstance(value, Decimal) or not value.is_finite() or len(value.as_tuple().digits) > _MOST_DIGITS:
        return None
    try:
        exact = value == round(value, scale)
    except InvalidOperation:
        return None
    return value if exact else None


def _double(value: object) -> float | None:
    """The nearest double, as Spark takes it; NaN and infinities are not compared as others are."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if abs(number) < float("inf") else None


def _float(value: object) -> float | None:
    """With a whole number Spark may compare in the precision of the column, with others in that of doubles."""
    number = _double(value)
    if number is None or (number.is_integer() and not _is_of_single_precision(number)):
        return None
    return number


def _is_of_single_precision(number: float) -> bool:
    return abs(number) <= _LARGEST_FLOAT and struct.unpack("f", struct.pack("f", number))[0] == number


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _boolean(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _boolean_literal(tree: exp.Expr | None) -> bool | None:
    tree = bare(tree)
    return bool(tree.this) if isinstance(tree, exp.Boolean) else None


def _day(value: object) -> date | None:
    return value if isinstance(value, date) and not isinstance(value, datetime) else None


def _day_literal(tree: exp.Expr | None) -> date | None:
    """A date as such or as text; of other texts and times Spark's rules are many."""
    tree = bare(tree)
    if isinstance(tree, exp.Cast) and tree.to.this is exp.DataType.Type.DATE:
        tree = bare(tree.this)
    text = _text(tree)
    try:
        return date.fromisoformat(text) if text and DAY.fullmatch(text) else None
    except ValueError:
        return None


_TIMES = (exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPTZ)
"""`TIMESTAMP'…'` and casts to it, as the parser has them."""


def _time_literal(tree: exp.Expr | None) -> datetime | None:
    """A time, or a day, as such or as text: what clocks show in the zone of the session."""
    tree = bare(tree)
    if isinstance(tree, exp.Cast) and tree.to.this in _TIMES:
        tree = bare(tree.this)
    if (day := _day_literal(tree)) is not None:
        return datetime(day.year, day.month, day.day)
    text = _text(tree)
    try:
        return datetime.fromisoformat(text) if text and DAY_OR_TIME.fullmatch(text) else None
    except ValueError:
        return None


def _no_time(value: object) -> None:
    """Of times as Python has them it is not known in which zone."""


_KINDS: dict[str, LiteralKind] = {
    "int": LiteralKind(_integer_literal, _integer),
    "float": LiteralKind(lambda tree: _float(_number(tree)), _float),
    "double": LiteralKind(lambda tree: _double(_number(tree)), _double),
    "double precision": LiteralKind(lambda tree: _double(_number(tree)), _double),
    "string": LiteralKind(_text, _string),
    "boolean": LiteralKind(_boolean_literal, _boolean),
    "date": LiteralKind(_day_literal, _day),
    "timestamp": LiteralKind(_time_literal, _no_time),
}
