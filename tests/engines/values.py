"""Rows of hostile values, how each engine is given them, and how what it shows becomes Python's values again."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

COLUMNS = {
    "id": "int",
    "flag": "boolean",
    "tiny": "tinyint",
    "small": "smallint",
    "big": "bigint",
    "single": "float",
    "number": "double",
    "amount": "decimal(38,10)",
    "day": "date",
    "at": "timestamp",
    "text": "string",
    "short": "varchar(6)",
    "padded": "char(5)",
    "bytes": "binary",
    "list": "array<char(3)>",
    "map": "map<string,int>",
    "nested": "struct<a:bigint,b:char(3),c:varchar(3)>",
}
"""The columns of the tables that engines write for each other, with Hive's types."""

_MOST = Decimal("9999999999999999999999999999.9999999999")

ROWS: tuple[tuple[Any, ...], ...] = (
    (1, True, 127, 32767, 2**63 - 1, 0.1, 0.1, _MOST, date(9999, 12, 31), datetime(9999, 12, 31, 23, 59, 59, 999999),
     "\U0001f600\U0010ffff", "\U0001f600é", "ab   ", b"\x00\xff", ["a  ", "   "], {"\U0001f600": 1, "": -1},
     (1, "q  ", "v")),
    (2, False, -128, -32768, -(2**63), -0.0, -0.0, _MOST.copy_negate(), date(1582, 10, 15),
     datetime(1969, 12, 31, 23, 59, 58, 500000), "", "", "     ", b"", [], {}, (-(2**63), "   ", "")),
    (3, None, 0, 0, 0, float("inf"), float("inf"), Decimal("0E-10"), date(1970, 1, 1), datetime(1970, 1, 1),
     "tab\tnew\nline\\ 'quoted' \"twice\"", "a b", " ab  ", b"\t\n", ["'  "], {"k": None}, (None, None, None)),
    (4, True, -1, -1, -1, float("-inf"), float("-inf"), Decimal("-0.0000000001"), date(2000, 2, 29),
     datetime(2000, 2, 29, 12, 34, 56, 123456), "ünïcödé ", "ab ", "éé   ", b"plain", ["é  ", None], {"a": 2**31 - 1},
     (2**63 - 1, "é  ", "éé ")),
    (5, False, 1, 1, 1, float("nan"), float("nan"), Decimal("1E-10"), date(1, 1, 1), datetime(1, 1, 3), "NULL", "null",
     "NULL ", b"NULL", ["x  ", "x  "], {"NULL": 0}, (0, "nul", "nul")),
    (6, True, 2, 2, 2, 5e-324, 5e-324, Decimal("2E-10"), date(1500, 1, 1), datetime(1500, 1, 1, 1, 1, 1, 1), "\x01\x02",
     "\x01", "\x01    ", b"\x01", ["\x01  "], {"\x01": 1}, (0, "\x01  ", "\x01")),
    (7, *(None,) * (len(COLUMNS) - 1)),
)  # fmt: skip
"""A value of FLOAT is what is left of the double."""


