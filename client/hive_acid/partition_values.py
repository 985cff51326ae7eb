"""Values of partition keys as the texts that name partitions: each value has one text, by the type of its key.

Hive, Trino and Spark write a value that they compute in this way, and convert one that a statement gives as text. What
others have named otherwise (``p=01``) is found by its value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal, DecimalException, localcontext

from hive_acid.catalog import Column, Table
from hive_acid.errors import ColumnError
from hive_acid.format.partitions import DEFAULT_PARTITION

_TYPE = re.compile(r"\s*([a-z]+)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*", re.IGNORECASE)
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})")
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "integer": 32, "bigint": 64}
_LONGEST_DECIMAL = 38


def partition_text(table: Table, key: Column, value: object) -> str | None:
    """The text of a value of a partition key, None for the default partition: that of null and of the empty text.

    Raises ColumnError for a value that is none of the key's type, and for the text that names the default partition,
    which Hive refuses as well (its error 10111).
    """
    if value is None or value == "":
        return None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    refuse_reserved(table, key, text)
    try:
        return canonical_text(key.type, text)
    except (ValueError, DecimalException):
        raise ColumnError(f"{table.full_name}.{key.name} is {key.type}, and '{text}' is none") from None


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


def _integer(bits: int) -> Callable[[str], str]:
    def text_of(text: str) -> str:
        number = int(text)
        if not -(1 << bits - 1) <= number < 1 << bits - 1:
            raise ValueError(text)
        return str(number)

    return text_of


def _boolean(text: str) -> str:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError(text)
    return text.strip().lower()


def _date(text: str) -> str:
    match = _DATE.fullmatch(text.strip())
    if match is None:
        return datetime.fromisoformat(text.strip()).date().isoformat()
    return date(int(match[1]), int(match[2]), int(match[3])).isoformat()


def _timestamp(text: str) -> str:
    moment = datetime.fromisoformat(text.strip())
    if moment.tzinfo is not None:
        raise ValueError(text)
    found = moment.isoformat(" ")
    return found.rstrip("0") if moment.microsecond else found


def _decimal(text: str, precision: int, scale: int) -> str:
    with localcontext(prec=2 * _LONGEST_DECIMAL):
        number = Decimal(text.strip()).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    if not number.is_finite() or len(number.as_tuple().digits) > max(precision, scale):
        raise ValueError(text)
    return format(number, "f")


_TEXTS: dict[str, Callable[[str], str]] = {
    **{kind: _integer(bits) for kind, bits in _BITS.items()},
    "boolean": _boolean,
    "date": _date,
    "timestamp": _timestamp,
}
