"""The little of Protocol Buffers that ORC's tail is made of: varints, numbers, and bytes that have a length."""

from __future__ import annotations

from collections.abc import Iterator

from hive_acid.errors import FormatError

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_ONE_BYTE = [bytes([value]) for value in range(0x80)]
"""What most varints are."""


def varint(value: int) -> bytes:
    """A number of 0 or more, seven bits to a byte, the lowest first."""
    if 0 <= value <= 0x7F:
        return _ONE_BYTE[value]
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def number_field(field: int, value: int) -> bytes:
    """Field `field` with a number."""
    return varint(field << 3 | _VARINT) + varint(value)


def bytes_field(field: int, value: bytes) -> bytes:
    """Field `field` with bytes: a text, a message, or packed numbers."""
    return varint(field << 3 | _BYTES) + varint(len(value)) + value


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at `at`, and where the next byte is. Raises FormatError where it has no end."""
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise FormatError("a number in a message of Protocol Buffers has no end")


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(field, value) in the order of the message: a number, or the bytes of all other kinds.

    Raises FormatError for bytes that are no message.
    """
    at = 0
    while at < len(message):
        tag, at = read_varint(message, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = read_varint(message, at)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, at = read_varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise FormatError(f"a message of Protocol Buffers has a field of the unknown kind {kind}")
        if at + size > len(message):
            raise FormatError("a message of Protocol Buffers ends within a field")
        yield tag >> 3, message[at : at + size]
        at += size


def zigzag(value: int) -> int:
    """The signed number that a varint of kind ``sint64`` stands for."""
    return value >> 1 ^ -(value & 1)


def unzigzag(value: int) -> int:
    """The varint of kind ``sint64`` that stands for a signed number."""
    return value << 1 if value >= 0 else -value * 2 - 1


def signed_varint(value: int) -> bytes:
    """A signed number as a varint of kind ``sint64``; Avro and Thrift have the same."""
    return varint(unzigzag(value))


def number_fields(message: bytes) -> dict[int, int]:
    """The numbers of a message by field, of a repeated one the last."""
    return {field: value for field, value in fields(message) if isinstance(value, int)}


def bytes_fields(message: bytes) -> dict[int, bytes]:
    """What of a message is no number, by field, of a repeated one the last."""
    return {field: value for field, value in fields(message) if isinstance(value, bytes)}


def packed_numbers(data: bytes) -> list[int]:
    """The numbers of a packed field. Raises FormatError where one has no end."""
    found: list[int] = []
    at = 0
    while at < len(data):
        value, at = read_varint(data, at)
        found.append(value)
    return found
