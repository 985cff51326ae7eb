"""Finds texts of a request that are not UTF-8: the decoder of thriftpy2 leaves them as bytes, wherever they are."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from thriftpy2.thrift import TType

from metastore.rpc.field_tables import field_parts, item_parts

_MAY_HOLD_TEXT = frozenset({TType.STRING, TType.STRUCT, TType.MAP, TType.LIST, TType.SET})


def undecoded(struct: Any) -> Iterator[str]:
    """The fields, ``Table.owner``, whose texts are bytes."""
    struct_class: Any = type(struct)
    for kind, name, inner in _fields_with_text(struct_class):
        value = getattr(struct, name)
        if value is not None:
            for _ in _undecoded_values(kind, inner, value):
                yield f"{struct_class.__name__}.{name}"
                break


def _undecoded_values(kind: int, inner: Any, value: Any) -> Iterator[Any]:
    if kind == TType.STRING:
        if type(value) is bytes:
            yield value
    elif kind == TType.STRUCT:
        yield from undecoded(value)
    elif kind == TType.MAP:
        for parts, values in zip(inner, (value.keys(), value.values()), strict=True):
            item_kind, item_inner = item_parts(parts)
            for item in values:
                yield from _undecoded_values(item_kind, item_inner, item)
    elif kind in (TType.LIST, TType.SET):
        item_kind, item_inner = item_parts(inner)
        for item in value if item_kind in _MAY_HOLD_TEXT else ():
            yield from _undecoded_values(item_kind, item_inner, item)


@functools.cache
def _fields_with_text(struct_class: Any) -> tuple[tuple[int, str, Any], ...]:
    return tuple(parts for parts in map(field_parts, struct_class.thrift_spec.values()) if parts[0] in _MAY_HOLD_TEXT)
