"""Avro files joined without touching a value: blocks of rows under one header, apart by one marker.

The header has the writer's schema, and properties that tell what a value means: Hive notes its time zone and its
calendar there. So only files whose headers agree in everything are joined.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from hive_acid.errors import FormatError
from hive_acid.format.orc.protobuf import signed_varint, zigzag

MAGIC = b"Obj\x01"
MARKER_BYTES = 16
_MOST_BYTES = 1 << 30
"""No header or block is larger; what claims to be is no such file."""


def read_header(file: BinaryIO) -> tuple[dict[bytes, bytes], bytes]:
    """The properties of a file and its marker; the first block is next. Raises FormatError for other files."""
    if file.read(len(MAGIC)) != MAGIC:
        raise FormatError("this is no Avro file")
    found: dict[bytes, bytes] = {}
    while count := read_number(file):
        if count < 0:
            count = -count
            read_number(file)
        for _ in range(count):
            name = _exactly(file, read_number(file))
            found[name] = _exactly(file, read_number(file))
    return found, _exactly(file, MARKER_BYTES)


def header(properties: dict[bytes, bytes], marker: bytes) -> bytes:
    """The beginning of a file."""
    pairs = b"".join(_with_size(part) for pair in properties.items() for part in pair)
    return MAGIC + (signed_varint(len(properties)) + pairs if properties else b"") + signed_varint(0) + marker


def blocks(file: BinaryIO, marker: bytes) -> Iterator[tuple[int, bytes]]:
    """The number of rows of each block, and the block as it stands but for the marker behind it.

    Raises FormatError for a file that is cut off.
    """
    while (rows := read_number(file, may_end=True)) is not None:
        content = _exactly(file, read_number(file))
        if _exactly(file, MARKER_BYTES) != marker:
            raise FormatError("a block of this Avro file does not end with the file's marker")
        yield rows, signed_varint(rows) + _with_size(content)


def read_number(file: BinaryIO, *, may_end: bool = False) -> int | None:
    """The number that is next; with `may_end` None where the file ends instead. Raises FormatError."""
    value = shift = 0
    while byte := file.read(1):
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return zigzag(value)
        shift += 7
        if shift > 63:
            break
    if may_end and not shift and not byte:
        return None
    raise FormatError("a number in this Avro file has no end")


def _exactly(file: BinaryIO, size: int | None) -> bytes:
    if size is None or not 0 <= size <= _MOST_BYTES:
        raise FormatError(f"this Avro file has a part of {size} bytes")
    content = file.read(size)
    if len(content) != size:
        raise FormatError("this Avro file is cut off")
    return content


def _with_size(content: bytes) -> bytes:
    return signed_varint(len(content)) + content
