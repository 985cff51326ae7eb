"""ORC files that become one without a look at their rows: stripes stay as they are, and one tail tells of all of them.

A stripe says nothing of where it lies, so the stripes of files that agree in types, compression and writer can stand
one after the other in a new file. Its statistics are those of the files taken together: what one of them does not say
of its values is not said of all.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext

from hive_acid.errors import FormatError
from hive_acid.format.orc.protobuf import (
    bytes_field,
    fields,
    number_field,
    number_fields,
    packed_numbers,
    unzigzag,
    varint,
    zigzag,
)
from hive_acid.format.orc.tail import MAGIC, Decompress, plain_section, section, sections_of

_FOOTER_LENGTH, _METADATA_LENGTH, _ENCRYPTED_STATISTICS = 1, 5, 7
_HEADER, _CONTENT, _STRIPE, _ROWS, _STATISTICS, _ENCRYPTION = 1, 2, 3, 6, 7, 10
_OF_FILE = (_HEADER, _CONTENT, _STRIPE, _ROWS, _STATISTICS)
_WRITER, _CPP = 9, 1
_OFFSET, _INDEX, _DATA, _STRIPE_FOOTER = 1, 2, 3, 4
_OF_STRIPE = 1
_MAX_LONG = (1 << 63) - 1
_MAX_DIGITS = 38

_Fields = Mapping[int, int | bytes]


@dataclass(frozen=True, slots=True)
class OrcPart:
    """A file to be joined: its stripes lie from byte `begin` to byte `end`."""

    begin: int
    end: int
    rows: int
    _stripes: tuple[bytes, ...]
    _statistics: tuple[bytes, ...]
    _of_stripes: bytes
    _alike: tuple[tuple[int, int | bytes], ...]
    _postscript: tuple[tuple[int, int | bytes], ...]
    _chunks: tuple[str, int]

    @property
    def kind(self) -> Hashable:
        """The same for files that can become one."""
        return self._alike, self._postscript, len(self._statistics), bool(self._of_stripes) or not self._stripes

    @property
    def is_of_cpp(self) -> bool:
        """Whether ORC's C++ library has written the file, as it does for pyarrow."""
        return dict(self._alike).get(_WRITER) == _CPP


def orc_part(end: bytes, decompress: Decompress | None = None) -> OrcPart:
    """The file whose last bytes are `end`, its whole tail or more.

    Raises FormatError for bytes that are no ORC tail, and for an encrypted file.
    """
    postscript, metadata, footer_section = sections_of(end)
    footer = list(fields(plain_section(footer_section, postscript.compression, decompress)))
    message = tuple(fields(end[-1 - postscript.length : -1]))
    if any(field == _ENCRYPTION for field, _ in footer) or dict(message).get(_ENCRYPTED_STATISTICS):
        raise FormatError("this ORC file is encrypted")
    stripes = tuple(value for field, value in footer if field == _STRIPE and isinstance(value, bytes))
    numbers = [number_fields(stripe) for stripe in stripes]
    begins = [of.get(_OFFSET, 0) for of in numbers]
    ends = [sum(of.get(field, 0) for field in (_OFFSET, _INDEX, _DATA, _STRIPE_FOOTER)) for of in numbers]
    if any(begin < before for begin, before in zip(begins[1:], ends, strict=False)):
        raise FormatError("the stripes of this ORC file do not follow each other")
    of_stripes = plain_section(metadata, postscript.compression, decompress)
    if (told := sum(field == _OF_STRIPE for field, _ in fields(of_stripes))) not in (0, len(stripes)):
        raise FormatError(f"this ORC file has statistics of {told} of its {len(stripes)} stripes")
    return OrcPart(
        begin=begins[0] if begins else len(MAGIC),
        end=ends[-1] if ends else len(MAGIC),
        rows=sum(value for field, value in footer if field == _ROWS and isinstance(value, int)),
        _stripes=stripes,
        _statistics=tuple(value for field, value in footer if field == _STATISTICS and isinstance(value, bytes)),
        _of_stripes=of_stripes,
        _alike=tuple(found for found in footer if found[0] not in _OF_FILE),
        _postscript=tuple(found for found in message if found[0] not in (_FOOTER_LENGTH, _METADATA_LENGTH)),
        _chunks=(postscript.compression, postscript.block),
    )


