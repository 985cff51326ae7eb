"""Delete events as an ORC file, byte by byte: a few integers per event, and a `row` that is null (acid-format.md §3).

To have Spark write the few events of a small change costs more than to find them: a stage of its own code, directories,
side files of checksums. The file is as Java's writer makes one: one stripe, an index of 10,000 rows each for every
column, statistics, zlib; and it has the user metadata that Apache Hive 3.1 wants (§3.6). The columns of `row` have
streams without content.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from operator import sub

from hive_acid.format.orc import ACID_FIELDS, ROW_INDEX_STRIDE, acid_types, orc_file
from hive_acid.format.orc_patch import KEY_INDEX, STATS, VERSION
from hive_acid.format.orc_tail import BLOCK_BYTES, MAGIC, section
from hive_acid.format.protobuf import bytes_field, number_field, number_fields, signed_varint, unzigzag, varint
from hive_acid.format.rows import DELETE

_PRESENT, _DATA, _LENGTH, _SECONDARY, _ROW_INDEX = 0, 1, 2, 5, 6
_DIRECT, _DIRECT_V2 = 0, 2
_STRUCT, _UNION = 12, 13
_PLAIN_KINDS = {0, 1, 5, 6, _STRUCT, _UNION}
"""Kinds of types without a second version of their encoding: boolean, tinyint, float, double, struct, union."""

_STREAMS = {
    **dict.fromkeys((0, 1, 2, 3, 4, 5, 6, 15, _UNION), (_DATA,)),
    **dict.fromkeys((7, 8, 16, 17), (_DATA, _LENGTH)),  # texts and binary
    **dict.fromkeys((9, 14, 18), (_DATA, _SECONDARY)),  # timestamps and decimal
    **dict.fromkeys((10, 11), (_LENGTH,)),  # array and map
    _STRUCT: (),
}
"""The streams of a kind of type."""

_ROW = len(ACID_FIELDS) + 1
_RUN = 512
_SHORTEST_REPEAT, _LONGEST_REPEAT = 3, 130
_NOWHERE = bytes(8)
"""Places in streams without content, as many as any type has: all are 0."""


Event = tuple[int, int, int, int]
"""Write id, bucket property and row id of the row that is deleted, and the write id that deletes it."""


def delete_file(columns: Sequence[tuple[str, str]], events: Sequence[Event], compression: str) -> bytes:
    """The file of `events`, which are in order and not empty.

    `columns` are (name, Hive type), without the partition keys. `compression` is ``none`` or ``zlib``. Raises
    FormatError for a type that is none of Hive's.
    """
    types = acid_types(columns)
    kinds = [number_fields(of)[1] for of in types]
    count = len(events)
    ids: list[Sequence[int]] = [[DELETE] * count, *zip(*events, strict=True)]
    groups = [range(start, min(start + ROW_INDEX_STRIDE, count)) for start in range(0, count, ROW_INDEX_STRIDE)]
    statistics = [_counted(count)]
    indexes = [_index((b"", _counted(len(group))) for group in groups)]
    data = []
    for column, values in enumerate(ids, 1):
        grouped = [values[group.start : group.stop] for group in groups]
        bounds = [(min(group), max(group)) for group in grouped]
        statistics.append(_integers(count, (min(low for low, _ in bounds), max(high for _, high in bounds))))
        parts = [section(_runs(*of), compression, BLOCK_BYTES) for of in zip(grouped, bounds, strict=True)]
        stated = (_integers(len(group), of) for group, of in zip(groups, bounds, strict=True))
        indexes.append(_index(zip(_places(parts, compression, 1), stated, strict=True)))
        data.append((_DATA, column, b"".join(parts)))
    statistics += [_counted(0, has_null=True), *repeat(_counted(0), len(kinds) - _ROW - 1)]
    parts = [section(_zeros(-(-len(group) // 8)), compression, BLOCK_BYTES) for group in groups]
    indexes.append(_index(zip(_places(parts, compression, 2), repeat(_counted(0, has_null=True)))))
    data.append((_PRESENT, _ROW, b"".join(parts)))
    nothing = _index((_NOWHERE, _counted(0)) for _ in groups)
    for column in range(_ROW + 1, len(kinds)):
        indexes.append(nothing)
        data += [(stream, column, b"") for stream in _STREAMS[kinds[column]]]
    streams = [
        *((_ROW_INDEX, column, section(index, compression, BLOCK_BYTES)) for column, index in enumerate(indexes)),
        *data,
    ]
    properties = {
        KEY_INDEX: b"%d,%d,%d;" % events[-1][:3],
        STATS: b"0,0,%d" % count,
        VERSION: b"2",
    }
    return _file(types, kinds, streams, statistics, properties, count, compression)


def _file(
    types: Sequence[bytes],
    kinds: Sequence[int],
    streams: Sequence[tuple[int, int, bytes]],
    statistics: Sequence[bytes],
    properties: dict[str, bytes],
    count: int,
    compression: str,
) -> bytes:
    """The file of one stripe; `streams` are (kind, column, content), those of the index first."""
    stripe_footer = section(
        b"".join(
            [
                *(
                    bytes_field(1, number_field(1, kind) + number_field(2, column) + number_field(3, len(content)))
                    for kind, column, content in streams
                ),
                *(bytes_field(2, number_field(1, _DIRECT if kind in _PLAIN_KINDS else _DIRECT_V2)) for kind in kinds),
                bytes_field(3, b"UTC"),
            ]
        ),
        compression,
        BLOCK_BYTES,
    )
    index_length = sum(len(content) for kind, _, content in streams if kind == _ROW_INDEX)
    body = b"".join(content for *_, content in streams)
    stripe = (len(MAGIC), index_length, len(body) - index_length, len(stripe_footer), count)
    return orc_file(
        types,
        properties.items(),
        statistics,
        rows=count,
        body=body + stripe_footer,
        stripes=[b"".join(number_field(field, value) for field, value in enumerate(stripe, 1))],
        metadata=section(bytes_field(1, b"".join(bytes_field(1, of) for of in statistics)), compression, BLOCK_BYTES),
        compression=compression,
        block=BLOCK_BYTES,
    )


# --- statistics and indexes ----------------------------------------------------------------------


def _counted(values: int, *, has_null: bool = False) -> bytes:
    """The statistics of a column of which only the number of values is told."""
    return number_field(1, values) + number_field(10, has_null)


def _integers(values: int, bounds: tuple[int, int]) -> bytes:
    """The statistics of a column with so many numbers, of which the least and the greatest are told."""
    least, greatest = map(unzigzag, bounds)
    told = number_field(1, least) + number_field(2, greatest)
    return number_field(1, values) + bytes_field(2, told) + number_field(10, False)


def _index(groups: Iterator[tuple[bytes, bytes]]) -> bytes:
    """The index of a column: where the rows of each group begin in its streams, and their statistics."""
    return b"".join(bytes_field(1, (bytes_field(1, at) if at else b"") + bytes_field(2, of)) for at, of in groups)


def _places(parts: Sequence[bytes], compression: str, within: int) -> Iterator[bytes]:
    """Where each part of a stream begins; as it begins with a chunk and a run, all that follows is 0.

    `within` numbers say where in a run a row is; before them is the place in the chunk, if there are chunks.
    """
    at = 0
    for part in parts:
        yield varint(at) + bytes(within + (compression != "none"))
        at += len(part)


# --- encodings -----------------------------------------------------------------------------------


def _runs(values: Sequence[int], bounds: tuple[int, int]) -> bytes:
    """Integers in the second version of ORC's run length encoding; `bounds` are the least and the greatest."""
    if bounds[0] == bounds[1]:
        whole, rest = divmod(len(values), _RUN)
        return _run(values[:_RUN]) * whole + (_run(values[:rest]) if rest else b"")
    return b"".join(_run(values[at : at + _RUN]) for at in range(0, len(values), _RUN))


