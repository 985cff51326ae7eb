"""Reads messages with a map whose keys are lists: the locations of skewed values (``SkewedInfo``).

thriftpy2 makes a dict of a map and a list of each key, which a dict cannot have. So `hive_acid.wire` has it skip that
map, and a message that holds a filled one is read here, slower, with tuples as keys.
"""

from __future__ import annotations

import functools
import struct
from typing import Any

from thriftpy2.thrift import TType

from metastore.rpc.encoding.field_tables import field_parts, item_parts
from metastore.rpc.encoding.framing import (
    BOOL,
    BYTE,
    DOUBLE,
    FIXED_SIZE,
    I16,
    I32,
    I64,
    LIST,
    MAP,
    SET,
    STOP,
    STRING,
    STRUCT,
)

_SKEWED_LOCATIONS = bytes([MAP, 0, 3, LIST, STRING])
"""How field 3 of ``SkewedInfo`` begins. Elsewhere it means nothing, and reading that message here does no harm."""

_UNPACK = {
    BYTE: struct.Struct(">b").unpack_from,
    DOUBLE: struct.Struct(">d").unpack_from,
    I16: struct.Struct(">h").unpack_from,
    I32: struct.Struct(">i").unpack_from,
    I64: struct.Struct(">q").unpack_from,
}


def has_list_keys(message: bytes) -> bool:
    """Whether the message may hold such a map with something in it."""
    at = message.find(_SKEWED_LOCATIONS)
    while at >= 0:
        if message[at + 5 : at + 9] != b"\0\0\0\0":
            return True
        at = message.find(_SKEWED_LOCATIONS, at + 1)
    return False


def read_arguments(message: bytes, arguments: Any) -> None:
    """Fill the arguments of a call from a whole message, as the decoder of thriftpy2 would if it could.

    The scanner has found the end of the message before, so its sizes and its depth are known to be bounded.
    """
    (name_size,) = _UNPACK[I32](message, 4)
    _Reader(message, 12 + name_size).read_struct(arguments)


class _Reader:
    """A place in a message."""

    def __init__(self, message: bytes, at: int) -> None:
        self._message = message
        self._at = at

    def read_struct(self, made: Any) -> Any:
        """Fill a struct; without one (None) its fields are read for nothing."""
        struct_class: Any = type(made)
        fields = {} if made is None else _fields(struct_class)
        while (kind := self._byte()) != STOP:
            declared, name, inner = fields.get(self._fixed(I16), (None, "", None))
            if kind == _on_wire(declared):
                setattr(made, name, self._value(kind, declared, inner))
            else:
                self._value(kind, None, None)
        return made

    def _value(self, kind: int, declared: int | None, inner: Any) -> Any:
        if kind == STRING:
            return self._text(declared)
        if kind == STRUCT:
            return self.read_struct(None if inner is None else inner())
        if kind in (LIST, SET):
            return self._list(inner)
        if kind == MAP:
            return self._map(inner)
        return self._fixed(kind)

    def _text(self, declared: int | None) -> str | bytes:
        size = self._fixed(I32)
        content = self._message[self._at : self._at + size]
        self._at += size
        if declared == TType.BINARY:
            return content
        try:
            return content.decode()
        except UnicodeDecodeError:
            return content  # the codec refuses it, as it does of the fast decoder

    def _list(self, inner: Any) -> list[Any]:
        kind, size = self._byte(), self._fixed(I32)
        declared, deeper = item_parts(inner)
        is_asked = kind == _on_wire(declared)
        found = [self._value(kind, *((declared, deeper) if is_asked else (None, None))) for _ in range(size)]
        return found if is_asked else []

    def _map(self, inner: Any) -> dict[Any, Any]:
        key_kind, kind, size = self._byte(), self._byte(), self._fixed(I32)
        key_item, item = inner or (None, None)
        found = {}
        for _ in range(size):
            key = self._value(key_kind, *item_parts(key_item))
            found[tuple(key) if isinstance(key, list) else key] = self._value(kind, *item_parts(item))
        is_asked = (key_kind, kind) == (_on_wire(item_parts(key_item)[0]), _on_wire(item_parts(item)[0]))
        return found if is_asked else {}

    def _byte(self) -> int:
        self._at += 1
        return self._message[self._at - 1]

    def _fixed(self, kind: int) -> Any:
        if kind == BOOL:
            return bool(self._byte())
        (value,) = _UNPACK[kind](self._message, self._at)
        self._at += FIXED_SIZE[kind]
        return value


@functools.cache
def _fields(struct_class: Any) -> dict[int, tuple[int, str, Any]]:
    """Field id to type, name and what it is made of; of a field that is only written, too."""
    return {int(number): field_parts(field) for number, field in struct_class.thrift_spec.items()}


def _on_wire(declared: int | None) -> int | None:
    return STRING if declared == TType.BINARY else declared
