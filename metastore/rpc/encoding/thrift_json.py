"""Thrift structs as text in Thrift's JSON protocol, as Java's TJSONProtocol reads it; driven by the field tables.

thriftpy2 has two such protocols: the one is not Java's, the other writes messages of calls only.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import Any

from thriftpy2.thrift import TType

from metastore.rpc.encoding.field_tables import field_parts, item_parts

_TAGS = {
    TType.BOOL: "tf",
    TType.BYTE: "i8",
    TType.I16: "i16",
    TType.I32: "i32",
    TType.I64: "i64",
    TType.DOUBLE: "dbl",
    TType.STRING: "str",
    TType.BINARY: "str",
    TType.STRUCT: "rec",
    TType.MAP: "map",
    TType.SET: "set",
    TType.LIST: "lst",
}
_quoted = json.JSONEncoder(ensure_ascii=False).encode
_TEXTS = (TType.STRING, TType.BINARY, TType.STRUCT, TType.LIST, TType.SET)
"""What stands as a key as it is; numbers are put in quotes there."""


def thrift_json(struct: Any, shared: Mapping[int, str] = MappingProxyType({})) -> str:
    """The fields that are set, ``{"1":{"str":"a"}}``, by their ids.

    `shared` has the texts of lists that many structs have in common, by the `id` of the list.
    """
    fields = []
    for number, field in sorted(type(struct).thrift_spec.items(), key=itemgetter(0)):
        kind, name, inner = field_parts(field)
        value = getattr(struct, name)
        if value is not None:
            fields.append(f'"{number}":{{"{_TAGS[kind]}":{_text(kind, inner, value, shared)}}}')
    return "{" + ",".join(fields) + "}"


def list_json(kind: int, values: Sequence[Any]) -> str:
    """The text of a list of structs or texts (`kind`), as `thrift_json` has it."""
    return _text(TType.LIST, kind, values, {})


def _text(kind: int, inner: Any, value: Any, shared: Mapping[int, str]) -> str:
    if kind == TType.STRING:
        return _quoted(value)
    if kind == TType.BINARY:
        return '"' + base64.b64encode(value if isinstance(value, bytes) else value.encode()).decode() + '"'
    if kind == TType.STRUCT:
        return thrift_json(value, shared)
    if kind == TType.BOOL:
        return "1" if value else "0"
    if kind == TType.DOUBLE:
        return _double(value)
    if kind in (TType.LIST, TType.SET):
        if id(value) in shared:
            return shared[id(value)]
        item_kind, item_inner = item_parts(inner)
        items = [f'"{_TAGS[item_kind]}"', str(len(value))]
        items += [_text(item_kind, item_inner, item, shared) for item in value]
        return "[" + ",".join(items) + "]"
    if kind == TType.MAP:
        (key_kind, key_inner), (item_kind, item_inner) = map(item_parts, inner)
        pairs = [
            f"{_key(key_kind, key_inner, key)}:{_text(item_kind, item_inner, item, shared)}"
            for key, item in value.items()
        ]
        return f'["{_TAGS[key_kind]}","{_TAGS[item_kind]}",{len(value)},{{{",".join(pairs)}}}]'
    return str(int(value))


def _key(kind: int, inner: Any, value: Any) -> str:
    text = _text(kind, inner, value, {})
    return text if kind in _TEXTS else f'"{text}"'


def _double(value: float) -> str:
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    return repr(float(value))
