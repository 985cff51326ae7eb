"""Messages of Thrift's strict binary protocol, made once and patched, so that a call costs the driver microseconds.

A request is encoded once with `MARK` where the transaction's id belongs and cut there; a call joins the pieces with the
eight bytes of the id as they came from the server. An answer is compared with what a good one looks like; only an
unusual one is decoded.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.thrift import TMessageType
from thriftpy2.transport import TCyMemoryBuffer

from hive_acid.wire import service

MARK = 0x5B6D61726B6D615D
"""Stands for an id in a request to be cut; no other part of a request has these eight bytes."""
ID_BYTES = 8
_REPLY_VERSION = b"\x80\x01\x00\x02"
_REPLY, _EXCEPTION = 2, 3
_STOP, _BOOL, _BYTE, _DOUBLE, _I16, _I32, _I64, _STRING, _STRUCT, _MAP, _SET, _LIST = (
    0,
    2,
    3,
    4,
    6,
    8,
    10,
    11,
    12,
    13,
    14,
    15,
)
_FIXED = {_BOOL: "b", _BYTE: "b", _DOUBLE: "d", _I16: "h", _I32: "i", _I64: "q"}


class IncompleteError(Exception):
    """The answer's last bytes have not come yet."""


def encode(method: str, *arguments: Any) -> bytes:
    """A call with sequence number 0."""
    message = getattr(service, method + "_args")()
    for field, value in zip(sorted(message.thrift_spec.items()), arguments, strict=True):
        setattr(message, field[1][1], value)
    buffer = TCyMemoryBuffer()
    protocol = TCyBinaryProtocol(buffer)
    protocol.write_message_begin(method, TMessageType.CALL, 0)
    protocol.write_struct(message)
    protocol.write_message_end()
    encoded: bytes = buffer.getvalue()
    return encoded


def cut(method: str, *arguments: Any) -> list[bytes]:
    """The pieces of a call around the places that hold `MARK`."""
    return encode(method, *arguments).split(MARK.to_bytes(ID_BYTES, "big"))


def success_header(method: str) -> bytes:
    """How an answer begins that has a result: its header, and field 0, a struct."""
    return reply_header(method) + bytes((_STRUCT, 0, 0))


def reply_header(method: str) -> bytes:
    """How every answer that is not an internal error begins, with sequence number 0."""
    name = method.encode()
    return _REPLY_VERSION + struct.pack(">i", len(name)) + name + bytes(4)


def decode(reply: bytes) -> tuple[bool, dict[int, Any]]:
    """(is it a reply and not an internal error, its fields by their ids). Raises IncompleteError."""
    try:
        kind = reply[3]
        (name_length,) = struct.unpack_from(">i", reply, 4)
        fields, _ = _struct(reply, 8 + name_length + 4)
    except (IndexError, struct.error):
        raise IncompleteError from None
    if reply[:3] != _REPLY_VERSION[:3] or kind not in (_REPLY, _EXCEPTION):
        raise ValueError(f"not an answer of the strict binary protocol: {reply[:16]!r}")
    return kind == _REPLY, fields


def _struct(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    fields: dict[int, Any] = {}
    while data[at] != _STOP:
        (number,) = struct.unpack_from(">h", data, at + 1)
        fields[number], at = _value(data, data[at], at + 3)
    return fields, at + 1


def _value(data: bytes, kind: int, at: int) -> tuple[Any, int]:
    code = _FIXED.get(kind)
    if code is not None:
        (value,) = struct.unpack_from(">" + code, data, at)
        return value, at + struct.calcsize(">" + code)
    if kind == _STRUCT:
        return _struct(data, at)
    if kind == _STRING:
        (length,) = struct.unpack_from(">i", data, at)
        end = at + 4 + length
        if end > len(data):
            raise IncompleteError
        return data[at + 4 : end], end
    if kind in (_LIST, _SET):
        return _list(data, at)
    if kind == _MAP:
        raise ValueError("no answer measured here has a map")
    raise ValueError(f"an answer with a value of unknown type {kind}")


def _list(data: bytes, at: int) -> tuple[list[Any], int]:
    kind, count = struct.unpack_from(">bi", data, at)
    at += 5
    code = _FIXED.get(kind)
    if code is not None:
        layout = f">{count}{code}"
        return list(struct.unpack_from(layout, data, at)), at + struct.calcsize(layout)
    read: Callable[[bytes, int], tuple[Any, int]] = lambda data, at: _value(data, kind, at)  # noqa: E731
    items = []
    for _ in range(count):
        item, at = read(data, at)
        items.append(item)
    return items, at
