"""What is wrong with a request, however deep: thriftpy2 decodes structs without their required fields.

A text that is not UTF-8 it leaves as bytes, wherever that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from thriftpy2.thrift import TType

from metastore.rpc.encoding.field_tables import field_parts, item_parts

MOST_ITEMS = 1_000
_MAY_HOLD_TEXT = frozenset({TType.STRING, TType.STRUCT, TType.MAP, TType.LIST, TType.SET})


def fault_of(arguments: Iterable[Any]) -> str | None:
    """What is wrong with a request that a handler has stumbled over; None if nothing is found.

    Asked afterwards, since nearly all requests are sound and hot calls shall not pay for it. Of a long list the first
    items are looked at.
    """
    return next((fault for value in arguments for fault in _faults_of_argument(value)), None)


def _faults_of_argument(value: Any) -> Iterator[str]:
    """Of an argument, or of what lies in one that is no struct."""
    if isinstance(value, bytes):
        yield "a text is not UTF-8"
    elif hasattr(value, "thrift_spec"):
        yield from _faults(value)
    elif isinstance(value, dict):
        for item in islice(value.items(), MOST_ITEMS):
            yield from _faults_of_argument(item)
    elif isinstance(value, (list, set, tuple)):
        for item in islice(value, MOST_ITEMS):
            yield from _faults_of_argument(item)


def _faults(struct: Any) -> Iterator[str]:
    """Of the fields of a struct, named as in ``TxnToWriteId.writeId``, and of all that lies in them."""
    struct_class: Any = type(struct)
    for field in struct_class.thrift_spec.values():
        kind, name, inner = field_parts(field)
        value, where = getattr(struct, name), f"{struct_class.__name__}.{name}"
        if value is not None:
            yield from _faults_within(kind, inner, value, where)
        elif field[-1]:
            yield f"{where} is required and was not sent"


def _faults_within(kind: int, inner: Any, value: Any, where: str) -> Iterator[str]:
    if kind == TType.STRING:
        if type(value) is bytes:
            yield f"{where} is not UTF-8 text"
    elif kind == TType.STRUCT:
        yield from _faults(value)
    elif kind == TType.MAP:
        for parts, items in zip(inner, (value.keys(), value.values()), strict=True):
            yield from _faults_of_items(parts, items, where)
    elif kind in (TType.LIST, TType.SET):
        yield from _faults_of_items(inner, value, where)


def _faults_of_items(parts: Any, items: Iterable[Any], where: str) -> Iterator[str]:
    kind, inner = item_parts(parts)
    for item in islice(items, MOST_ITEMS) if kind in _MAY_HOLD_TEXT else ():
        yield from _faults_within(kind, inner, item, where)
