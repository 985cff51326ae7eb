"""Hive's types as Arrow's: what the ORC writer makes the file's types of (acid-format.md §3.5)."""

from __future__ import annotations

import re

import pyarrow as pa

from hive_acid.errors import UnsupportedTableError
from hive_acid.format.hashing import type_parts

_PRIMITIVES = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "double precision": pa.float64(),
    "string": pa.string(),
    "varchar": pa.string(),
    "char": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamp with local time zone": pa.timestamp("us", tz="UTC"),
}
_DECIMAL = re.compile(r"\((\d+)(?:,(-?\d+))?\)")
_TEXT = re.compile(r"(char|varchar)\((\d+)\)")


def arrow_type(hive_type: str) -> pa.DataType:
    """The Arrow type whose values are written into a column of a Hive type.

    Raises UnsupportedTableError for unions, intervals and what else cannot be written.
    """
    text = re.sub(r"\s+", " ", hive_type.strip().lower())
    name, inner = type_parts(text)
    if name in _PRIMITIVES and not inner:
        return _PRIMITIVES[name]
    if name in ("decimal", "numeric", "dec"):
        match = _DECIMAL.search(text.replace(" ", ""))
        precision, scale = (int(match[1]), int(match[2] or 0)) if match else (10, 0)
        if 1 <= precision <= 38 and 0 <= scale <= precision:
            return pa.decimal128(precision, scale)
    if name == "array" and len(inner) == 1:
        return pa.list_(arrow_type(inner[0]))
    if name == "map" and len(inner) == 2:
        return pa.map_(arrow_type(inner[0]), arrow_type(inner[1]))
    if name == "struct" and inner:
        return pa.struct([(field.strip(), arrow_type(kind)) for field, _, kind in (f.partition(":") for f in inner)])
    raise UnsupportedTableError(f"type '{hive_type}' cannot be streamed into")


def text_length(hive_type: str) -> tuple[str, int] | None:
    """("char" or "varchar", length in characters) of such a type, None for any other."""
    match = _TEXT.fullmatch(re.sub(r"\s+", "", hive_type).lower())
    return (match[1], int(match[2])) if match else None


def element_types(hive_type: str) -> list[str]:
    """The Hive types inside a nested one: of the elements, of key and value, or of the fields in their order."""
    name, inner = type_parts(hive_type)
    return [part.partition(":")[2] if name == "struct" else part for part in inner]
