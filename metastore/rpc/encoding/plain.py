"""Thrift structs as plain JSON values and back, driven by the structs' own field tables.

This is how the catalogue keeps what it does not look at. A field that is absent is left out; binary is base64; a map
whose keys are not text is a list of pairs.
"""

from __future__ import annotations

import base64
from collections.abc import Collection
from typing import Any

from thriftpy2.thrift import TType

from hive_acid.errors import InvalidObjectError
from metastore.rpc.encoding.field_tables import field_parts, item_parts

_LISTS = (TType.LIST, TType.SET)


def to_plain(struct: Any, without: Collection[str] = ()) -> dict[str, Any]:
    """The fields that are set, by name. Raises InvalidObjectError for text that Postgres cannot hold."""
    plain: dict[str, Any] = {}
    for field in type(struct).thrift_spec.values():
        kind, name, inner = field_parts(field)
        value = getattr(struct, name)
        if value is not None and name not in without:
            plain[name] = _plain_value(kind, inner, value, name)
    return plain


def from_plain(struct_class: Any, plain: dict[str, Any]) -> Any:
    """A struct with the fields that `plain` has; the others stay absent."""
    struct = struct_class()
    for field in struct_class.thrift_spec.values():
        kind, name, inner = field_parts(field)
        if name in plain:
            setattr(struct, name, _thrift_value(kind, inner, plain[name]))
    return struct


def checked_text(value: Any, name: str) -> str:
    """`value` if it is text that Postgres can hold. Raises InvalidObjectError for bytes and for zero bytes in text."""
    if not isinstance(value, str) or "\0" in value:
        raise InvalidObjectError(f"{name} is {value!r:.100}: it must be UTF-8 text without zero bytes")
    return value


def _plain_value(kind: int, inner: Any, value: Any, name: str) -> Any:
    if kind == TType.STRING:
        return checked_text(value, name)
    if kind == TType.BINARY:
        return base64.b64encode(value if isinstance(value, bytes) else value.encode()).decode()
    if kind == TType.STRUCT:
        return to_plain(value)
    if kind in _LISTS:
        item_kind, item_inner = item_parts(inner)
        return [_plain_value(item_kind, item_inner, item, name) for item in value]
    if kind == TType.MAP:
        (key_kind, key_inner), (item_kind, item_inner) = map(item_parts, inner)
        pairs = [
            [_plain_value(key_kind, key_inner, key, name), _plain_value(item_kind, item_inner, item, name)]
            for key, item in value.items()
        ]
        return dict(pairs) if key_kind == TType.STRING else pairs
    return value


def _thrift_value(kind: int, inner: Any, value: Any) -> Any:
    if kind == TType.BINARY:
        return base64.b64decode(value)
    if kind == TType.STRUCT:
        return from_plain(inner, value)
    if kind in _LISTS:
        item_kind, item_inner = item_parts(inner)
        return [_thrift_value(item_kind, item_inner, item) for item in value]
    if kind == TType.MAP:
        (key_kind, key_inner), (item_kind, item_inner) = map(item_parts, inner)
        pairs = value.items() if isinstance(value, dict) else value
        return {
            _key(_thrift_value(key_kind, key_inner, key)): _thrift_value(item_kind, item_inner, item)
            for key, item in pairs
        }
    return value


def _key(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
