"""The little of Thrift's compact protocol that the footer of a Parquet file is made of.

Structs are taken apart and put together again whatever their fields mean, so nothing is lost of one that a later writer
has added.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from hive_acid.errors import FormatError
from hive_acid.format.orc.protobuf import read_varint, signed_varint, varint, zigzag

_STOP, _TRUE, _FALSE, _BYTE, I16, I32, I64, _DOUBLE, BINARY, LIST, _SET, _MAP, STRUCT = range(13)
_MOST_DEPTH = 32
_LONG_LIST = 15


class Struct(dict[int, tuple[int, object]]):
    """Fields by their numbers: (type, value)."""

    def number(self, field: int, default: int = 0) -> int:
        """The number in a field. Raises FormatError if there is something else."""
        _, value = self.get(field, (I64, default))
        if not isinstance(value, int):
            raise FormatError(f"field {field} of a Thrift struct is no number")
        return value

    def struct(self, field: int) -> Struct:
        """The struct in a field, an empty one if it is not there. Raises FormatError if there is something else."""
        _, value = self.get(field, (STRUCT, Struct()))
        if not isinstance(value, Struct):
            raise FormatError(f"field {field} of a Thrift struct is no struct")
        return value

    def structs(self, field: int) -> list[Struct]:
        """The structs of a list in a field. Raises FormatError if there is something else."""
        _, value = self.get(field, (LIST, List(STRUCT)))
        if isinstance(value, List):
            found = [one for one in value if isinstance(one, Struct)]
            if len(found) == len(value):
                return found
        raise FormatError(f"field {field} of a Thrift struct is no list of structs")


class List(list[object]):
    """Values of one type."""

    def __init__(self, kind: int, values: list[object] | None = None) -> None:
        super().__init__(values or [])
        self.kind = kind


def decoded(data: bytes) -> Struct:
    """The struct at the beginning of `data`. Raises FormatError for bytes that are none."""
    try:
        found, _ = _read_struct(data, 0, 0)
    except (IndexError, struct.error) as error:
        raise FormatError("a Thrift struct ends within a field") from error
    return found


def encoded(found: Struct) -> bytes:
    """The bytes of a struct."""
    written = bytearray()
    _write_struct(written, found)
    return bytes(written)


# --- reading -------------------------------------------------------------------------------------


def _read_struct(data: bytes, at: int, depth: int) -> tuple[Struct, int]:
    if depth > _MOST_DEPTH:
        raise FormatError("a Thrift struct holds others too deep")
    found = Struct()
    field = 0
    while True:
        header = data[at]
        at += 1
        kind = header & 0x0F
        if kind == _STOP:
            return found, at
        if header >> 4:
            field += header >> 4
        else:
            field, at = _read_number(data, at)
        if kind in (_TRUE, _FALSE):
            found[field] = (_TRUE, kind == _TRUE)
            continue
        value, at = _read(data, at, kind, depth)
        found[field] = (kind, value)


def _read(data: bytes, at: int, kind: int, depth: int) -> tuple[object, int]:
    if kind in (I16, I32, I64):
        return _read_number(data, at)
    if kind == STRUCT:
        return _read_struct(data, at, depth + 1)
    if kind == BINARY:
        size, at = read_varint(data, at)
        return _bytes(data, at, size), at + size
    if kind in (LIST, _SET):
        return _read_list(data, at, depth)
    if kind in (_TRUE, _FALSE):
        return data[at] == _TRUE, at + 1
    if kind == _BYTE:
        return data[at], at + 1
    if kind == _DOUBLE:
        return struct.unpack("<d", _bytes(data, at, 8))[0], at + 8
    raise FormatError(f"a Thrift struct has a field of the kind {kind}, which no Parquet file has")


def _read_list(data: bytes, at: int, depth: int) -> tuple[List, int]:
    header = data[at]
    at += 1
    size = header >> 4
    if size == _LONG_LIST:
        size, at = read_varint(data, at)
    found = List(header & 0x0F)
    if found.kind not in _WRITERS:
        raise FormatError(f"a Thrift struct has a list of the kind {found.kind}, which no Parquet file has")
    for _ in range(size):
        value, at = _read(data, at, found.kind, depth + 1)
        found.append(value)
    return found, at


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    value, at = read_varint(data, at)
    return zigzag(value), at


def _bytes(data: bytes, at: int, size: int) -> bytes:
    if at + size > len(data):
        raise FormatError("a Thrift struct ends within a field")
    return data[at : at + size]


# --- writing -------------------------------------------------------------------------------------


def _write_struct(written: bytearray, found: Struct) -> None:
    last = 0
    for field, (kind, value) in sorted(found.items()):
        if kind == _TRUE and not value:
            kind = _FALSE
        if 0 < field - last < 16:
            written.append(field - last << 4 | kind)
        else:
            written.append(kind)
            written += signed_varint(field)
        last = field
        if kind not in (_TRUE, _FALSE):
            _WRITERS[kind](written, value)
    written.append(_STOP)


def _write_list(written: bytearray, found: List) -> None:
    written.append(min(len(found), _LONG_LIST) << 4 | found.kind)
    if len(found) >= _LONG_LIST:
        written += varint(len(found))
    write = _WRITERS[found.kind]
    for value in found:
        write(written, value)


def _write_number(written: bytearray, value: int) -> None:
    written += signed_varint(value)


def _write_bytes(written: bytearray, value: bytes) -> None:
    written += varint(len(value)) + value


def _write_double(written: bytearray, value: float) -> None:
    written += struct.pack("<d", value)


def _write_bool(written: bytearray, value: bool) -> None:
    written.append(_TRUE if value else _FALSE)


_WRITERS: dict[int, Callable[..., None]] = {
    _TRUE: _write_bool,
    _FALSE: _write_bool,
    _BYTE: bytearray.append,
    I16: _write_number,
    I32: _write_number,
    I64: _write_number,
    _DOUBLE: _write_double,
    BINARY: _write_bytes,
    LIST: _write_list,
    _SET: _write_list,
    STRUCT: _write_struct,
}
