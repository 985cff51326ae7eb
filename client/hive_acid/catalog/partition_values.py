"""Values of partition keys as the texts that name partitions: each value has one text, by the type of its key.

Hive, Trino and Spark write a value that they compute in this way, and convert one that a statement gives as text. What
others have named otherwise (``p=01``) is found by its value, which is that of Spark's cast.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import ROUND_HALF_UP, Decimal, DecimalException, localcontext

from hive_acid.catalog.table import Column, Table
from hive_acid.errors import ColumnError
from hive_acid.format.partitions import DEFAULT_PARTITION
from hive_acid.numbers import python_number

_TYPE = re.compile(r"\s*([a-z]+)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*", re.IGNORECASE)
_IS_CHAR = re.compile(r"\s*char\b", re.IGNORECASE)
_BLANKS = "".join(map(chr, range(0x21))) + "\x7f"
"""What Spark leaves out around a text that becomes a value of another type."""

_DAY = r"(?P<year>\d{4})(?:-(?P<month>\d{1,2})(?:-(?P<day>\d{1,2})%s)?)?"
_DATE = re.compile(_DAY % "(?:[ T].*)?", re.ASCII | re.DOTALL)
_TIME = r"(?:[ T](?P<hour>\d{1,2})(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<fraction>\d{0,9}))?)?)?)?"
_TIMESTAMP = re.compile(_DAY % _TIME, re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_BOOLEANS = {"true": {"true", "t", "yes", "y", "1"}, "false": {"false", "f", "no", "n", "0"}}
_FLOATS = {"nan": math.nan, "inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}
_LEAST_PLAIN, _FIRST_WITH_EXPONENT = 1e-3, 1e7
_DIGITS_OF_SINGLE = 9
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "integer": 32, "bigint": 64}
_LONGEST_DECIMAL = 38


def partition_text(table: Table, key: Column, value: object) -> str | None:
    """The text of a value of a partition key, None for the default partition: that of null and of the empty text.

    A CHAR has its whole length in blanks then, as in rows.

    Raises ColumnError for a value that is none of the key's type, for what is no single value at all, for the text that
    names the default partition, which Hive refuses as well (its error 10111), and for one that no directory can have as
    its name.
    """
    text = _written(table, key, value)
    if text is None or (not text and not has_blanks(key.type)):
        return None
    refuse_reserved(table, key, text)
    if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise ColumnError(
            f"{text!r} cannot be a value of partition key {key.name} of {table.full_name}: no name of a directory has "
            "a zero in it, or what is no UTF-8"
        )
    try:
        return canonical_text(key.type, text)
    except (ValueError, DecimalException):
        raise ColumnError(f"{table.full_name}.{key.name} is {key.type}, and '{text}' is none") from None


def _written(table: Table, key: Column, value: object) -> str | None:
    """The text that a value of Python is meant by."""
    given = python_number(value)
    match given:
        case None:
            return None
        case str():
            return str.__str__(given)
        case bool():
            return str(given).lower()
        case float():
            return java_text(float(given), is_single=key.type == "float")
        case bytes() | bytearray():
            try:
                return given.decode()
            except UnicodeDecodeError:
                raise ColumnError(
                    f"bytes that are no UTF-8 cannot be a value of partition key {key.name} of {table.full_name}"
                ) from None
        case int():
            return int.__repr__(given)
        case Decimal() | date():
            return str(given)
        case _:
            raise ColumnError(
                f"{table.full_name}.{key.name} is {key.type}, of which a {type(given).__name__} is no value: give a "
                "text, a number, a date or a datetime"
            )


def refuse_reserved(table: Table, key: Column, text: str | None) -> None:
    """Raise ColumnError for the text by which the partition of null is named."""
    if text is not None and text.rstrip(" ") == DEFAULT_PARTITION:
        raise ColumnError(reserved(table, key))


def reserved(table: Table, key: Column) -> str:
    """What is said of the text by which the partition of null is named."""
    return (
        f"{DEFAULT_PARTITION} is no value of partition key {key.name} of {table.full_name}: "
        "it stands for null in the names of partitions, so give null"
    )


def canonical_text(hive_type: str, text: str) -> str:
    """The one text of a value. Raises ValueError or DecimalException for a text that is no value of the type."""
    match = _TYPE.fullmatch(hive_type)
    kind, first, second = (match[1].lower(), match[2], match[3]) if match else ("", None, None)
    if kind in ("char", "varchar"):
        if len(text.rstrip(" ")) > int(first or 0):
            raise ValueError(text)
        return text.rstrip(" ").ljust(int(first or 0)) if kind == "char" else text[: int(first or 0)]
    if kind in ("decimal", "numeric", "dec"):
        return _decimal(text, int(first or 10), int(second or 0))
    return _TEXTS.get(kind, str)(text)


def known_text(hive_type: str, text: str | None) -> str | None:
    """As `canonical_text`, of a partition that is there: a text that is no value of the type stands for itself."""
    if text is None:
        return None
    try:
        return canonical_text(hive_type, text)
    except (ValueError, DecimalException):
        return text


def has_one_text(hive_type: str) -> bool:
    """Whether each value of the type is named by one text only."""
    match = _TYPE.fullmatch(hive_type)
    return match is not None and match[1].lower() in ("string", "varchar")


def has_blanks(hive_type: str) -> bool:
    """Whether texts of the type have blanks up to its length, so that none is empty."""
    return _IS_CHAR.match(hive_type) is not None


def _integer(bits: int) -> Callable[[str], str]:
    def text_of(text: str) -> str:
        number = int(_matched(_INTEGER, text)[0])
        if not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise ValueError(text)
        return str(number)

    return text_of


def _boolean(text: str) -> str:
    found = next((name for name, texts in _BOOLEANS.items() if text.strip(_BLANKS).lower() in texts), None)
    if found is None:
        raise ValueError(text)
    return found


def _date(text: str) -> str:
    year, month, day = _matched(_DATE, text).group("year", "month", "day")
    return date(int(year), int(month or 1), int(day or 1)).isoformat()


def _timestamp(text: str) -> str:
    found = _matched(_TIMESTAMP, text)
    day = datetime(int(found["year"]), int(found["month"] or 1), int(found["day"] or 1))
    clock = time(int(found["hour"] or 0), int(found["minute"] or 0), int(found["second"] or 0))
    micros = int((found["fraction"] or "").ljust(6, "0")[:6])
    text = datetime.combine(day, clock.replace(microsecond=micros)).isoformat(" ")
    return text.rstrip("0") if micros else text


def _decimal(text: str, precision: int, scale: int) -> str:
    with localcontext(prec=2 * _LONGEST_DECIMAL):
        number = Decimal(_matched(_NUMBER, text)[0]).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    if len(number.as_tuple().digits) > max(precision, scale):
        raise ValueError(text)
    return format(number if number else abs(number), "f")


def _floating(*, is_single: bool) -> Callable[[str], str]:
    def text_of(text: str) -> str:
        word = text.strip(_BLANKS).lower()
        found = _FLOATS.get(word.lstrip("+"))
        number = float(_matched(_NUMBER, word.rstrip("df"))[0]) if found is None else found
        return java_text(number, is_single=is_single)

    return text_of


def java_text(number: float, *, is_single: bool = False) -> str:
    """The text of a double or float as Java writes it, and Spark in the names of partitions: ``1.0E-5``."""
    if math.isnan(number):
        return "NaN"
    if is_single:
        number = _single(number)
    sign = "-" if math.copysign(1, number) < 0 else ""
    number = abs(number)
    if math.isinf(number):
        return f"{sign}Infinity"
    if number == 0:
        return f"{sign}0.0"
    shortest = repr(number)
    if is_single:
        texts = (f"{number:.{digits}e}" for digits in range(_DIGITS_OF_SINGLE))
        shortest = next(text for text in texts if _single(float(text)) == number)
    _, digits, exponent = Decimal(shortest).normalize().as_tuple()
    assert isinstance(exponent, int)
    written, point = "".join(map(str, digits)), len(digits) + exponent
    if _LEAST_PLAIN <= number < _FIRST_WITH_EXPONENT:
        whole = written[:point].ljust(point, "0") if point > 0 else "0"
        return f"{sign}{whole}.{'0' * -point + written[max(point, 0) :] or '0'}"
    return f"{sign}{written[0]}.{written[1:] or '0'}E{point - 1}"


def _single(number: float) -> float:
    """The float of 32 bits that is nearest."""
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.fullmatch(text.strip(_BLANKS))
    if match is None:
        raise ValueError(text)
    return match


_TEXTS: dict[str, Callable[[str], str]] = {
    **{kind: _integer(bits) for kind, bits in _BITS.items()},
    "boolean": _boolean,
    "date": _date,
    "timestamp": _timestamp,
    "float": _floating(is_single=True),
    "double": _floating(is_single=False),
}