def joined_tail(parts: Sequence[OrcPart]) -> bytes:
    """The tail of a file that is `MAGIC` and then the stripes of all `parts`, in their order.

    Raises FormatError for parts that differ in types, user metadata, compression or writer.
    """
    first = parts[0]
    if any(part.kind != first.kind for part in parts[1:]):
        raise FormatError(
            "ORC files of different types, user metadata, compression, writers or kinds of statistics are not joined"
        )
    stripes: list[bytes] = []
    at = len(MAGIC)
    for part in parts:
        stripes += [_moved(stripe, at - part.begin) for stripe in part._stripes]
        at += part.end - part.begin
    footer = b"".join(
        [
            number_field(_HEADER, len(MAGIC)),
            number_field(_CONTENT, at),
            *(bytes_field(_STRIPE, stripe) for stripe in stripes),
            _message(first._alike),
            number_field(_ROWS, sum(part.rows for part in parts)),
            *(
                bytes_field(_STATISTICS, joined_statistics(of_column))
                for of_column in zip(*(part._statistics for part in parts), strict=True)
            ),
        ]
    )
    metadata = section(b"".join(part._of_stripes for part in parts), *first._chunks)
    footer = section(footer, *first._chunks)
    lengths = number_field(_FOOTER_LENGTH, len(footer)) + number_field(_METADATA_LENGTH, len(metadata))
    postscript = lengths + _message(first._postscript)
    return metadata + footer + postscript + bytes([len(postscript)])


def _moved(stripe: bytes, by: int) -> bytes:
    return _message([(field, value + by) if field == _OFFSET else (field, value) for field, value in _pairs(stripe)])


def _pairs(message: bytes) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for field, value in fields(message):
        if not isinstance(value, int):
            raise FormatError("a stripe of this ORC file is encrypted")
        pairs.append((field, value))
    return pairs


def _message(found: Sequence[tuple[int, int | bytes]]) -> bytes:
    return b"".join(
        number_field(field, value) if isinstance(value, int) else bytes_field(field, value) for field, value in found
    )


# --- statistics ------------------------------------------------------------------------------------

_VALUES, _HAS_NULL, _BYTES_ON_DISK = 1, 10, 11
_MIN, _MAX, _SUM = 1, 2, 3


def joined_statistics(of_files: Sequence[bytes]) -> bytes:
    """The statistics of a column in several files together, each a message of ``ColumnStatistics``.

    Nothing is said but what all files with values say.
    """
    known = [dict(fields(message)) for message in of_files]
    parts: list[tuple[int, int | bytes]] = []
    counted = _sum(known, _VALUES)
    if counted is not None:
        parts.append((_VALUES, counted))
    with_values = [of for of in known if of.get(_VALUES) != 0]
    for field, join in _JOINS.items():
        inner = [of.get(field) for of in with_values]
        messages = [dict(fields(one)) for one in inner if isinstance(one, bytes)]
        if messages and len(messages) == len(inner):
            parts.append((field, join(messages)))
    nulls = [of.get(_HAS_NULL) for of in known]
    if None not in nulls:
        parts.append((_HAS_NULL, int(any(nulls))))
    if (size := _sum(known, _BYTES_ON_DISK)) is not None:
        parts.append((_BYTES_ON_DISK, size))
    return _message(parts)


def _sum(known: Sequence[_Fields], field: int) -> int | None:
    numbers = [of.get(field) for of in known]
    return sum(number for number in numbers if isinstance(number, int)) if None not in numbers else None


def _signed(of: _Fields, field: int) -> int | None:
    value = of.get(field)
    return zigzag(value) if isinstance(value, int) else None


def _ints(known: Sequence[_Fields]) -> bytes:
    return _signed_bounds(known) + _signed_sum(known, _SUM)


def _signed_bounds(known: Sequence[_Fields]) -> bytes:
    parts = b""
    for field, choose in ((_MIN, min), (_MAX, max)):
        bounds = [_signed(of, field) for of in known]
        told = [bound for bound in bounds if bound is not None]
        if len(told) == len(bounds):
            parts += number_field(field, unzigzag(choose(told)))
    return parts


def _signed_sum(known: Sequence[_Fields], field: int) -> bytes:
    """Nothing where it is unknown, or no number of 64 bits."""
    sums = [_signed(of, field) for of in known]
    told = [one for one in sums if one is not None]
    total = sum(told)
    fits = len(told) == len(sums) and -_MAX_LONG <= total <= _MAX_LONG
    return number_field(field, unzigzag(total)) if fits else b""


