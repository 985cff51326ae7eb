"""The values that break things, for each of Hive's types: edges of ranges, calendars, encodings, and what lies beside.

A value is told twice: as an expression of Spark's SQL that means the same under all settings, and in Python, where
days and microseconds since 1970 stand for dates and timestamps, which Python's own cannot all be. Some values no ORC
file can hold as they are: those are to be refused by every writer.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

MICROS_PER_DAY = 86_400_000_000
INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
DECIMALS = (
    "decimal(1,0)",
    "decimal(5,2)",
    "decimal(10,0)",
    "decimal(18,6)",
    "decimal(19,0)",
    "decimal(38,0)",
    "decimal(38,18)",
    "decimal(38,38)",
)
TEXTS = ("string", "varchar(6)", "char(4)")
NESTED = (
    "array<int>",
    "array<string>",
    "array<char(4)>",
    "array<date>",
    "array<timestamp>",
    "map<string,double>",
    "map<int,decimal(38,18)>",
    "struct<a:bigint,b:string>",
    "struct<a:char(4),b:date>",
    "struct<a:float,b:array<timestamp>>",
)
SIMPLE = (*INTEGER_BITS, *DECIMALS, "float", "double", "boolean", *TEXTS, "date", "timestamp", "binary")
TYPES = (*SIMPLE, *NESTED)


@dataclass(frozen=True)
class Value:
    """A value of one type: as SQL, in Python, and whether a table can hold it.

    In Python decimals are Decimal, texts str (those of char without blanks behind), dates days and timestamps
    microseconds since 1970 in UTC, arrays and structs tuples, maps tuples of pairs, null None.
    """

    sql: str
    model: Any
    is_stored: bool = True


def hostile(kind: str) -> tuple[Value, ...]:
    """The values of a type, null first; no two are the same but zeros of both signs."""
    null = Value(f"CAST(NULL AS {spark_name(kind)})", None)
    return (null, *(value_of(kind, model) for model in dict.fromkeys(_models(kind), None)))


def stored(kind: str) -> tuple[Value, ...]:
    """Those that a table can hold."""
    return tuple(value for value in hostile(kind) if value.is_stored)


def value_of(kind: str, model: Any) -> Value:
    """A value of a type from what it is in Python."""
    if isinstance(model, _Signed):
        model = model.number
    return Value(sql_of(kind, model), model, is_storable(kind, model))


def spark_name(kind: str) -> str:
    """The type as Spark's SQL takes it in a cast: texts are strings."""
    return re.sub(r"(?:var)?char\(\d+\)", "string", kind)


def sql_of(kind: str, model: Any) -> str:
    """An expression for a value that no setting of Spark gives another meaning or type."""
    if model is None:
        return f"CAST(NULL AS {spark_name(kind)})"
    if kind in INTEGER_BITS or kind.startswith("decimal"):
        return f"CAST('{model:f}' AS {kind})" if isinstance(model, Decimal) else f"CAST('{model}' AS {kind})"
    if kind in ("float", "double"):
        return f"CAST('{float_text(kind, model)}' AS {kind})"
    if kind == "boolean":
        return str(model).lower()
    if kind == "binary":
        return f"X'{model.hex()}'"
    if is_text(kind):
        return f"CAST(X'{model.encode().hex()}' AS string)"
    if kind == "date":
        return f"date_from_unix_date({model})"
    if kind == "timestamp":
        return f"timestamp_micros({model})"
    name, parts = inner(kind)
    if name == "array":
        return f"CAST(array({', '.join(sql_of(parts[0], one) for one in model)}) AS {spark_name(kind)})"
    if name == "map":
        pairs = (f"{sql_of(parts[0], key)}, {sql_of(parts[1], value)}" for key, value in model)
        return f"CAST(map({', '.join(pairs)}) AS {spark_name(kind)})"
    fields = (part.partition(":") for part in parts)
    named = (f"'{name}', {sql_of(of, value)}" for (name, _, of), value in zip(fields, model, strict=True))
    return f"named_struct({', '.join(named)})"


