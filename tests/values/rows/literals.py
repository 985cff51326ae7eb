"""The ways in which a user writes a value beside a column of some type, and what Spark takes it for."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from tests.values.rows.compared import is_exact, is_number
from tests.values.rows.hostile import (
    INTEGER_BITS,
    MICROS_PER_DAY,
    float_text,
    hostile,
    is_text,
    sql_of,
)

_EPOCH_DAY = dt.date(1970, 1, 1)
_RANGES = {kind: range(-(2 ** (bits - 1)), 2 ** (bits - 1)) for kind, bits in INTEGER_BITS.items()}
_SUFFIXES = {"Y": "tinyint", "S": "smallint", "L": "bigint"}
_MOST_DIGITS = 38


class Literal(NamedTuple):
    """A value as it is written, and the type and value that Spark compares by.

    `given` is what `pyspark.sql.functions.lit` or a parameter takes for the same, `ABSENT` if there is nothing.
    """

    sql: str
    kind: str
    model: Any
    given: Any = ...


ABSENT = ...
NULL = Literal("NULL", "null", None, None)


def literal(chance: random.Random, kind: str) -> Literal:
    """Some value beside a column of `kind`, which is mostly one of that type, in some spelling."""
    other = kind
    if is_number(kind) and chance.random() < 0.25:
        other = chance.choice(("tinyint", "bigint", "decimal(5,2)", "decimal(19,0)", "double", "float"))
    if kind in ("date", "timestamp") and chance.random() < 0.2:
        other = "timestamp" if kind == "date" else "date"
    if is_text(kind) and chance.random() < 0.3:
        other = "string"
    model = chance.choice(hostile(other)[1:]).model
    if kind in INTEGER_BITS and other == "decimal(19,0)" and not _RANGES["bigint"][0] <= model <= _RANGES["bigint"][-1]:
        # Spark takes null for true beside a number that no column of whole numbers can have.
        other, model = kind, hostile(kind)[1].model
    if chance.random() < 0.15:
        model = beside(other, model)
    return chance.choice(list(spellings(kind, other, model)))


def beside(kind: str, model: Any) -> Any:
    """A value next to another one, or the same at the end of the range."""
    if kind in INTEGER_BITS or kind in ("date", "timestamp"):
        return model - 1 if model > 0 else model + 1
    if kind.startswith("decimal"):
        half = model / 2
        fits = half.as_tuple().exponent >= model.as_tuple().exponent and len(half.as_tuple().digits) < 20
        return half if fits else model
    if kind in ("float", "double"):
        return model if kind == "float" or not math.isfinite(model) else math.nextafter(model, 0.0)
    if is_text(kind):
        return model + " " if len(model) < 4 else model[:-1]
    return model


def spellings(column: str, kind: str, model: Any) -> Iterator[Literal]:
    """A value of `kind` in all the forms that may stand beside a column of type `column`."""
    if not isinstance(model, Decimal) or _digits(model) <= _MOST_DIGITS:
        yield Literal(sql_of(kind, model), kind, model)
    yield from _OF[_family(kind)](column, kind, model)


def _family(kind: str) -> str:
    if kind in INTEGER_BITS:
        return "integer"
    if kind.startswith("decimal"):
        return "decimal"
    if is_text(kind):
        return "text"
    return "float" if kind in ("float", "double") else kind


# --- numbers -------------------------------------------------------------------------------------


def _integers(column: str, kind: str, model: int) -> Iterator[Literal]:
    of = "int" if model in _RANGES["int"] else "bigint"
    yield Literal(str(model), of, model, model)
    for suffix, suffixed in _SUFFIXES.items():
        if model in _RANGES[suffixed]:
            yield Literal(f"{model}{suffix}", suffixed, model)
    yield from _decimals(column, "", Decimal(model))
    yield from _floats(column, "double", float(model))
    if is_exact(column) and not column.startswith("decimal"):
        yield Literal(f"'{model}'", "bigint", model)


def _decimals(column: str, kind: str, model: Decimal) -> Iterator[Literal]:
    for number in (model, Decimal(f"{model:f}0" if model.as_tuple().exponent else f"{model:f}.0")):
        if _digits(number) <= _MOST_DIGITS:
            scale = -int(number.as_tuple().exponent)
            of = f"decimal({max(_digits(number), scale)},{scale})"
            yield Literal(f"{number:f}BD", of, number, number)
            if scale:
                yield Literal(f"{number:f}", of, number, number)
                yield Literal(f"{number:f}".replace("0.", ".", 1) if abs(number) < 1 else f"({number:f})", of, number)
    if column.startswith("decimal"):
        yield Literal(f"'{model:f}'", "double", float(model))


def _floats(column: str, kind: str, model: float) -> Iterator[Literal]:
    text = float_text(kind, model)
    yield Literal(f"CAST('{text}' AS {kind})", kind, model)
    yield Literal(f"double('{text}')", "double", float(text))
    if math.isfinite(model):
        yield Literal(f"{text}D", "double", float(text), float(text))
        if kind == "float":
            yield Literal(f"{model!r}F", "float", model)
        if math.isfinite(model) and 1e-6 < abs(model) < 1e9:
            yield from _decimals("", "", Decimal(repr(model)))
    else:
        yield Literal(f"CAST('{text}' AS double)", "double", model, model)
    if column in ("float", "double"):
        yield Literal(f"'{text}'", "double", float(text))


def _digits(number: Decimal) -> int:
    return max(len(number.as_tuple().digits), -int(number.as_tuple().exponent))


# --- others --------------------------------------------------------------------------------------


def _booleans(column: str, kind: str, model: bool) -> Iterator[Literal]:
    yield Literal(str(model).lower(), kind, model, model)
    yield Literal(str(model).upper(), kind, model)
    yield Literal(f"'{str(model).lower()}'", kind, model)


def _texts(column: str, kind: str, model: str) -> Iterator[Literal]:
    if "${" in model:  # in SQL it stands for a setting
        return
    yield Literal(quoted_text(model), "string", model, model)
    if "\\" not in model:
        yield Literal("'" + model.replace("'", "''") + "'", "string", model)
    if "'" not in model:
        yield Literal(f"r'{model}'", "string", model)
    escaped = model.replace("\\", "\\\\").replace('"', '\\"')
    yield Literal(f'"{escaped}"', "string", model)
    if len(model) < 20 and model.isprintable() and all(ord(sign) < 0x10000 for sign in model):
        yield Literal("'" + "".join(f"\\u{ord(sign):04x}" for sign in model) + "'", "string", model)
    yield Literal(f"CAST({quoted_text(model)} AS string)", "string", model)


def quoted_text(text: str) -> str:
    """A text within quotes, for a session that has escapes in literals."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _dates(column: str, kind: str, model: int) -> Iterator[Literal]:
    day = dt.date.fromordinal(_EPOCH_DAY.toordinal() + model)
    text = day.isoformat()
    yield Literal(f"date'{text}'", kind, model, day)
    yield Literal(f"DATE '{text}'", kind, model)
    yield Literal(f"'{text}'", column, model if column == kind else model * MICROS_PER_DAY)
    yield Literal(f"'{day.year:04}-{day.month}-{day.day}'", column, model if column == kind else model * MICROS_PER_DAY)
    yield Literal(f"make_date({day.year}, {day.month}, {day.day})", kind, model)
    yield Literal(f"CAST('{text}' AS date)", kind, model)
    if column == kind:
        yield Literal(f"timestamp'{text} 00:00:00'", "timestamp", model * MICROS_PER_DAY)


