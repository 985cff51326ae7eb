"""Sequences as Postgres array literals, which are parsed faster than ARRAY[...] constructors."""

from __future__ import annotations

from collections.abc import Iterable


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