def is_storable(kind: str, model: Any) -> bool:
    """Whether an ORC file can hold the value: days that the Julian calendar's end left out cannot be told in it, and
    Java's writer puts times with milliseconds of the last second before 1970 a second later.
    """
    if model is None:
        return True
    if kind == "date":
        return not _FIRST_LOST_DAY <= model <= _LAST_LOST_DAY
    if kind == "timestamp":
        return not -999_000 <= model < 0 and is_storable("date", model // MICROS_PER_DAY)
    name, parts = inner(kind)
    if name == "array":
        return all(is_storable(parts[0], one) for one in model)
    if name == "map":
        return all(is_storable(of, one) for pair in model for of, one in zip(parts, pair, strict=True))
    if name == "struct":
        kinds = (part.partition(":")[2] for part in parts)
        return all(is_storable(of, one) for of, one in zip(kinds, model, strict=True))
    return True


def python_of(kind: str, model: Any) -> Any:
    """A value as Python has it: times without zone, lists, dicts for structs."""
    if model is None:
        return None
    name, parts = inner(kind)
    if name == "array":
        return [python_of(parts[0], one) for one in model]
    if name == "struct":
        fields = (part.partition(":") for part in parts)
        return {of: python_of(kind_, value) for (of, _, kind_), value in zip(fields, model, strict=True)}
    if kind == "date":
        return date(1970, 1, 1) + timedelta(days=model)
    return datetime(1970, 1, 1) + timedelta(microseconds=model) if kind == "timestamp" else model


def is_text(kind: str) -> bool:
    """Whether the type is string, varchar or char."""
    return kind == "string" or kind.startswith(("varchar(", "char("))


def inner(kind: str) -> tuple[str, list[str]]:
    """``array``, ``map``, ``struct`` or nothing, and what stands between the brackets."""
    name, _, rest = kind.partition("<")
    if not rest:
        return "", []
    parts, depth, begin = [], 0, 0
    for at, char in enumerate(rest[:-1]):
        depth += (char in "<(") - (char in ">)")
        if char == "," and not depth:
            parts.append(rest[begin:at])
            begin = at + 1
    return name, [*parts, rest[begin:-1]]


def float_text(kind: str, number: float) -> str:
    """A float or double so that it reads as the same again."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    return f"{number:.9g}" if kind == "float" else repr(number)


def day(text: str) -> int:
    """Days since 1970 of ``yyyy-mm-dd`` in the Gregorian calendar, carried back to the year 1."""
    return date.fromisoformat(text).toordinal() - date(1970, 1, 1).toordinal()


def micros(text: str) -> int:
    """Microseconds since 1970 of ``yyyy-mm-dd hh:mm:ss[.ffffff]`` in UTC."""
    time = datetime.fromisoformat(text)
    of_day = ((time.hour * 60 + time.minute) * 60 + time.second) * 1_000_000 + time.microsecond
    return day(text[:10]) * MICROS_PER_DAY + of_day


_FIRST_LOST_DAY, _LAST_LOST_DAY = day("1582-10-05"), day("1582-10-14")
_EXACT = Context(prec=60)
"""Decimal's own context would round to 28 digits."""


# --- of each type --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Signed:
    """A float that is told from others by its bits: there are two zeros, and NaN is itself."""

    bits: bytes

    @property
    def number(self) -> float:
        number: float = struct.unpack(">d", self.bits)[0]
        return number


def _models(kind: str) -> Iterator[Any]:
    if kind in INTEGER_BITS:
        most = 2 ** (INTEGER_BITS[kind] - 1) - 1
        yield from (-most - 1, -most, -2, -1, 0, 1, 2, most - 1, most)
        yield from (edge for bits in (7, 15, 31, 53) if 2**bits < most for edge in (-(2**bits), 2**bits, 2**bits + 1))
    elif kind.startswith("decimal"):
        precision, scale = map(int, re.findall(r"\d+", kind))
        most = 10**precision - 1
        some = (1, 5, 10**scale, 10**scale + 1, int("1234567890" * 4) % 10**precision, most - 1, most)
        units = [0, *(sign * unit for unit in some if unit <= most for sign in (1, -1))]
        yield from (Decimal(unit).scaleb(-scale, _EXACT) for unit in units)
    elif kind in ("float", "double"):
        yield from (_Signed(struct.pack(">d", number)) for number in _floats(kind))
    elif kind == "boolean":
        yield from (False, True)
    elif kind == "binary":
        yield from _BINARIES
    elif is_text(kind):
        yield from _texts(kind)
    elif kind == "date":
        yield from map(day, _DAYS)
    elif kind == "timestamp":
        yield from map(micros, _TIMES)
    else:
        yield from _nested(kind)


def _floats(kind: str) -> Iterator[float]:
    greatest, least, normal, bits = (
        (3.4028234663852886e38, 1.401298464324817e-45, 1.1754943508222875e-38, 24)
        if kind == "float"
        else (1.7976931348623157e308, 5e-324, 2.2250738585072014e-308, 53)
    )
    for sign in (1, -1):
        for number in (0.0, least, normal, 0.1, 0.5, 1.0, 1 + 2.0 ** (1 - bits), 2.0**bits - 1, 2.0**bits, greatest):
            yield sign * (_single(number) if kind == "float" else number)
        yield sign * math.inf
    yield math.nan


def _single(number: float) -> float:
    rounded: float = struct.unpack(">f", struct.pack(">f", number))[0]
    return rounded


def _texts(kind: str) -> Iterator[str]:
    length = int(match[1]) if (match := re.search(r"\((\d+)\)", kind)) else None
    for text in _TEXTS:
        cut = text if length is None else text[:length]
        yield cut.rstrip(" ") if kind.startswith("char") else cut


def _nested(kind: str) -> Iterator[Any]:
    name, parts = inner(kind)
    if name == "array":
        values = [value.model for value in hostile(parts[0])]
        yield from ((), (None,), *((one,) for one in values[1:]), tuple(values[:3]), tuple(reversed(values[1:4])))
    elif name == "map":
        keys = [value.model for value in hostile(parts[0])[1:]]
        values = [value.model for value in hostile(parts[1])]
        yield from ((), *(((key, value),) for key, value in zip(keys, values, strict=False)))
        yield tuple(zip(keys[:3], values, strict=False))
    else:
        fields = [[value.model for value in hostile(part.partition(":")[2])] for part in parts]
        yield from (tuple(of[at % len(of)] for of in fields) for at in range(max(map(len, fields))))


_BINARIES = (
    b"",
    b"\0",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff\xff",
    b"a",
    b"a ",
    b"\xc3\x28",
    bytes(range(256)),
    b"\n",
    b"'\\",
)

_TEXTS = (
    "", " ", "  ", "a", "a ", "a  ", " a", "ab", "ab  ", "A", "aB", "Ab", "b", "a\tb", "a\nb", "\n", "\r\n", "\0",
    "a\0", "a'b", "''", '"', '"a"', "\\", "\\\\", "a\\b", "\\n", "\\u0041", "%", "_", "a%", "a_b", "%a%", "`", "--",
    "/*", "$1", "${x}", ";", ":p", "?", "0", "-0", "00", "1", "1.0", "1e0", "NaN", "null", "NULL", "true",
    "1970-01-01", "ä", "a\u0308", "Ä", "ß", "ı", "İ", "\u00a0", "\u3000", "\u200b", "\ufeff", "\u20ac", "日本",
    "\ud7ff", "\ue000", "\uffff", "\ufffd", "\U00010000", "\U0001f600", "\U0001f600a", "\U0010ffff", "\u0301",
    "x" * 6, "x" * 300, "\U0001f600" * 300, "x" * 1024, "x" * 1025, "x" * 1024 + "\U0010ffff", "\ud7ff" * 400,
    "y" + "x" * 3000, "ä" * 513,
)  # fmt: skip
"""The hidden name of Hive's default partition is left out: as a partition key it is refused."""

_DAYS = (
    "0001-01-01", "0001-01-02", "0001-03-01", "0004-02-29", "0099-12-31", "0100-03-01", "0999-12-31", "1000-01-01",
    "1500-01-01", "1500-02-28", "1500-03-01", "1582-10-03", "1582-10-04", "1582-10-05", "1582-10-10", "1582-10-14",
    "1582-10-15", "1582-10-16", "1600-02-29", "1883-11-18", "1899-12-31", "1900-01-01", "1900-02-28", "1900-03-01",
    "1969-12-31", "1970-01-01", "1970-01-02", "2000-02-29", "2016-12-31", "2024-02-28", "2024-02-29", "2024-03-01",
    "2024-03-10", "2024-11-03", "2038-01-19", "2100-02-28", "2100-03-01", "9998-12-31", "9999-01-01", "9999-12-30",
    "9999-12-31",
)  # fmt: skip

_TIMES = (
    *(f"{of} {clock}" for of in _DAYS for clock in ("00:00:00", "23:59:59.999999")),
    "1969-12-31 23:59:57.000001", "1969-12-31 23:59:58", "1969-12-31 23:59:58.000001", "1969-12-31 23:59:58.000999",
    "1969-12-31 23:59:58.001", "1969-12-31 23:59:58.999999", "1969-12-31 23:59:59", "1969-12-31 23:59:59.000001",
    "1969-12-31 23:59:59.000999", "1969-12-31 23:59:59.001", "1969-12-31 23:59:59.5", "1969-12-31 23:59:59.999",
    "1970-01-01 00:00:00.000001", "1970-01-01 00:00:00.000999", "1970-01-01 00:00:00.001", "1970-01-01 00:00:01",
    "1950-06-01 12:00:00.000001", "1950-06-01 12:00:00.0001", "1950-06-01 12:00:00.1", "2014-12-31 23:59:59.999999",
    "2015-01-01 00:00:00", "2015-01-01 00:00:00.000001", "2016-12-31 23:59:59.5", "2024-03-10 02:30:00",
    "2024-03-10 07:00:00", "2024-03-31 01:00:00", "2024-03-31 02:30:00", "2024-10-27 01:00:00", "2024-11-03 01:30:00",
    "2024-11-03 06:00:00", "2038-01-19 03:14:07.999999", "2038-01-19 03:14:08", "1677-09-21 00:12:43",
    "2262-04-11 23:47:16.854775",
)  # fmt: skip
