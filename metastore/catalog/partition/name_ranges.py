"""Ranges of partition names that hold all partitions for which a condition can be true.

A name begins with the values of the first keys (wire.md §5.4), so equalities of these are a
look into the index of names instead of a walk over the whole table. The ranges only narrow, the condition decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import ColumnElement, and_, false, or_

from hive_acid.format.partitions import partition_name
from metastore.catalog.models import Column
from metastore.catalog.partition.conditions import (
    INTEGRAL,
    AllOf,
    Comparison,
    Condition,
    Membership,
    base_type,
    is_moment,
    normal_moment,
    usual_integer,
)
from metastore.catalog.schema import PARTITION

MAX_RANGES = 64
_ODD_STARTS = (("0", "1"), ("+", ","), ("-0", "-1"))
"""Where an integer is that is not written the usual way, such as 05."""
_COMPARED_APART = frozenset({"decimal", "numeric", "float", "double", "timestamp"})
"""Types of which one value has many spellings."""

Range = tuple[str, str | None]
"""From the first name, included, to the second, not included; None: the first name alone."""


def name_ranges(condition: Condition, keys: Sequence[Column]) -> list[Range] | None:
    """The ranges, at most `MAX_RANGES`; None if the condition does not narrow the names."""
    possible = _possible(condition)
    exact = [""]
    found: list[Range] = []
    for position, key in enumerate(keys):
        values = possible.get(key.name.lower())
        spelled = None if values is None else _spellings(base_type(key.type), values)
        if spelled is None or len(exact) * (len(spelled) + len(_ODD_STARTS)) + len(found) > MAX_RANGES:
            return found + _prefixes(exact) if position else None
        if base_type(key.type) in INTEGRAL:
            stem = _part(key, "x")[:-1]
            found += [(f"{name}{stem}{low}", f"{name}{stem}{high}") for name in exact for low, high in _ODD_STARTS]
        end = "" if position == len(keys) - 1 else "/"
        exact = [f"{name}{_part(key, value)}{end}" for name in exact for value in spelled]
    return found + [(name, None) for name in exact]


def in_ranges(ranges: Iterable[Range]) -> ColumnElement[bool]:
    """The condition that a partition's name is in one of the ranges."""
    name = PARTITION.c.name
    return or_(false(), *(name == low if high is None else and_(name >= low, name < high) for low, high in ranges))


def _possible(condition: Condition) -> dict[str, set[str]]:
    """By key, the only values for which the condition can be true; keys that can have any are left out."""
    match condition:
        case Comparison(key, "=", constant):
            return {key: {constant}}
        case Membership(keys, rows):
            return {key: {row[place] for row in rows} for place, key in enumerate(keys)}
        case AllOf(parts):
            found: dict[str, set[str]] = {}
            for part in parts:
                found = _possible(part) | found  # of a key that is limited twice the first limit will do
            return found
    return {}


def _spellings(kind: str, values: set[str]) -> list[str] | None:
    """The values as they are usually stored; None if a value can be stored in ways that are not known."""
    if kind in _COMPARED_APART:
        return None
    if kind in INTEGRAL:
        return sorted(spelled for spelled in map(usual_integer, values) if spelled is not None)
    if kind == "date":
        return sorted({normal_moment(value) if is_moment(value) else value for value in values})
    return sorted(values)


def _part(key: Column, value: str) -> str:
    return partition_name([key.name], [value])


def _prefixes(starts: Iterable[str]) -> list[Range]:
    """All names that begin so: each start ends with a slash, and the character after it is a zero."""
    return [(start, f"{start[:-1]}0") for start in starts]