def _run(values: Sequence[int]) -> bytes:
    """Values that ascend as the differences between them, others as they are, in as many bytes as the largest needs."""
    length = len(values) - 1
    steps = list(map(sub, values[1:], values))
    least, greatest = min(steps, default=0), max(steps, default=0)
    if least < 0:
        plain = list(map(unzigzag, values))
        width = _width(max(plain))
        return bytes([1 << 6 | _code(width) << 1 | length >> 8, length & 255]) + _packed(plain, width)
    width = 0 if least == greatest else _width(max(steps[1:]))
    header = bytes([3 << 6 | _code(width) << 1 | length >> 8, length & 255])
    first = signed_varint(values[0]) + signed_varint(steps[0] if steps else 0)
    return header + first + (_packed(steps[1:], width) if width else b"")


def _width(value: int) -> int:
    """How many bytes a number takes, at least one."""
    return max(1, -(-value.bit_length() // 8))


def _code(width: int) -> int:
    """How ORC names a width in bytes."""
    return (0, 7, 15, 23, 27, 28, 29, 30, 31)[width]


def _packed(values: Sequence[int], width: int) -> bytes:
    if width == 1:
        return bytes(values)
    return b"".join(value.to_bytes(width, "big") for value in values)


def _zeros(count: int) -> bytes:
    """As many bytes 0, in the run length encoding of bytes: rows of which none is present."""
    runs, rest = divmod(count, _LONGEST_REPEAT)
    whole = bytes([_LONGEST_REPEAT - _SHORTEST_REPEAT, 0]) * runs
    if rest >= _SHORTEST_REPEAT:
        return whole + bytes([rest - _SHORTEST_REPEAT, 0])
    return whole + (bytes([256 - rest]) + bytes(rest) if rest else b"")
