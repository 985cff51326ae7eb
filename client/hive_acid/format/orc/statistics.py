"""Statistics of a column in an ORC file or stripe: what they say, and what of it can be trusted.

A bound that the file does not state, or that may not hold, is None and means nothing.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import NamedTuple

from hive_acid.errors import FormatError
from hive_acid.format.orc.protobuf import bytes_fields, number_fields, packed_numbers, zigzag

Bound = bool | int | float | Decimal | str | date | datetime
"""A minimum or maximum; timestamps are the writer's wall clock, without zone, whole milliseconds."""

_EPOCH = datetime(1970, 1, 1)
_EPOCH_DAY = date(1970, 1, 1)
FIRST_PLAIN_DAY = date(1900, 1, 1)
"""Before it the Julian calendar and local mean times make days and times ambiguous: such bounds are not used."""


class ColumnStatistics(NamedTuple):
    """What is known of one column in a file or stripe.

    `values` counts those that are not null, and is None if unknown; without `has_null` there is surely no null. Every
    value lies between `minimum` and `maximum`, inclusive, but not one that is NaN: bounds of a column that may have
    NaN are None. A bound may be one that no value has: of long texts and of
    timestamps it is a rounded one. `size` is the bytes of all values of a text or binary column, None if unknown.
    """

    values: int | None
    has_null: bool
    minimum: Bound | None = None
    maximum: Bound | None = None
    size: int | None = None


UNKNOWN = ColumnStatistics(None, has_null=True)
"""Of a column that a file says nothing about."""


@lru_cache(maxsize=16_384)  # Every statement asks for those of all files, and most files are there for long.
def column_statistics(kind: str, message: bytes) -> ColumnStatistics:
    """The message of statistics of a column of `kind`. Raises FormatError for bytes that are none."""
    numbers = number_fields(message)
    values = numbers.get(1)
    minimum: Bound | None = None
    maximum: Bound | None = None
    size: int | None = None
    for field, value in bytes_fields(message).items():
        if field == _BOOLEANS and kind == "boolean" and values is not None:
            true = sum(packed_numbers(bytes_fields(value).get(1, b""))[:1])
            minimum, maximum = true == values, true > 0
        elif (bounds := _BOUNDS.get(field)) is not None and kind in bounds[0]:
            minimum, maximum = bounds[1](value)
        if field in _SIZES and kind in _SIZES[field][0]:
            size = _signed(number_fields(value).get(_SIZES[field][1]))
    # Writers that do not say whether there is a null may have written some.
    return ColumnStatistics(values, bool(numbers.get(10, 1)), minimum, maximum, size)


_Bounds = tuple[Bound | None, Bound | None]


def _integer_bounds(message: bytes) -> _Bounds:
    numbers = number_fields(message)
    return _signed(numbers.get(1)), _signed(numbers.get(2))


def _double_bounds(message: bytes) -> _Bounds:
    """None where a NaN may be among the values: it makes the sum NaN, and is in no bound unless it came first."""
    found = {field: _double(value) for field, value in bytes_fields(message).items()}
    if len(found) < 3 or any(map(math.isnan, found.values())):
        return None, None
    return found.get(1), found.get(2)


def _double(value: bytes) -> float:
    if len(value) != 8:
        raise FormatError("the statistics of a column have a number of the wrong size")
    number: float = struct.unpack("<d", value)[0]
    return number


def _string_bounds(message: bytes) -> _Bounds:
    """The bounds, or, of texts that are too long to be stated, what lies below or above them.

    None for one in which Java may have put a sign for bytes that it could not decode, or could not count up.
    """
    found = bytes_fields(message)
    try:
        texts = {field: value.decode() for field, value in found.items()}
    except UnicodeDecodeError:
        return None, None
    minimum, maximum = texts.get(1, texts.get(4)), texts.get(2, texts.get(5))
    if maximum is not None and 2 not in texts and maximum.endswith("?"):
        maximum = None
    return tuple(None if bound and "\ufffd" in bound else bound for bound in (minimum, maximum))  # type: ignore[return-value]


def _decimal_bounds(message: bytes) -> _Bounds:
    found = bytes_fields(message)
    return _decimal(found.get(1)), _decimal(found.get(2))


def _decimal(text: bytes | None) -> Decimal | None:
    try:
        number = Decimal(text.decode()) if text else None
    except (InvalidOperation, UnicodeDecodeError):
        return None
    return number if number is not None and number.is_finite() else None


def _date_bounds(message: bytes) -> _Bounds:
    """Both or none: what begins before calendars agree is not used at all."""
    numbers = number_fields(message)
    minimum, maximum = (_day(_signed(numbers.get(field))) for field in (1, 2))
    return (None, None) if minimum is None else (minimum, maximum)


def _day(days: int | None) -> date | None:
    try:
        day = None if days is None else _EPOCH_DAY + timedelta(days=days)
    except OverflowError:
        return None
    return day if day is not None and day >= FIRST_PLAIN_DAY else None


def _timestamp_bounds(message: bytes) -> _Bounds:
    """From the fields that state the wall clock; older writers state instants of an unknown zone only."""
    numbers = number_fields(message)
    minimum, maximum = _time(_signed(numbers.get(3))), _time(_signed(numbers.get(4)), after_ms=1)
    return (None, None) if minimum is None else (minimum, maximum)


def _time(millis: int | None, after_ms: int = 0) -> datetime | None:
    try:
        time = None if millis is None else _EPOCH + timedelta(milliseconds=millis + after_ms)
    except OverflowError:
        return None
    return time if time is not None and time.date() >= FIRST_PLAIN_DAY else None


def _signed(value: int | None) -> int | None:
    return None if value is None else zigzag(value)


_BOOLEANS = 5
_SIZES: Mapping[int, tuple[tuple[str, ...], int]] = {4: (("string", "varchar", "char"), 3), 8: (("binary",), 1)}
"""In which message of which kinds, and by which field of it, the size is."""

_BOUNDS: Mapping[int, tuple[tuple[str, ...], Callable[[bytes], _Bounds]]] = {
    2: (("tinyint", "smallint", "int", "bigint"), _integer_bounds),
    3: (("float", "double"), _double_bounds),
    4: (("string", "varchar", "char"), _string_bounds),
    6: (("decimal",), _decimal_bounds),
    7: (("date",), _date_bounds),
    9: (("timestamp", "timestamp with local time zone"), _timestamp_bounds),
}
