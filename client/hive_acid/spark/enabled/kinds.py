"""Objects of PySpark that are given some methods of ours, each by a class of its own: the class of others stays."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

Kind = TypeVar("Kind")


def as_kind(wanted: type[Kind], made: object, **words: Any) -> Kind:
    """`made` itself, of the class `wanted` and of the class that it has, with `words` as attributes."""
    known: Any = made
    kind: Any = wanted
    known.__class__ = _joined(kind, known.__class__)
    for name, value in words.items():
        setattr(known, name, value)
    result: Kind = known
    return result


def as_before(made: Any) -> None:
    """Undo `as_kind`."""
    _, kind = type(made).__bases__
    made.__class__ = kind


@cache
def _joined(wanted: Any, kind: Any) -> Any:
    return type(kind.__name__, (wanted, kind), {"__doc__": kind.__doc__, "__module__": kind.__module__})
