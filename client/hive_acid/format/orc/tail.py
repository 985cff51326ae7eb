"""The tail of an ORC file: its types, stripes, statistics and user metadata, without the data.

`tail_length` says from the last bytes of a file how many the whole tail has, `read_tail` reads it. Statistics are
parsed when they are asked for, since a wide table has thousands and a predicate needs a few.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from hive_acid.errors import FormatError
from hive_acid.format.orc.protobuf import bytes_fields, fields, number_fields, packed_numbers
from hive_acid.format.orc.statistics import UNKNOWN, ColumnStatistics, column_statistics

Decompress = Callable[[str, bytes, int], bytes]
"""(compression, one compressed chunk, the most bytes that come out) to the bytes; raises ValueError if it cannot."""

LONGEST_POSTSCRIPT_BYTES = 256
"""A postscript and the byte of its length: what the end of a file must have for `tail_length`."""

MAGIC = b"ORC"
"""The first bytes of a file, before its stripes; its postscript has them too."""

BLOCK_BYTES = 256 * 1024
"""The longest chunk of a file that does not say otherwise."""

COMPRESSIONS = ("none", "zlib", "snappy", "lzo", "lz4", "zstd", "brotli")
_KINDS = (
    "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "timestamp", "array",
    "map", "struct", "uniontype", "decimal", "date", "varchar", "char", "timestamp with local time zone",
)  # fmt: skip
_FIRST_GOOD_STATISTICS = 1
"""The version of writers from which on bounds are right (ORC's note HIVE-8732)."""

_MAX_CHUNK_BYTES = 1 << 23
_MAX_SECTION_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class OrcType:
    """One node of the tree of types; `children` are places in `Tail.types`, `names` those of a struct's fields."""

    kind: str
    children: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    length: int = 0
    precision: int = 0
    scale: int = 0


class Stripe(NamedTuple):
    """Where a stripe lies in the file and how long its own footer is at its end, in bytes, and how many rows it has."""

    offset: int
    length: int
    rows: int
    footer: int


@dataclass(frozen=True, slots=True)
class Tail:
    """The tail of one file; numbers of columns are places in `types`, 0 is the root."""

    rows: int
    compression: str
    types: tuple[OrcType, ...]
    stripes: tuple[Stripe, ...]
    user_metadata: Mapping[str, bytes]
    row_index_stride: int
    writer_version: int
    _statistics: tuple[bytes, ...]
    _stripe_statistics: tuple[bytes, ...]

    def column(self, *path: str) -> int | None:
        """The number of the column at `path` of field names from the root, in any case; None if there is none."""
        at = 0
        for name in path:
            lower = name.lower()
            found = [child for child, of in zip(*self._fields(at), strict=True) if of.lower() == lower]
            if not found:
                return None
            at = found[0]
        return at

    def names(self, column: int = 0) -> tuple[str, ...]:
        """The field names of a struct."""
        return self.types[column].names

    def hive_type(self, column: int) -> str:
        """The type of a column in Hive's words: ``decimal(10,2)``, ``array<struct<x:int>>``."""
        of = self.types[column]
        if of.kind == "decimal":
            return f"decimal({of.precision},{of.scale})"
        if of.kind in ("varchar", "char"):
            return f"{of.kind}({of.length})"
        inner = [self.hive_type(child) for child in of.children]
        if of.kind == "struct":
            inner = [f"{name}:{kind}" for name, kind in zip(of.names, inner, strict=True)]
        return f"{of.kind}<{','.join(inner)}>" if inner or of.kind == "struct" else of.kind

    def statistics(self, column: int) -> ColumnStatistics:
        """What the file says of a column. Raises FormatError for bytes that are no statistics."""
        return self._read(self._statistics, column)

    def stripe_statistics(self, stripe: int, column: int) -> ColumnStatistics:
        """What the file says of a column in one stripe; a file need not say anything.

        Raises FormatError for bytes that are no statistics.
        """
        told = self._stripe_statistics[stripe] if stripe < len(self._stripe_statistics) else b""
        return self._read(_messages(told, 1), column)

    def _fields(self, column: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
        of = self.types[column]
        return (of.children, of.names) if of.kind == "struct" else ((), ())

    def _read(self, known: tuple[bytes, ...], column: int) -> ColumnStatistics:
        if column >= len(known) or self.writer_version < _FIRST_GOOD_STATISTICS:
            return UNKNOWN
        return column_statistics(self.types[column].kind, known[column])


class Postscript(NamedTuple):
    """The last message of a file; lengths in bytes, `block` that of the longest chunk before it is compressed."""

    length: int
    footer: int
    metadata: int
    compression: str
    writer_version: int
    block: int

    @property
    def tail(self) -> int:
        return self.length + 1 + self.footer + self.metadata


def tail_length(end: bytes) -> int:
    """How many bytes at the end of a file are its tail, from its last `LONGEST_POSTSCRIPT_BYTES` or more.

    Raises FormatError if they are not the end of an ORC file.
    """
    return postscript_of(end).tail


def read_tail(end: bytes, decompress: Decompress | None = None) -> Tail:
    """The tail in the last bytes of a file, which are as many as `tail_length` says, or more.

    `decompress` is asked for what is neither uncompressed nor zlib. Raises FormatError for bytes that are no ORC tail,
    and for a compression that nobody here can read.
    """
    postscript, *parts = sections_of(end)
    metadata, footer = (plain_section(part, postscript.compression, decompress) for part in parts)
    rows = stride = 0
    types: list[bytes] = []
    stripes: list[Stripe] = []
    statistics: list[bytes] = []
    user_metadata: dict[str, bytes] = {}
    for field, value in fields(footer):
        if isinstance(value, bytes):
            if field == 3:
                stripes.append(_stripe(value))
            elif field == 4:
                types.append(value)
            elif field == 5:
                item = bytes_fields(value)
                user_metadata[item.get(1, b"").decode(errors="replace")] = item.get(2, b"")
            elif field == 7:
                statistics.append(value)
        elif field == 6:
            rows = value
        elif field == 8:
            stride = value
    return Tail(
        rows=rows,
        compression=postscript.compression,
        types=_types(tuple(types)),
        stripes=tuple(stripes),
        user_metadata=user_metadata,
        row_index_stride=stride,
        writer_version=postscript.writer_version,
        _statistics=tuple(statistics),
        _stripe_statistics=_messages(metadata, 1),
    )


def postscript_of(end: bytes) -> Postscript:
    """The postscript in the last bytes of a file. Raises FormatError if they are not the end of an ORC file."""
    if len(end) < 2 or len(end) <= end[-1]:
        raise FormatError("this is no ORC file: it is too short for a postscript")
    length = end[-1]
    message = end[-1 - length : -1]
    try:
        says_so = bytes_fields(message).get(8000) == MAGIC
    except FormatError:  # as of a file of text
        says_so = False
    if not says_so:
        raise FormatError("this is no ORC file: its postscript does not say so")
    numbers = number_fields(message)
    footer, kind, metadata = (numbers.get(field, 0) for field in (1, 2, 5))
    if kind >= len(COMPRESSIONS) or max(footer, metadata) > _MAX_SECTION_BYTES:
        raise FormatError(f"the postscript of this ORC file is corrupt: compression {kind}, footer of {footer} bytes")
    return Postscript(length, footer, metadata, COMPRESSIONS[kind], numbers.get(6, 0), numbers.get(3) or BLOCK_BYTES)


def sections_of(end: bytes) -> tuple[Postscript, bytes, bytes]:
    """The postscript, the metadata and the footer in the last bytes of a file, the latter two as they stand.

    Raises FormatError if they are no ORC tail, or less than the whole.
    """
    postscript = postscript_of(end)
    if len(end) < postscript.tail:
        raise FormatError(f"the tail of this ORC file has {postscript.tail} bytes, and {len(end)} were read")
    at = len(end) - postscript.length - 1 - postscript.footer
    return postscript, end[at - postscript.metadata : at], end[at : at + postscript.footer]


def plain_section(section: bytes, compression: str, decompress: Decompress | None) -> bytes:
    """A section of the file uncompressed: chunks, each behind three bytes of length and a flag."""
    if compression == "none":
        return section
    parts: list[bytes] = []
    at = 0
    while at < len(section):
        if at + 3 > len(section):
            raise FormatError("a section of this ORC file ends within the length of a chunk")
        header = int.from_bytes(section[at : at + 3], "little")
        chunk = section[at + 3 : at + 3 + (header >> 1)]
        if len(chunk) < header >> 1:
            raise FormatError("a section of this ORC file ends within a chunk")
        parts.append(chunk if header & 1 else _chunk(chunk, compression, decompress))
        at += 3 + len(chunk)
    return b"".join(parts)


def stripe_zone(footer: bytes) -> str:
    """The time zone of who has written a stripe, from its footer, uncompressed; nothing if it does not say."""
    return bytes_fields(footer).get(3, b"").decode(errors="replace")


def section(plain: bytes, compression: str, block: int) -> bytes:
    """`plain` as a section of a file: in chunks, which need not be compressed even if the file is."""
    if compression == "none":
        return plain
    parts: list[bytes] = []
    for at in range(0, len(plain), block):
        chunk = plain[at : at + block]
        deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        smaller = deflate.compress(chunk) + deflate.flush() if compression == "zlib" else chunk
        is_plain = len(smaller) >= len(chunk)
        kept = chunk if is_plain else smaller
        parts.append((len(kept) << 1 | is_plain).to_bytes(3, "little") + kept)
    return b"".join(parts)


def _chunk(chunk: bytes, compression: str, decompress: Decompress | None) -> bytes:
    try:
        if compression == "zlib":
            inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            return inflate.decompress(chunk, _MAX_CHUNK_BYTES)
        if decompress is not None:
            return decompress(compression, chunk, _MAX_CHUNK_BYTES)
    except (zlib.error, ValueError) as error:
        raise FormatError(f"the tail of this ORC file cannot be uncompressed from {compression}: {error}") from error
    raise FormatError(f"the tail of this ORC file is compressed by {compression}, which needs pyarrow to be read")


def _stripe(message: bytes) -> Stripe:
    numbers = number_fields(message)
    length = numbers.get(2, 0) + numbers.get(3, 0) + numbers.get(4, 0)
    return Stripe(numbers.get(1, 0), length, numbers.get(5, 0), numbers.get(4, 0))


def _messages(message: bytes, field: int) -> tuple[bytes, ...]:
    """The messages that a message has in a repeated field."""
    return tuple(value for number, value in fields(message) if number == field and isinstance(value, bytes))


@lru_cache(maxsize=64)
def _types(messages: tuple[bytes, ...]) -> tuple[OrcType, ...]:
    """The tree of types, of which a table has one in most of its files: to read it takes half of the time of a tail."""
    types = tuple(map(_type, messages))
    _check_tree(types)
    return types


def _type(message: bytes) -> OrcType:
    numbers: dict[int, int] = {}
    children: list[int] = []
    names: list[str] = []
    for field, value in fields(message):
        if field == 2:
            children += [value] if isinstance(value, int) else packed_numbers(value)
        elif field == 3 and isinstance(value, bytes):
            names.append(value.decode(errors="replace"))
        elif isinstance(value, int):
            numbers[field] = value
    kind = numbers.get(1, 0)
    if kind >= len(_KINDS):
        raise FormatError(f"this ORC file has a column of the unknown kind {kind}")
    return OrcType(_KINDS[kind], tuple(children), tuple(names), numbers.get(4, 0), numbers.get(5, 0), numbers.get(6, 0))


def _check_tree(types: Sequence[OrcType]) -> None:
    """Children come behind their parent and structs name theirs: then no walk over the tree goes astray."""
    if not types:
        raise FormatError("the footer of this ORC file has no types")
    for place, of in enumerate(types):
        if any(not place < child < len(types) for child in of.children):
            raise FormatError("the types of this ORC file are no tree")
        if of.kind == "struct" and len(of.names) != len(of.children):
            raise FormatError("a struct of this ORC file has not one name for each field")
