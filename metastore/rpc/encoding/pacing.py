"""Long lists in results, given to the encoder so that other threads have their turn.

The encoder is one call into C, which keeps the interpreter's lock to its end. Between two items of an iterator written
in Python the lock can be taken by others.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator, Sequence
from typing import Any

from thriftpy2.thrift import TType

LONG = 256
_LISTS = (TType.LIST, TType.SET)


class Paced:
    """A list that is iterated in Python."""

    __slots__ = ("_items",)

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        for item in self._items:
            yield paced(item)


def paced(value: Any) -> Any:
    """A result with its long lists paced, however deep they are; itself if it has none."""
    if isinstance(value, list):
        return Paced(value) if len(value) > LONG else value
    struct_class: Any = type(value)
    if not hasattr(struct_class, "thrift_spec"):
        return value
    changed = None
    for name in _containing(struct_class):
        field = getattr(value, name)
        other = field if field is None else paced(field)
        if other is not field:
            changed = changed or copy.copy(value)
            setattr(changed, name, other)
    return changed or value


@functools.cache
def _containing(struct_class: Any) -> tuple[str, ...]:
    """The fields of a struct that are lists or structs."""
    return tuple(field[1] for field in struct_class.thrift_spec.values() if field[0] in (*_LISTS, TType.STRUCT))
