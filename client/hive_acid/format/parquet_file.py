"""Parquet files joined without touching a value: row groups stay as they are, and one footer tells of all of them.

What a timestamp or a date of a Parquet file means is told by properties in its footer: Hive notes the writer's time
zone and calendar there, Spark its own, Impala none. A value that is read and written again loses them, so such files
are joined by their bytes, and only those whose footers agree in everything but the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hive_acid.errors import FormatError
from hive_acid.format.thrift_compact import I64, LIST, STRUCT, List, Struct, decoded, encoded

MAGIC = b"PAR1"
TAIL_BYTES = 8
"""The last bytes of a file: the footer's length and `MAGIC`."""

_ROWS, _ROW_GROUPS = 3, 4
_ENCRYPTION = 8
_GROUP_COLUMNS, _GROUP_OFFSET, _GROUP_NUMBER = 1, 5, 7
_OTHER_FILE, _CHUNK_OFFSET, _META, _CRYPTO = 1, 2, 3, 8
_PAGE_INDEXES = (4, 5, 6, 7)
_OFFSETS = (9, 10, 11, 14)
"""Of the metadata of a column: its data pages, index pages, dictionary and Bloom filter."""


@dataclass(frozen=True, slots=True)
class ParquetFile:
    """What is to know of a file; its row groups lie between `MAGIC` and the byte `body_end`."""

    body_end: int
    rows: int
    kind: bytes
    """Files of the same kind can be joined: schema, properties and writer are the same."""
    footer: Struct


def footer_length(tail: bytes) -> int:
    """The length of the footer that stands before a file's last `TAIL_BYTES`. Raises FormatError for other files."""
    if tail[4:] == b"PARE":
        raise FormatError("this Parquet file is encrypted")
    if len(tail) != TAIL_BYTES or tail[4:] != MAGIC:
        raise FormatError("this is no Parquet file")
    return int.from_bytes(tail[:4], "little")


def parsed(footer: bytes, size: int) -> ParquetFile:
    """A file of `size` bytes by its footer. Raises FormatError for one that cannot be joined with others."""
    found = decoded(footer)
    chunks = [chunk for group in found.structs(_ROW_GROUPS) for chunk in group.structs(_GROUP_COLUMNS)]
    if _ENCRYPTION in found or any(_CRYPTO in chunk or _META not in chunk for chunk in chunks):
        raise FormatError("this Parquet file is encrypted")
    if any(_OTHER_FILE in chunk for chunk in chunks):
        raise FormatError("the columns of this Parquet file are in other files")
    kind = Struct({field: value for field, value in found.items() if field not in (_ROWS, _ROW_GROUPS)})
    body_end = size - TAIL_BYTES - len(footer)
    if body_end < len(MAGIC):
        raise FormatError("this Parquet file is shorter than its footer")
    return ParquetFile(body_end, found.number(_ROWS), encoded(kind), found)


def joined_end(parts: Sequence[tuple[ParquetFile, int]]) -> bytes:
    """What follows the bodies of files of one kind, of which each has been copied to a place in the new file: footer
    and tail. Page indexes are left out, as they tell places themselves.
    """
    groups: list[object] = []
    for file, place in parts:
        shift = place - len(MAGIC)
        groups += [_moved(group, shift) for group in file.footer.structs(_ROW_GROUPS)]
    footer = Struct(parts[0][0].footer)
    footer[_ROWS] = (I64, sum(file.rows for file, _ in parts))
    footer[_ROW_GROUPS] = (LIST, List(STRUCT, groups))
    written = encoded(footer)
    return written + len(written).to_bytes(4, "little") + MAGIC


def _moved(group: Struct, shift: int) -> Struct:
    columns: list[object] = []
    for chunk in group.structs(_GROUP_COLUMNS):
        kept = Struct({field: value for field, value in chunk.items() if field not in _PAGE_INDEXES})
        meta = Struct(chunk.struct(_META))
        for offset in _OFFSETS:
            _shift(meta, offset, shift)
        _shift(kept, _CHUNK_OFFSET, shift)
        kept[_META] = (STRUCT, meta)
        columns.append(kept)
    moved = Struct({field: value for field, value in group.items() if field != _GROUP_NUMBER})
    _shift(moved, _GROUP_OFFSET, shift)
    moved[_GROUP_COLUMNS] = (LIST, List(STRUCT, columns))
    return moved


def _shift(of: Struct, field: int, shift: int) -> None:
    """Some writers put 0 for what is not there."""
    if place := of.number(field):
        of[field] = (I64, place + shift)
