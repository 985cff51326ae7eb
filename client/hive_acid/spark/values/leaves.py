"""What lies in a value at any depth, changed one by one: in arrays, maps and structs. All as SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hive_acid.format.hashing import type_parts
from hive_acid.spark.values.quoting import quoted

Leaf = Callable[[str, str], str | None]
"""The SQL for a value that is no array, map or struct, out of its Hive type and its SQL; None if it stays as it is."""


def changed(hive_type: str, value: str, leaf: Leaf, keys: Leaf | None = None, depth: int = 0) -> str | None:
    """`value` of a Hive type with `leaf` of all that lies in it, or is it. None if all stays as it is.

    Keys of maps are changed by `keys`, if it is given.
    """
    name, inner = type_parts(hive_type)
    one, two = f"__acid_leaf_{depth}", f"__acid_leaf_{depth}_of"
    if name == "array":
        element = changed(inner[0], one, leaf, keys, depth + 1)
        return element and f"transform({value}, {one} -> {element})"
    if name == "map":
        key = changed(inner[0], one, keys or leaf, keys, depth + 1)
        held = changed(inner[1], two, leaf, keys, depth + 1)
        by_key = f"transform_keys({value}, ({one}, {two}) -> {key})" if key else value
        return f"transform_values({by_key}, ({one}, {two}) -> {held})" if held else key and by_key
    if name == "struct":
        return _struct(value, [part.partition(":")[::2] for part in inner], leaf, keys, depth)
    return leaf(hive_type, value)


def _struct(value: str, fields: Sequence[tuple[str, str]], leaf: Leaf, keys: Leaf | None, depth: int) -> str | None:
    found = [(quoted(name.strip().lower()), kind) for name, kind in fields]
    made = [changed(kind, f"({value}).{name}", leaf, keys, depth) for name, kind in found]
    if not any(made):
        return None
    parts = (f"{new or f'({value}).{name}'} AS {name}" for (name, _), new in zip(found, made, strict=True))
    return f"CASE WHEN {value} IS NOT NULL THEN struct({', '.join(parts)}) END"
