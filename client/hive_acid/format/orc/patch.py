"""A second tail for a finished ORC file: other types or user metadata, without touching the data (acid-format.md §3.6).

The tail is found from the end of a file, so one that is appended takes the place of the first, which stays as a few
dead kilobytes. Two things are done this way:

- Spark's writer makes all converters of a nested struct anew for every row, which takes half as long again as the whole
  rest. So rows are written with an empty `row` and all their columns behind it. ORC numbers columns as they come, so
  these files differ from those with the columns in `row` by two messages of the footer (`nested`).
- Apache Hive 3.1 wants user metadata that Spark cannot write (`hive_3_properties`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hive_acid.errors import FormatError
from hive_acid.format.orc.file import ACID_FIELDS
from hive_acid.format.orc.protobuf import bytes_field, fields, number_field, packed_numbers, varint
from hive_acid.format.orc.tail import Decompress, Tail, plain_section, section, sections_of

KEY_INDEX, STATS, VERSION = "hive.acid.key.index", "hive.acid.stats", "hive.acid.version"

_ROW = len(ACID_FIELDS) + 1
"""The number of the column `row`, behind the root and the five ids."""

_FOOTER_LENGTH = 1
_TYPE, _USER_METADATA = 4, 5
_SUBTYPES, _NAMES = 2, 3
_MAX_INT, _MAX_LONG = (1 << 31) - 1, (1 << 63) - 1


def second_tail(
    end: bytes,
    *,
    row: Sequence[str] = (),
    properties: Mapping[str, bytes] | None = None,
    decompress: Decompress | None = None,
) -> bytes:
    """What to append to the file that ends in `end`, which is its whole tail or more.

    With `row`, the names of its columns: those behind it move into it. `properties` are added to the user
    metadata. Raises FormatError for bytes that are no ORC tail, and types that are not of that form.
    """
    postscript, metadata, footer = sections_of(end)
    added = b"".join(
        bytes_field(_USER_METADATA, bytes_field(1, name.encode()) + bytes_field(2, value))
        for name, value in (properties or {}).items()
    )
    message = fields(end[-1 - postscript.length : -1])
    if row:
        plain = nested(plain_section(footer, postscript.compression, decompress), row)
        footer = section(plain + added, postscript.compression, postscript.block)
    elif added:
        # Messages of Protocol Buffers that follow each other are one: what is there need not be uncompressed.
        footer += section(added, postscript.compression, postscript.block)
    written = b"".join(
        number_field(field, len(footer) if field == _FOOTER_LENGTH else value)
        if isinstance(value, int)
        else bytes_field(field, value)
        for field, value in message
    )
    return metadata + footer + written + bytes([len(written)])


def nested(footer: bytes, names: Sequence[str]) -> bytes:
    """An uncompressed footer in which the columns behind the empty `row` have moved into it, called by `names`."""
    types = [value for field, value in fields(footer) if field == _TYPE and isinstance(value, bytes)]
    if len(types) <= _ROW:
        raise FormatError(f"a file with {len(types)} types does not have the columns of ACID")
    top, top_names = _children(types[0])
    inner, _ = _children(types[_ROW])
    moved = top[_ROW:]
    if top[:_ROW] != list(range(1, _ROW + 1)) or inner or len(moved) != len(names):
        raise FormatError("the columns of this file are not those that were to be moved into `row`")
    changed = {
        0: _with_children(types[0], top[:_ROW], top_names[:_ROW]),
        _ROW: _with_children(types[_ROW], moved, [name.encode() for name in names]),
    }
    parts: list[bytes] = []
    number = 0
    for field, value in fields(footer):
        if isinstance(value, int):
            parts.append(number_field(field, value))
            continue
        if field == _TYPE:
            value = changed.get(number, value)
            number += 1
        parts.append(bytes_field(field, value))
    return b"".join(parts)


def hive_3_properties(tail: Tail, *, deletes: bool) -> dict[str, bytes]:
    """The user metadata without which Apache Hive 3.1 cannot read a file of inserts, or of delete events.

    Raises FormatError where the key that ends a stripe is not known from the statistics of the stripes.
    """
    index = b"".join(b"%d,%d,%d;" % key for key in _last_keys(tail))
    stats = f"0,0,{tail.rows}" if deletes else f"{tail.rows},0,0"
    return {KEY_INDEX: index, STATS: stats.encode(), VERSION: b"2"}


def _last_keys(tail: Tail) -> list[tuple[int, int, int]]:
    """A key for each stripe that is not below its last one and below the first of the next stripe."""
    bounds = [[tail.stripe_statistics(stripe, column) for column in (2, 3, 4)] for stripe in range(len(tail.stripes))]
    keys: list[tuple[int, int, int]] = []
    for place, of_stripe in enumerate(bounds):
        lowest = [_number(column.minimum) for column in of_stripe]
        highest = [_number(column.maximum) for column in of_stripe]
        # In order, the column that changes first within a stripe has its maximum in the last row; what changes behind
        # it need not.
        same = next((at for at in range(3) if lowest[at] != highest[at]), 3)
        if same >= 2 or place == len(bounds) - 1:
            keys.append((highest[0], highest[1], highest[2]))
            continue
        following = [_number(column.minimum) for column in bounds[place + 1]]
        if following[: same + 1] <= highest[: same + 1]:
            raise FormatError(
                f"the key that ends stripe {place} of this file is not in its statistics: Apache Hive 3.1 could not "
                "read it"
            )
        keys.append((highest[0], highest[1] if same else _MAX_INT, _MAX_LONG))
    return keys


def _number(bound: object) -> int:
    if not isinstance(bound, int):
        raise FormatError("this file has no statistics of its keys")
    return bound


def _children(message: bytes) -> tuple[list[int], list[bytes]]:
    numbers: list[int] = []
    names: list[bytes] = []
    for field, value in fields(message):
        if field == _SUBTYPES:
            numbers += packed_numbers(value) if isinstance(value, bytes) else [value]
        elif field == _NAMES and isinstance(value, bytes):
            names.append(value)
    return numbers, names


def _with_children(message: bytes, numbers: Sequence[int], names: Sequence[bytes]) -> bytes:
    """The type with these children; its kind and its attributes stay."""
    kept = [(field, value) for field, value in fields(message) if field not in (_SUBTYPES, _NAMES)]
    written = [
        number_field(field, value) if isinstance(value, int) else bytes_field(field, value) for field, value in kept
    ]
    children = bytes_field(_SUBTYPES, b"".join(map(varint, numbers)))
    return b"".join([written[0], children, *(bytes_field(_NAMES, name) for name in names), *written[1:]])