def as_single(value: float) -> float:
    """The double nearest to which a FLOAT is stored."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


SIMPLE = tuple(name for name in COLUMNS if name not in ("list", "map", "nested"))
"""The columns whose values an engine is given as literals."""


def rows_of(columns: Sequence[str] = tuple(COLUMNS)) -> list[tuple[Any, ...]]:
    """The rows in these columns."""
    places = [list(COLUMNS).index(name) for name in columns]
    return [tuple(row[place] for place in places) for row in ROWS]


def expected(columns: Sequence[str] = tuple(COLUMNS), *, in_ours: bool = False) -> list[str]:
    """What must be read back, as `told` writes it; in our client (`in_ours`) a nested CHAR has no blanks at its end."""

    def one(name: str, value: Any) -> Any:
        if name == "single" and value is not None:
            return as_single(value)
        if in_ours and value is not None and name == "list":
            return [item and item.rstrip(" ") for item in value]
        if in_ours and value is not None and name == "nested":
            return (value[0], value[1] and value[1].rstrip(" "), value[2])
        return value

    return told([tuple(map(one, columns, row)) for row in rows_of(columns)])


def told(rows: Sequence[Sequence[Any]]) -> list[str]:
    """Rows in order, as texts in which no two values look alike: -0.0 is not 0.0, and NaN is itself."""
    return sorted((repr(tuple(map(_told, row))) for row in rows), key=_number)


def _number(text: str) -> tuple[int, str]:
    return len(text.partition(",")[0]), text


def _told(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _told(value[key]) for key in sorted(value)}
    if isinstance(value, Decimal):
        return f"{value:f}".rstrip("0").rstrip(".") if "." in f"{value:f}" else f"{value:f}"
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, tuple):
        return tuple(map(_told, value))
    if isinstance(value, list):
        return list(map(_told, value))
    return value


# --- as engines are told ---------------------------------------------------------------------------

_SPELT = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}


def hive_literal(kind: str, value: Any) -> str:
    """A value of a type that is not nested, in Hive's SQL."""
    if value is None or isinstance(value, bool):
        return f"CAST({str(value).lower() if value is not None else 'NULL'} AS {kind})"
    if isinstance(value, bytes):
        return f"unhex('{value.hex()}')"
    text = _text(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"CAST('{text}' AS {kind})"


def trino_literal(kind: str, value: Any) -> str:
    """A value of a type that is not nested, in Trino's SQL."""
    name = {"string": "varchar", "float": "real", "binary": "varbinary", "timestamp": "timestamp(6)"}.get(kind, kind)
    if value is None or isinstance(value, bool):
        return f"CAST({str(value).lower() if value is not None else 'NULL'} AS {name})"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    text = _text(value).replace("'", "''")
    return f"CAST('{text}' AS {name})"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return _SPELT.get(repr(value), repr(value))
    if isinstance(value, datetime):
        return value.isoformat(" ", "microseconds")
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


# --- as engines show it ----------------------------------------------------------------------------

_HEX = ("text", "short", "bytes")
"""Columns that Hive is asked for as digits: its rows are lines with tabs."""


def hive_select(table: str, columns: Sequence[str] = tuple(COLUMNS)) -> str:
    """The query whose answer `of_hive` reads."""
    shown = ", ".join(f"hex(`{name}`)" if name in _HEX else f"`{name}`" for name in columns)
    return f"SELECT {shown} FROM {table}"


def of_hive(lines: Sequence[Sequence[str]], columns: Sequence[str] = tuple(COLUMNS)) -> list[tuple[Any, ...]]:
    """Hive's rows as Python's values."""
    return [tuple(map(_of_hive, columns, line)) for line in lines]


def _of_hive(name: str, shown: str) -> Any:
    if shown == "NULL":
        return None
    if name in _HEX:
        found = bytes.fromhex(shown)
        return found if name == "bytes" else found.decode()
    if name == "flag":
        return {"true": True, "false": False}[shown]
    if name in ("list", "map", "nested"):
        found = json.loads(shown, strict=False)
        return tuple(found.values()) if name == "nested" else found
    return _of_text(COLUMNS[name], shown)


def of_trino(rows: Sequence[Sequence[Any]], columns: Sequence[str] = tuple(COLUMNS)) -> list[tuple[Any, ...]]:
    """Trino's rows as Python's values."""
    return [tuple(map(_of_trino, columns, row)) for row in rows]


def _of_trino(name: str, shown: Any) -> Any:
    if name == "bytes" and shown is not None:
        return base64.b64decode(shown)
    if name == "nested" and shown is not None:
        return tuple(shown)
    return _of_text(COLUMNS[name], str(shown)) if isinstance(shown, str | int | float) and name != "flag" else shown


def _of_text(kind: str, shown: str) -> Any:
    if kind == "float":
        return as_single(float(shown))
    if kind == "double":
        return float(shown)
    if kind.startswith("decimal"):
        return Decimal(shown)
    if kind == "date":
        return date.fromisoformat(shown)
    if kind == "timestamp":
        return datetime.fromisoformat(shown)
    return int(shown) if kind.endswith("int") else shown