def _doubles(known: Sequence[_Fields]) -> bytes:
    """Python's comparison leaves a NaN where it stands, so with one among them there are no bounds; the sum tells."""
    parts = b""
    numbers = {field: [_double(of.get(field)) for of in known] for field in (_MIN, _MAX, _SUM)}
    for field, choose in ((_MIN, min), (_MAX, max), (_SUM, sum)):
        told = [number for number in numbers[field] if number is not None]
        if len(told) == len(known) and (field == _SUM or all(number == number for number in told)):
            parts += varint(field << 3 | 1) + struct.pack("<d", choose(told))
    return parts


def _double(value: int | bytes | None) -> float | None:
    if not isinstance(value, bytes) or len(value) != 8:
        return None
    number: float = struct.unpack("<d", value)[0]
    return number


def _strings(known: Sequence[_Fields]) -> bytes:
    """The least lower bound and the greatest upper one, each exact or a rounded one as it was."""
    parts = b""
    for exact, rounded, choose in ((1, 4, min), (2, 5, max)):
        bounds = [(of.get(exact, of.get(rounded)), exact if exact in of else rounded) for of in known]
        told = [(bound, field) for bound, field in bounds if isinstance(bound, bytes)]
        if len(told) == len(bounds):
            bound, field = choose(told)
            parts += bytes_field(field, bound)
    return parts + _signed_sum(known, _SUM)


def _counts(known: Sequence[_Fields]) -> bytes:
    """How many values are true."""
    counts = [
        packed_numbers(value) if isinstance(value, bytes) else [value or 0] for value in (of.get(1) for of in known)
    ]
    return bytes_field(1, varint(sum(count[0] for count in counts if count)))


def _decimals(known: Sequence[_Fields]) -> bytes:
    parts = b""
    for field, choose in ((_MIN, min), (_MAX, max), (_SUM, sum)):
        numbers = [_decimal(of.get(field)) for of in known]
        told = [number for number in numbers if number is not None]
        if len(told) < len(numbers):
            continue
        with localcontext() as context:
            context.prec = 2 * _MAX_DIGITS
            chosen = Decimal(choose(told))
        if len(chosen.as_tuple().digits) <= _MAX_DIGITS:
            parts += bytes_field(field, f"{chosen:f}".encode())
    return parts


def _decimal(text: int | bytes | None) -> Decimal | None:
    try:
        number = Decimal(text.decode()) if isinstance(text, bytes) and text else None
    except (InvalidOperation, UnicodeDecodeError):
        return None
    return number if number is not None and number.is_finite() else None


def _binaries(known: Sequence[_Fields]) -> bytes:
    return _signed_sum(known, 1)


def _timestamps(known: Sequence[_Fields]) -> bytes:
    """Milliseconds as wall clock and in UTC, and the nanoseconds below them, all of the same value."""
    parts = b""
    # Nanoseconds are stored with 1 added, and are 0, or 999,999, where they are not.
    for fields_of, unset, choose in (((1, 3, 5), 0, min), ((2, 4, 6), 999_999, max)):
        wall, utc, nanos = fields_of
        by = utc if all(utc in of for of in known) else wall
        if not all(by in of for of in known):
            continue

        def order(of: _Fields, by: int = by, nanos: int = nanos, unset: int = unset) -> tuple[int, int]:
            below = of.get(nanos)
            return _signed(of, by) or 0, below - 1 if isinstance(below, int) else unset

        chosen = choose(known, key=order)
        parts += _message([(field, chosen[field]) for field in fields_of if field in chosen])
    return parts


def _collections(known: Sequence[_Fields]) -> bytes:
    """How many elements a list or map has, at least, at most, and all together."""
    parts = b""
    for field, choose in ((1, min), (2, max), (3, sum)):
        told = [number for of in known if isinstance(number := of.get(field), int)]
        if len(told) == len(known):
            parts += number_field(field, choose(told))
    return parts


_JOINS: Mapping[int, Callable[[Sequence[_Fields]], bytes]] = {
    2: _ints,
    3: _doubles,
    4: _strings,
    5: _counts,
    6: _decimals,
    7: _signed_bounds,
    8: _binaries,
    9: _timestamps,
    12: _collections,
}
