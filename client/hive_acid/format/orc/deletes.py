"""Delete events as an ORC file, byte by byte: a few integers per event, and a `row` that is null (acid-format.md §3).

To have Spark write the few events of a small change costs more than to find them: a stage of its own code, directories,
side files of checksums. The file is as Java's writer makes one: one stripe, an index of 10,000 rows each for every
column, statistics, zlib; and it has the user metadata that Apache Hive 3.1 wants (acid-format.md §3.6). The
columns of `row` have streams without content.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from operator import sub
from typing import NamedTuple

from hive_acid.format.deletion_bitmap import RowRange
from hive_acid.format.orc.file import ACID_FIELDS, ROW_INDEX_STRIDE, acid_types, orc_file
from hive_acid.format.orc.patch import KEY_INDEX, STATS, VERSION
from hive_acid.format.orc.protobuf import bytes_field, number_field, number_fields, signed_varint, unzigzag, varint
from hive_acid.format.orc.stretches import Stretch, Stretches
from hive_acid.format.orc.tail import BLOCK_BYTES, MAGIC, section
from hive_acid.format.rows import DELETE, decode_bucket

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
_AS_THEY_ARE, _ASCENDING = 1, 3
_WIDTHS = (0, 7, 15, 23, 27, 28, 29, 30, 31)
"""How ORC names a width in bytes."""

_LETTERS = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""How Python names it."""

_SHORTEST_REPEAT, _LONGEST_REPEAT = 3, 130
_RUNS = "hive-acid.deleted.runs"
_MOST_RUNS = 1_000
"""So many runs are told in user metadata at most, which every reader of the tail reads."""

_NOWHERE = bytes(8)
"""Places in streams without content, as many as any type has: all are 0."""


@dataclass(frozen=True, slots=True)
class DeleteEvents:
    """Delete events column by column: the write ids, bucket properties and row ids of the rows that are deleted, by
    which they are in order, and the write ids that delete them.
    """

    write_ids: Sequence[int]
    buckets: Sequence[int]
    row_ids: Sequence[int]
    deleted_by: Sequence[int]

    @classmethod
    def of_runs(cls, runs: Iterable[RowRange], deleted_by: int) -> DeleteEvents:
        """Those by which one write deletes rows that are numbered one after the other, in the order of their keys."""
        ordered = sorted(runs, key=lambda run: (*run[:2], run[2].start))
        return cls(
            Stretches([Stretch(write_id, 0, len(ids)) for write_id, _, ids in ordered]),
            Stretches([Stretch(bucket, 0, len(ids)) for _, bucket, ids in ordered]),
            Stretches([Stretch(ids.start, 1, len(ids)) for *_, ids in ordered]),
            Stretches([Stretch(deleted_by, 0, sum(len(ids) for *_, ids in ordered))]),
        )

    def __len__(self) -> int:
        return len(self.row_ids)

    def runs(self) -> list[RowRange]:
        """The rows, of which those that are numbered one after the other are together."""
        found: list[RowRange] = []
        if isinstance(self.row_ids, Stretches):
            begin = 0
            for part in self.row_ids.parts:
                found.append((self.write_ids[begin], self.buckets[begin], range(part.first, part.first + part.length)))
                begin += part.length
            return found
        before: tuple[int, int, int] | None = None
        for write_id, bucket, row_id in zip(self.write_ids, self.buckets, self.row_ids, strict=True):
            if before == (write_id, bucket, row_id - 1):
                found[-1] = write_id, bucket, range(found[-1][2].start, row_id + 1)
            else:
                found.append((write_id, bucket, range(row_id, row_id + 1)))
            before = write_id, bucket, row_id
        return found

    @property
    def columns(self) -> tuple[Sequence[int], ...]:
        return self.write_ids, self.buckets, self.row_ids, self.deleted_by

    def at(self, places: Sequence[int]) -> DeleteEvents:
        """The events at some places, which ascend."""
        if len(places) == len(self):
            return self
        return DeleteEvents(*([of[place] for place in places] for of in self.columns))

    def by_bucket(self) -> dict[int, DeleteEvents]:
        """The events that belong into the file of each bucket, by its number."""
        if isinstance(self.row_ids, Stretches):
            by_number: defaultdict[int, list[RowRange]] = defaultdict(list)
            for run in self.runs():
                by_number[decode_bucket(run[1])[0]].append(run)
            return {number: self.of_runs(of, self.deleted_by[0]) for number, of in by_number.items()}
        numbers = {bucket: decode_bucket(bucket)[0] for bucket in {*self.buckets}}
        if len({*numbers.values()}) == 1:
            return dict.fromkeys(numbers.values(), self)
        places: defaultdict[int, list[int]] = defaultdict(list)
        for place, bucket in enumerate(self.buckets):
            places[numbers[bucket]].append(place)
        return {number: self.at(of) for number, of in places.items()}


