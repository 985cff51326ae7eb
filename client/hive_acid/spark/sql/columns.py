"""Definitions of columns, table properties and the other clauses that CREATE and ALTER share."""

from __future__ import annotations

import re

from hive_acid.catalog.table import Column
from hive_acid.errors import SqlError
from hive_acid.spark.sql.tokens import Cursor
from hive_acid.spark.values.types import SIGNS_OF_TYPES, no_fields
from hive_acid.wire import ttypes

_BEHIND_TYPE = (
    *("COMMENT", "NOT", "NULL", "DEFAULT", "PRIMARY", "UNIQUE", "CHECK", "CONSTRAINT", "REFERENCES"),
    *("GENERATED", "COLLATE", ","),
)
_SPACED_SIGNS = re.compile(rf"\s*({SIGNS_OF_TYPES.pattern})\s*")
_HIVES_NAMES = {
    "integer": "int",
    "long": "bigint",
    "short": "smallint",
    "byte": "tinyint",
    "real": "float",
    "timestamp_ltz": "timestamp with local time zone",
    "timestamp_ntz": "timestamp",
}


def column_definition(item: Cursor) -> Column:
    """``name[:] type [COMMENT 'text']``; what follows is left."""
    name = item.identifier("a column's name").lower()
    item.accept(":")
    return Column(name, hive_type_text(item), comment(item))


def hive_type_text(item: Cursor) -> str:
    """The type that comes next, in Hive's words, lower case."""
    words = item.until(*_BEHIND_TYPE, "FIRST", "AFTER", of_types=True).source.lower()
    parts = re.split(r"`((?:[^`]|``)+)`", words)
    if odd := no_fields(parts[1::2]):
        raise item.error(f"Hive's types have no quotes, so a field cannot be called {odd[0]}")
    parts[::2] = (_SPACED_SIGNS.sub(r"\1", re.sub(r"\s+", " ", part)) for part in parts[::2])
    text = "".join(parts).strip()
    if not text:
        raise item.error("a type was expected")
    return _HIVES_NAMES.get(text, text)


def comment(cursor: Cursor) -> str | None:
    """``[COMMENT 'text']``."""
    return cursor.string("a comment") if cursor.accept("COMMENT") else None


def properties(cursor: Cursor) -> dict[str, str]:
    """``('key' = 'value', key.of.parts = value, …)``. Raises SqlError for a key that is given twice."""
    found: dict[str, str] = {}
    for item in cursor.items("properties"):
        key = property_key(item)
        if not item.accept("=") or item.at_end:
            raise item.error(f"a value for property '{key}' was expected")
        value = item.string("a value") if item.sees_string() else item.rest()
        item.finish()
        if key in found:
            raise SqlError(f"property '{key}' is given twice")
        found[key] = value
    return found


def removed_properties(cursor: Cursor) -> dict[str, None]:
    """``[IF EXISTS] ('key', …)``: None for each."""
    cursor.accept("IF", "EXISTS")
    return {property_key(item): None for item in cursor.items("properties")}


def property_key(item: Cursor) -> str:
    """A key in quotes, or of words with dots between."""
    return item.string("a key") if item.sees_string() else str(item.name("a key"))


def owner(cursor: Cursor) -> tuple[int, str]:
    """``[USER | ROLE | GROUP] name``: the kind of an owner, as the metastore counts them, and who it is."""
    kind = cursor.one_of(cursor.peek()) if cursor.peek() in ("USER", "ROLE", "GROUP") else "USER"
    who = cursor.string("an owner") if cursor.sees_string() else cursor.identifier("an owner")
    return getattr(ttypes.PrincipalType, kind), who


def names(cursor: Cursor, what: str) -> list[str]:
    """``(name, …)`` in lower case."""
    found = []
    for item in cursor.items(what):
        found.append(item.identifier("a name").lower())
        item.finish()
    return found
