"""Parameters of stored functions as they are sent: sequences go as array literals, whose type the function knows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache


def select_from(function: str, arguments: Sequence[object]) -> str:
    """The statement that calls a function, with a place for each argument."""
    return f"SELECT * FROM {function}({', '.join(['%s'] * len(arguments))})"


def values_of(arguments: Iterable[object]) -> list[object]:
    """The arguments as psycopg2 takes them: sequences and sets as array literals."""
    return [array(value) if isinstance(value, (list, tuple, set, frozenset)) else value for value in arguments]


def texts_of(arguments: Iterable[object]) -> list[bytes | None]:
    """The arguments as texts of the wire."""
    return [
        array(value).encode()
        if isinstance(value, (list, tuple, set, frozenset))
        else None
        if value is None
        else (("t" if value else "f") if isinstance(value, bool) else str(value)).encode()
        for value in arguments
    ]


def array(values: Iterable[object]) -> str:
    """``{1,2}`` of whole numbers, truth values, texts and None; the function's signature gives the type."""
    elements = [
        str(value) if type(value) is int else _quoted(value) if type(value) is str else _element(value)
        for value in values
    ]
    return "{" + ",".join(elements) + "}"


def _element(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "t" if value else "f"
    return _quoted(str(value))


@lru_cache(maxsize=10_000)
def _quoted(text: str) -> str:
    """The same names come in nearly every call."""
    if text.isidentifier() and text.upper() != "NULL":
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