def told_runs(user_metadata: Mapping[str, bytes], rows: int) -> tuple[list[RowRange], int] | None:
    """The runs that a file of so many events says it has, and the write that deletes them; None if it does not say."""
    told = _parsed_runs(user_metadata.get(_RUNS, b""))
    return told if told is not None and sum(len(ids) for *_, ids in told[0]) == rows else None


@lru_cache(maxsize=1_024)  # Every read asks for those of all delete files.
def _parsed_runs(said: bytes) -> tuple[list[RowRange], int] | None:
    """The runs in user metadata, and the write that deletes them; None if it is none of that form."""
    try:
        (deleted_by,), *runs = (tuple(map(int, part.split(b","))) for part in said.split(b";"))
        return [(write_id, bucket, range(first, last + 1)) for write_id, bucket, first, last in runs], deleted_by
    except ValueError:
        return None


def delete_file(columns: Sequence[tuple[str, str]], events: DeleteEvents, compression: str) -> bytes:
    """The file of `events`, which are not empty.

    `columns` are (name, Hive type), without the partition keys. `compression` is ``none`` or ``zlib``. Raises
    FormatError for a type that is none of Hive's.
    """
    count = len(events)
    ids: list[Sequence[int]] = [Stretch(DELETE, 0, count), *events.columns]
    groups = [range(start, min(start + ROW_INDEX_STRIDE, count)) for start in range(0, count, ROW_INDEX_STRIDE)]
    inner = _inner(tuple(columns), len(groups), compression)
    statistics = [_counted(count)]
    indexes = [_index((b"", _counted(len(group))) for group in groups)]
    data = []
    for column, values in enumerate(ids, 1):
        grouped = [values[group.start : group.stop] for group in groups] if len(groups) > 1 else [values]
        bounds = list(map(_bounds, grouped))
        statistics.append(_integers(count, (min(low for low, _ in bounds), max(high for _, high in bounds))))
        parts = [section(_runs(*of), compression, BLOCK_BYTES) for of in zip(grouped, bounds, strict=True)]
        stated = (_integers(len(group), of) for group, of in zip(groups, bounds, strict=True))
        indexes.append(_index(zip(_places(parts, compression, 1), stated, strict=True)))
        data.append((_DATA, column, b"".join(parts)))
    statistics += [_counted(0, has_null=True), *inner.statistics]
    parts = [section(_zeros(-(-len(group) // 8)), compression, BLOCK_BYTES) for group in groups]
    indexes.append(_index(zip(_places(parts, compression, 2), repeat(_counted(0, has_null=True)))))
    data.append((_PRESENT, _ROW, b"".join(parts)))
    index = [(_ROW_INDEX, column, section(of, compression, BLOCK_BYTES)) for column, of in enumerate(indexes)]
    properties = {
        KEY_INDEX: b"%d,%d,%d;" % (events.write_ids[-1], events.buckets[-1], events.row_ids[-1]),
        STATS: b"0,0,%d" % count,
        VERSION: b"2",
        **_told_runs(events),
    }
    return _file(inner, index, data, statistics, properties, count, compression)


def _told_runs(events: DeleteEvents) -> dict[str, bytes]:
    """User metadata for `told_runs`, of events that are few runs."""
    if not isinstance(events.row_ids, Stretches) or len(events.row_ids.parts) > _MOST_RUNS:
        return {}
    runs = (b"%d,%d,%d,%d" % (write_id, bucket, ids[0], ids[-1]) for write_id, bucket, ids in events.runs())
    return {_RUNS: b";".join((b"%d" % events.deleted_by[0], *runs))}


def _bounds(values: Sequence[int]) -> tuple[int, int]:
    """The least and the greatest of some numbers."""
    return (values[0], values[-1]) if isinstance(values, Stretch) else (min(values), max(values))


class _Inner(NamedTuple):
    """What is the same in all files of a table, whatever their events: all types, and the columns within `row`.

    `indexes` is the content of all of these, `index_streams` and `data_streams` are how the stripe's footer tells of
    their streams, `encodings` how it tells of all columns.
    """

    types: Sequence[bytes]
    encodings: bytes
    statistics: Sequence[bytes]
    indexes: bytes
    index_streams: bytes
    data_streams: bytes


@lru_cache(maxsize=64)
def _inner(columns: tuple[tuple[str, str], ...], groups: int, compression: str) -> _Inner:
    """That of a table, for files of so many groups of rows; to make it takes half of the time of a small file."""
    types = acid_types(columns)
    kinds = [number_fields(of)[1] for of in types]
    nothing = section(_index([(_NOWHERE, _counted(0))] * groups), compression, BLOCK_BYTES)
    inner = range(_ROW + 1, len(kinds))
    return _Inner(
        types=types,
        encodings=b"".join(
            bytes_field(2, number_field(1, _DIRECT if kind in _PLAIN_KINDS else _DIRECT_V2)) for kind in kinds
        ),
        statistics=[_counted(0)] * len(inner),
        indexes=nothing * len(inner),
        index_streams=_told((_ROW_INDEX, column, nothing) for column in inner),
        data_streams=_told((stream, column, b"") for column in inner for stream in _STREAMS[kinds[column]]),
    )


_Stream = tuple[int, int, bytes]
"""The kind of a stream, its column, its content."""


def _told(streams: Iterable[_Stream]) -> bytes:
    """What the stripe's footer says of streams."""
    return b"".join(
        bytes_field(1, number_field(1, kind) + number_field(2, column) + number_field(3, len(content)))
        for kind, column, content in streams
    )


def _file(
    inner: _Inner,
    index: Sequence[_Stream],
    data: Sequence[_Stream],
    statistics: Sequence[bytes],
    properties: dict[str, bytes],
    count: int,
    compression: str,
) -> bytes:
    """The file of one stripe; `index` and `data` are the streams of the columns up to `row` itself."""
    told = [_told(index), inner.index_streams, _told(data), inner.data_streams, inner.encodings, bytes_field(3, b"UTC")]
    stripe_footer = section(b"".join(told), compression, BLOCK_BYTES)
    of_index = b"".join([*(content for *_, content in index), inner.indexes])
    of_data = b"".join(content for *_, content in data)
    stripe = (len(MAGIC), len(of_index), len(of_data), len(stripe_footer), count)
    return orc_file(
        inner.types,
        properties.items(),
        statistics,
        rows=count,
        body=of_index + of_data + stripe_footer,
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


def _index(groups: Iterable[tuple[bytes, bytes]]) -> bytes:
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
        return _even(_RUN, bounds[0], 0) * whole + (_even(rest, bounds[0], 0) if rest else b"")
    return b"".join(_run(values[at : at + _RUN]) for at in range(0, len(values), _RUN))


def _even(count: int, first: int, step: int) -> bytes:
    """So many numbers that ascend by one step."""
    return _header(_ASCENDING, 0, count) + signed_varint(first) + signed_varint(step)


def _run(values: Sequence[int]) -> bytes:
    """Values that ascend as the differences between them, others as they are, in as many bytes as the largest needs."""
    if isinstance(values, Stretch):
        return _even(len(values), values.first, values.step)
    steps = list(map(sub, values[1:], values))
    least, greatest = min(steps, default=0), max(steps, default=0)
    if least < 0:
        plain = list(map(unzigzag, values))
        width = _width(max(plain))
        return _header(_AS_THEY_ARE, width, len(values)) + _packed(plain, width)
    width = 0 if least == greatest else _width(max(steps[1:]))
    first = signed_varint(values[0]) + signed_varint(steps[0] if steps else 0)
    return _header(_ASCENDING, width, len(values)) + first + (_packed(steps[1:], width) if width else b"")


def _header(kind: int, width: int, count: int) -> bytes:
    """How a run of so many values begins, each of which takes so many bytes."""
    return bytes([kind << 6 | _WIDTHS[width] << 1 | count - 1 >> 8, count - 1 & 255])


def _width(value: int) -> int:
    """How many bytes a number takes, at least one."""
    return max(1, -(-value.bit_length() // 8))


def _packed(values: Sequence[int], width: int) -> bytes:
    if width in _LETTERS:
        return struct.pack(f">{len(values)}{_LETTERS[width]}", *values)
    return b"".join(value.to_bytes(width, "big") for value in values)


def _zeros(count: int) -> bytes:
    """As many bytes 0, in the run length encoding of bytes: rows of which none is present."""
    runs, rest = divmod(count, _LONGEST_REPEAT)
    whole = bytes([_LONGEST_REPEAT - _SHORTEST_REPEAT, 0]) * runs
    if rest >= _SHORTEST_REPEAT:
        return whole + bytes([rest - _SHORTEST_REPEAT, 0])
    return whole + (bytes([256 - rest]) + bytes(rest) if rest else b"")
