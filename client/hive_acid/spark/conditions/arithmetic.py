"""Sums, products and quotients in a condition: of which type each is, and between which values it lies.

Spark refuses a result that its type has no room for. What a column holds may be known (`Span`), and a number in the
condition is, so of most results it can be told that there is room.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from hive_acid.catalog.table import Column
from hive_acid.spark.conditions.literals import INTEGERS, digits_of, type_name

Span = tuple[int, int]
"""The least and the greatest of some whole numbers."""

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "integer": 32, "bigint": 64}
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
"""Those of the decimal that a whole number of so many bits becomes beside one."""

_NO_INT = 1 << 31
_MOST_DIGITS = 38
_MOST_DIGITS_OF_SIGN = 34
"""Spark rounds a decimal with more digits as it changes the sign, and then it may have one too many."""

_LEAST_SCALE_OF_QUOTIENT = 6


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number of a type of so many bits, that lies between two."""

    bits: int
    low: int
    high: int

    @property
    def has_room(self) -> bool:
        """Whether the type has all that lies between them."""
        return -(1 << self.bits - 1) <= self.low and self.high < 1 << self.bits - 1


@dataclass(frozen=True, slots=True)
class Exact:
    """A decimal of so many digits, of which `scale` are behind the point."""

    precision: int
    scale: int

    @property
    def has_room(self) -> bool:
        """Whether there is such a type: Spark makes no narrower one of it then, so each value fits."""
        return self.precision <= _MOST_DIGITS and self.scale <= self.precision


@dataclass(frozen=True, slots=True)
class Floating:
    """A float or a double, of which no result is too large: it becomes infinite."""

    has_room = True


Number = Whole | Exact | Floating


def number_of_column(column: Column, span: Callable[[str], Span | None]) -> Number | None:
    """What the values of a column are, None if they are no numbers; `span` tells between which those of a column lie.

    It may be None of a column of which that is not known.
    """
    kind = type_name(column)
    if kind in INTEGERS:
        low, high = span(column.name) or (-(1 << _BITS[kind] - 1), (1 << _BITS[kind] - 1) - 1)
        return Whole(_BITS[kind], low, high)
    if kind in ("decimal", "numeric", "dec"):
        return Exact(*digits_of(column))
    return Floating() if kind in ("float", "double", "double precision") else None


def number_of_literal(text: str) -> Number | None:
    """What a number of SQL without sign and exponent is."""
    number = Decimal(text)
    scale = len(text.partition(".")[2])
    if "." in text:
        return Exact(max(len(str(int(number))) + scale, 1), scale)
    if number == _NO_INT:  # With the sign before it, it may be one.
        return None
    of_bits = (Whole(bits, int(number), int(number)) for bits in (32, 64))
    return next((found for found in of_bits if found.has_room), None)


def any_of_bits(bits: int) -> Whole:
    """Any whole number of a type."""
    return Whole(bits, -(1 << bits - 1), (1 << bits - 1) - 1)


def result_of(operation: exp.Expr, left: Number, right: Number | None) -> Number | None:
    """What Spark's `operation` makes of one number or two; None if it may be refused, or is not known here."""
    found = _unary(operation, left) if right is None else _binary(operation, left, right)
    return found if found is not None and found.has_room else None


def _unary(operation: exp.Expr, of: Number) -> Number | None:
    if isinstance(of, Exact) and of.precision > _MOST_DIGITS_OF_SIGN:
        return None
    if not isinstance(of, Whole):
        return of
    if isinstance(operation, exp.Neg):
        return Whole(of.bits, -of.high, -of.low)
    return Whole(of.bits, 0 if of.low <= 0 <= of.high else min(abs(of.low), abs(of.high)), max(abs(of.low), of.high))


def _binary(operation: exp.Expr, left: Number, right: Number) -> Number | None:
    if isinstance(left, Whole) and isinstance(right, Whole):
        return _of_whole(operation, left, right)
    if isinstance(operation, (exp.Add, exp.Sub, exp.Mul, exp.Div)):
        if isinstance(left, Floating) or isinstance(right, Floating):
            return Floating()
        return _of_exact(operation, _exact(left), _exact(right))
    return None


def _of_whole(operation: exp.Expr, left: Whole, right: Whole) -> Number | None:
    """Of two whole numbers; who divides by one has looked that it is greater than 0."""
    bits = max(left.bits, right.bits)
    match operation:
        case exp.Add():
            return Whole(bits, left.low + right.low, left.high + right.high)
        case exp.Sub():
            return Whole(bits, left.low - right.high, left.high - right.low)
        case exp.Mul():
            ends = [one * other for one in (left.low, left.high) for other in (right.low, right.high)]
            return Whole(bits, min(ends), max(ends))
        case exp.Div():
            return Floating()
        case exp.IntDiv():
            return Whole(_BITS["bigint"], min(left.low, 0), max(left.high, 0))
        case exp.Mod():
            return Whole(bits, max(min(left.low, 0), 1 - right.high), min(max(left.high, 0), right.high - 1))
    return Whole(bits, 0, right.high - 1)  # pmod


def _of_exact(operation: exp.Expr, left: Exact, right: Exact) -> Exact | None:
    whole = max(left.precision - left.scale, right.precision - right.scale)
    scale = max(left.scale, right.scale)
    match operation:
        case exp.Add() | exp.Sub():
            return Exact(whole + scale + 1, scale)
        case exp.Mul():
            return Exact(left.precision + right.precision + 1, left.scale + right.scale)
        case exp.Div():
            scale = max(_LEAST_SCALE_OF_QUOTIENT, left.scale + right.precision + 1)
            return Exact(left.precision - left.scale + right.scale + scale, scale)
    return None


def _exact(number: Whole | Exact) -> Exact:
    return number if isinstance(number, Exact) else Exact(_DIGITS[number.bits], 0)


def are_comparable(left: Number, right: Number) -> bool:
    """Whether some type holds both numbers as they are; of doubles all do, nearly."""
    if (
        isinstance(left, Floating)
        or isinstance(right, Floating)
        or (isinstance(left, Whole) and isinstance(right, Whole))
    ):
        return True
    one, other = _exact(left), _exact(right)
    return max(one.precision - one.scale, other.precision - other.scale) + max(one.scale, other.scale) <= _MOST_DIGITS
