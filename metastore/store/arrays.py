"""Calls of stored functions as statements: sequences go as array literals, which are parsed faster than ARRAY[...]."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def select_from(function: str, arguments: Sequence[object]) -> str:
    """The statement that calls a function, with a place for each argument."""
    return f"SELECT * FROM {function}({', '.join(['%s'] * len(arguments))})"


def values_of(arguments: Iterable[object]) -> list[object]:
    """The arguments as they are sent: sequences and sets as array literals."""
    return [array(value) if isinstance(value, (list, tuple, set, frozenset)) else value for value in arguments]


def array(values: Iterable[object]) -> str:
    """``{1,2}`` of whole numbers, truth values, texts and None; the function's signature gives the type."""
    return "{" + ",".join([str(value) if type(value) is int else _element(value) for value in values]) + "}"


def _element(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "t" if value else "f"
    text = str(value)
    if text.isidentifier() and text.upper() != "NULL":
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