def _timestamps(column: str, kind: str, model: int) -> Iterator[Literal]:
    text = time_text(model)
    days, of_day = divmod(model, MICROS_PER_DAY)
    yield Literal(f"timestamp'{text}'", kind, model)
    yield Literal(f"timestamp'{text}+00:00'", kind, model)
    yield Literal(f"timestamp_ltz'{text}'", kind, model)
    yield Literal(f"timestamp_ntz'{text}'", kind, model)
    yield Literal(f"CAST('{text}' AS timestamp)", kind, model)
    if column == kind:
        yield Literal(f"'{text}'", kind, model)
    day = dt.datetime.fromordinal(_EPOCH_DAY.toordinal() + days)
    moment = (day + _micros(of_day)).replace(tzinfo=dt.UTC)
    # PySpark hands it over as one of Java's old calendar: lit(the year 99) is two days later.
    given = moment if moment >= _FIRST_OF_LIT else ABSENT
    yield Literal(f"timestamp'{text} UTC'", kind, model, given)


def _micros(number: int) -> dt.timedelta:
    return dt.timedelta(microseconds=number)


def day_text(model: int) -> str:
    """Days since 1970 as a text that Spark reads."""
    return dt.date.fromordinal(_EPOCH_DAY.toordinal() + model).isoformat()


def time_text(model: int) -> str:
    """Microseconds since 1970 as a text that Spark reads."""
    days, of_day = divmod(model, MICROS_PER_DAY)
    day = dt.datetime.fromordinal(_EPOCH_DAY.toordinal() + days)
    return (day + _micros(of_day)).isoformat(sep=" ")


def _binaries(column: str, kind: str, model: bytes) -> Iterator[Literal]:
    yield Literal(f"X'{model.hex()}'", kind, model, bytearray(model))
    yield Literal(f"x'{model.hex().upper()}'", kind, model)


_FIRST_OF_LIT = dt.datetime(1582, 10, 15, tzinfo=dt.UTC)

_OF: dict[str, Callable[[str, str, Any], Iterator[Literal]]] = {
    "integer": _integers,
    "decimal": _decimals,
    "float": _floats,
    "boolean": _booleans,
    "text": _texts,
    "date": _dates,
    "timestamp": _timestamps,
    "binary": _binaries,
}
