"""Finds required fields that a request lacks, however deep: thriftpy2 decodes structs without them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from thriftpy2.thrift import TType

from metastore.rpc.field_tables import field_parts, item_parts

_CONTAINERS = (TType.LIST, TType.SET)


def missing(struct: Any) -> Iterator[str]:
    """The fields, ``TxnToWriteId.writeId``, that are absent though the IDL says that they are not."""
    struct_class: Any = type(struct)
    required, deeper = _plan(struct_class)
    for name in required:
        if getattr(struct, name) is None:
            yield f"{struct_class.__name__}.{name}"
    for kind, name in deeper:
        value = getattr(struct, name)
        if value is None:
            continue
        for one in (value,) if kind == TType.STRUCT else value.values() if kind == TType.MAP else value:
            yield from missing(one)


@functools.cache
def _plan(struct_class: Any) -> tuple[tuple[str, ...], tuple[tuple[int, str], ...]]:
    """The required fields of a struct, and those, with their types, that hold structs that may lack some."""
    required, deeper = [], []
    for field in struct_class.thrift_spec.values():
        kind, name, inner = field_parts(field)
        if field[-1]:
            required.append(name)
        held = _held(kind, inner)
        if held is not None and _may_lack(held, frozenset()):
            deeper.append((kind, name))
    return tuple(required), tuple(deeper)


def _may_lack(struct_class: Any, within: frozenset[Any]) -> bool:
    """Whether a struct, or one in it, has required fields; `within` are those that it is in: tables are in tables."""
    if struct_class in within:
        return False
    fields = struct_class.thrift_spec.values()
    held = (_held(kind, inner) for kind, _, inner in map(field_parts, fields))
    inside = within | {struct_class}
    return any(field[-1] for field in fields) or any(_may_lack(one, inside) for one in held if one is not None)


def _held(kind: int, inner: Any) -> Any:
    """The struct that a field holds, or many of it."""
    if kind == TType.STRUCT:
        return inner
    if kind in _CONTAINERS or kind == TType.MAP:
        item_kind, item = item_parts(inner[1] if kind == TType.MAP else inner)
        return item if item_kind == TType.STRUCT else None
    return None
