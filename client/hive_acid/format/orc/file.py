"""ORC files without rows, byte by byte: what stands for "all is gone" without Spark (acid-format.md §2.7, §3.6).

A directory without a visible file is not seen by every engine, so the empty base of a TRUNCATE holds one such file. It
has the complete schema, no compression and no stripes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from hive_acid.errors import FormatError
from hive_acid.format.orc.protobuf import bytes_field, number_field, varint
from hive_acid.format.orc.tail import BLOCK_BYTES, COMPRESSIONS, MAGIC, section

ACID_FIELDS = (
    ("operation", "int"),
    ("originalTransaction", "bigint"),
    ("bucket", "int"),
    ("rowId", "bigint"),
    ("currentTransaction", "bigint"),
)
"""The columns before ``row`` in a file of a full-ACID table."""

_ACID_PROPERTIES = (("hive.acid.key.index", b""), ("hive.acid.stats", b"0,0,0"), ("hive.acid.version", b"2"))
ROW_INDEX_STRIDE = 10_000
_WRITER_VERSION = 6  # ORC-135, as Hive 3 and later write
_KINDS = {
    "boolean": 0, "tinyint": 1, "smallint": 2, "int": 3, "integer": 3, "bigint": 4, "float": 5, "double": 6,
    "string": 7, "binary": 8, "timestamp": 9, "array": 10, "map": 11, "struct": 12, "uniontype": 13, "decimal": 14,
    "date": 15, "varchar": 16, "char": 17, "timestamp with local time zone": 18,
}  # fmt: skip
_NESTED = ("array", "map", "struct", "uniontype")
_TOKEN = re.compile(r"\s*([<>,:()]|[^<>,:()]+)")


def empty_acid_file(columns: Sequence[tuple[str, str]]) -> bytes:
    """A file of a full-ACID table without rows; `columns` are (name, Hive type), without the partition keys.

    Raises FormatError for a type that is none of Hive's.
    """
    return _without_rows(acid_types(columns), _ACID_PROPERTIES)


def empty_file(columns: Sequence[tuple[str, str]]) -> bytes:
    """A plain file without rows; see `empty_acid_file`."""
    types: list[bytes] = []
    _add_struct(_parsed(columns), types)
    return _without_rows(types, ())


def acid_types(columns: Sequence[tuple[str, str]]) -> list[bytes]:
    """The types of such a file, as the footer has them, in pre-order; see `empty_acid_file`."""
    types: list[bytes] = []
    _add_struct([*_parsed(ACID_FIELDS), ("row", partial(_add_struct, _parsed(columns)))], types)
    return types


def orc_file(
    types: Sequence[bytes],
    properties: Iterable[tuple[str, bytes]],
    statistics: Sequence[bytes],
    *,
    rows: int = 0,
    body: bytes = b"",
    stripes: Sequence[bytes] = (),
    metadata: bytes = b"",
    compression: str = "none",
    block: int | None = None,
) -> bytes:
    """A whole file of `body`, in which `stripes` say where they lie, and `metadata` as it is to stand.

    `types` and `statistics` are of all columns in pre-order, and `stripes`, as messages of the footer. The footer's
    chunks have up to `block` bytes, which is stated if it is given.
    """
    footer = b"".join(
        [
            number_field(1, len(MAGIC)),
            number_field(2, len(MAGIC) + len(body)),
            *(bytes_field(3, stripe) for stripe in stripes),
            *(bytes_field(4, kind) for kind in types),
            *(bytes_field(5, bytes_field(1, name.encode()) + bytes_field(2, value)) for name, value in properties),
            number_field(6, rows),
            *(bytes_field(7, of) for of in statistics),
            number_field(8, ROW_INDEX_STRIDE),
        ]
    )
    footer = section(footer, compression, block or BLOCK_BYTES)
    postscript = b"".join(
        [
            number_field(1, len(footer)),
            number_field(2, COMPRESSIONS.index(compression)),
            number_field(3, block) if block else b"",
            bytes_field(4, varint(0) + varint(12)),
            number_field(5, len(metadata)),
            number_field(6, _WRITER_VERSION),
            bytes_field(8000, MAGIC),
        ]
    )
    return b"".join([MAGIC, body, metadata, footer, postscript, bytes([len(postscript)])])


_Field = tuple[str, Callable[[list[bytes]], int]]
"""A name, and what adds the type to a list of ORC types in pre-order and returns its number there."""


def _parsed(columns: Sequence[tuple[str, str]]) -> list[_Field]:
    return [(name, _Parser(kind).add_to) for name, kind in columns]


def _without_rows(types: Sequence[bytes], properties: Sequence[tuple[str, bytes]]) -> bytes:
    return orc_file(types, properties, [number_field(1, 0)] * len(types))


def _add_struct(fields: Sequence[_Field], types: list[bytes]) -> int:
    place = len(types)
    types.append(b"")
    types[place] = _type(_KINDS["struct"], [add_to(types) for _, add_to in fields], [name for name, _ in fields])
    return place


class _Parser:
    """One Hive type in text, which adds itself and what is in it to a list of ORC types in pre-order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: Iterator[str] = (token for token in _TOKEN.findall(text) if token.strip())
        self._next = next(self._tokens, "")

    def add_to(self, types: list[bytes]) -> int:
        """The number of the type among `types`. Raises FormatError unless the whole text is one type."""
        number = self._type(types)
        if self._next:
            raise self._unfit()
        return number

    def _type(self, types: list[bytes]) -> int:
        name = self._take().strip().lower()
        kind = _KINDS.get(name)
        if kind is None:
            raise self._unfit()
        place = len(types)
        types.append(b"")
        inner, names = self._inner(types, name == "struct") if name in _NESTED else ([], [])
        given = self._parameters()
        if name == "decimal":
            precision, scale = (*given, 0)[:2] if given else (10, 0)
            extra = number_field(5, precision) + number_field(6, scale)
        elif name in ("varchar", "char"):
            extra = number_field(4, given[0]) if given else b""
        else:
            extra = b""
        types[place] = _type(kind, inner, names) + extra
        return place

    def _inner(self, types: list[bytes], is_named: bool) -> tuple[list[int], list[str]]:
        """The types between angle brackets, and the names of a struct's fields."""
        numbers: list[int] = []
        names: list[str] = []
        self._expect("<")
        while self._next != ">":
            if is_named:
                names.append(self._take().strip())
                self._expect(":")
            numbers.append(self._type(types))
            if self._next != ">":
                self._expect(",")
        self._expect(">")
        return numbers, names

    def _parameters(self) -> list[int]:
        """The numbers between round brackets, if there are any."""
        if self._next != "(":
            return []
        found: list[int] = []
        while self._take() != ")":
            if self._next not in (",", ")"):
                if not self._next.strip().isdigit():
                    raise self._unfit()
                found.append(int(self._next))
        return found

    def _take(self) -> str:
        token, self._next = self._next, next(self._tokens, "")
        if not token:
            raise self._unfit()
        return token

    def _expect(self, wanted: str) -> None:
        if self._take() != wanted:
            raise self._unfit()

    def _unfit(self) -> FormatError:
        return FormatError(f"'{self._text}' is not a type of Hive's")


def _type(kind: int, inner: Sequence[int], names: Sequence[str]) -> bytes:
    packed = b"".join(map(varint, inner))
    return (
        number_field(1, kind)
        + (bytes_field(2, packed) if inner else b"")
        + b"".join(bytes_field(3, name.encode()) for name in names)
    )
