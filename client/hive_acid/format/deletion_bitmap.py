"""The deletion bitmap: what a reader needs to know of delete events to leave rows out without a join.

Rows of one write and bucket are numbered from 0, so those deleted are a set of small numbers. It is kept in blocks of
`BLOCK_ROWS` bits, of which only those are there in which something is deleted.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hive_acid.format.hashing import spark_hash

BLOCK_BITS = 12
BLOCK_ROWS = 1 << BLOCK_BITS
WORDS_PER_BLOCK = BLOCK_ROWS // 64
_WORDS = struct.Struct(f"<{WORDS_PER_BLOCK}q")

_NO_ROWS = b"0" * BLOCK_ROWS
_MANY_ROWS = 150
"""From so many rows of a block on their bits are made all at once."""

_SLOTS = (1 << 8, 1 << 13, 1 << 18)
"""How many slots there may be for places. Numbers are few, since they are part of the code that a reader compiles."""

_TRIES = 20
"""How many other seeds are tried before places get more slots."""

MOST_BLOCKS = 1 << 20
"""So many blocks a source may have, deleted or not: four thousand million rows."""

MOST_DIRECT_WRITE_ID = (1 << 10) - 1
LOW_WRITE_ID_BITS = 6
MOST_WRITE_ID_BITS = 32
_BUCKET_BITS = 31
HALF_BUCKET_BITS = 16
BUCKET_VERSION = 1 << 13
"""What the upper half of a bucket property is for the bucket 0 (acid-format.md §3.2)."""

NO_PLACE = ""
"""The place of rows that are all of one partition; else it is some text."""

RowSource = tuple[int, int]
"""A write id and a bucket property: where rows of one partition that are numbered together come from."""

DeletionBitmap = Mapping[int, int]
"""The deleted rows of one source: the number of a block to its bits, of which the lowest is its first row."""

Run = tuple[int, int, Sequence[int]]
"""Rows of one source: the write id, the bucket property, and the row ids."""

RowRange = tuple[int, int, range]
"""A `Run` of rows that are numbered one after the other."""


def bitmaps_of(runs: Iterable[Run]) -> dict[RowSource, dict[int, int]]:
    """The bitmaps of the rows of `runs`, of which several may be of one source."""
    found: dict[RowSource, dict[int, int]] = {}
    for write_id, bucket, row_ids in runs:
        blocks = found.setdefault((write_id, bucket), {})
        if isinstance(row_ids, range):
            for number, bits in _blocks(row_ids.start, row_ids.stop - 1):
                blocks[number] = blocks.get(number, 0) | bits
            continue
        ordered = sorted(row_ids)
        begin = 0
        while begin < len(ordered):
            number = ordered[begin] >> BLOCK_BITS
            end = bisect_left(ordered, number + 1 << BLOCK_BITS, begin)
            blocks[number] = blocks.get(number, 0) | _bits(ordered[begin:end])
            begin = end
    return found


def _blocks(first: int, last: int) -> Iterator[tuple[int, int]]:
    """The blocks of the rows from `first` to `last`, and their bits."""
    for number in range(first >> BLOCK_BITS, (last >> BLOCK_BITS) + 1) if first <= last else ():
        begin = number << BLOCK_BITS
        low, high = max(first - begin, 0), min(last - begin, BLOCK_ROWS - 1)
        yield number, (1 << high - low + 1) - 1 << low


def _bits(row_ids: Sequence[int]) -> int:
    """The bits of some rows of one block."""
    if len(row_ids) < _MANY_ROWS:
        bits = 0
        for row_id in row_ids:
            bits |= 1 << (row_id & BLOCK_ROWS - 1)
        return bits
    # The digits of the number, which begin with the highest.
    digits = bytearray(_NO_ROWS)
    for row_id in row_ids:
        digits[~row_id & BLOCK_ROWS - 1] = ord("1")
    return int(digits, 2)


def places_left(
    deleted: Mapping[RowSource, DeletionBitmap],
    write_ids: Sequence[int],
    buckets: Sequence[int],
    row_ids: Sequence[int],
) -> list[int]:
    """At which places of three columns the rows are that are not deleted; quickest for rows in order."""
    left = []
    last: tuple[int, int, int] | None = None
    bits = 0
    for place, (write_id, bucket, row_id) in enumerate(zip(write_ids, buckets, row_ids, strict=True)):
        block = write_id, bucket, row_id >> BLOCK_BITS
        if block != last:
            bits = deleted.get(block[:2], {}).get(block[2], 0)
            last = block
        if not bits >> (row_id & BLOCK_ROWS - 1) & 1:
            left.append(place)
    return left


def merged(parts: Iterable[Mapping[RowSource, DeletionBitmap]]) -> dict[RowSource, dict[int, int]]:
    """All that is deleted by some of `parts`."""
    found: dict[RowSource, dict[int, int]] = {}
    for part in parts:
        for source, blocks in part.items():
            known = found.setdefault(source, {})
            for number, bits in blocks.items():
                known[number] = known.get(number, 0) | bits
    return found


def rows_within(bitmap: DeletionBitmap, first: int, last: int) -> int:
    """How many of the deleted rows of a source have ids from `first` to `last`, both inclusive."""
    return sum((bits & bitmap.get(number, 0)).bit_count() for number, bits in _blocks(first, last))


def runs_left(bitmap: DeletionBitmap, first: int, last: int) -> list[range]:
    """The rows of a source from `first` to `last`, both inclusive, that are not deleted: those next to each other."""
    found: list[range] = []
    begin = first
    for number, within in _blocks(first, last):
        at, gone = number << BLOCK_BITS, within & bitmap.get(number, 0)
        while gone:
            low = (gone & -gone).bit_length() - 1
            if at + low > begin:
                found.append(range(begin, at + low))
            # Counting up at the lowest bit turns all that follow it without a gap to 0, and the next one to 1.
            beyond = gone + (1 << low)
            begin = at + (beyond & -beyond).bit_length() - 1
            gone &= beyond
    if begin <= last:
        found.append(range(begin, last + 1))
    return found


def without_runs(
    bitmaps: Mapping[RowSource, DeletionBitmap], runs: Iterable[RowRange]
) -> dict[RowSource, DeletionBitmap]:
    """Bitmaps less the rows of `runs`, which are read by nobody; a source of which nothing is left is not there."""
    found = {source: dict(blocks) for source, blocks in bitmaps.items()}
    for write_id, bucket, row_ids in runs:
        blocks = found.get((write_id, bucket), {})
        for number, bits in _blocks(row_ids.start, row_ids.stop - 1):
            if left := blocks.get(number, 0) & ~bits:
                blocks[number] = left
            else:
                blocks.pop(number, None)
    return {source: blocks for source, blocks in found.items() if blocks}


_Node = Mapping[int, Any] | Sequence[int]
"""Of a tree that is not laid out yet: the next nodes by their indices, or the words of a block."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Bitmaps as a tree of arrays, in which a row's bit is found by one index after another; null is an empty subtree.

    The levels are those of `path`, then the blocks of a source, then the words of a block. Each index follows from a
    row alone, so the whole is one expression in which nothing stands twice, and its numbers are the same for most
    tables, and as a table grows.

    `slots` and `seed` say where a place is found, whatever other place of the same scan is asked for; without slots all
    is of one place. With `high_write_ids` a write id takes two levels, with `statements` a bucket property does.
    """

    slots: int
    seed: int
    high_write_ids: bool
    statements: bool
    tree: Sequence[Any]

    def has(self, write_id: int, bucket: int, row_id: int, place: str = NO_PLACE) -> bool:
        """Whether a row is deleted: what the look-ups of a reader come to."""
        node: Any = self.tree
        for index in (*self.path(place, write_id, bucket), row_id >> BLOCK_BITS, row_id >> 6 & WORDS_PER_BLOCK - 1):
            node = node[index] if 0 <= index < len(node) else None
            if node is None:
                return False
        return bool(node >> (row_id & 63) & 1)

    @property
    def levels(self) -> int:
        """How many indices lead to a word."""
        return 4 + bool(self.slots) + self.high_write_ids + self.statements

    def path(self, place: str, write_id: int, bucket: int) -> tuple[int, ...]:
        """The indices that lead to the blocks of a source.

        The halves of a bucket property, of which the lower is the statement, are one index while that is always 0, and
        with another one it is an index that nothing has.
        """
        low_bits, low_half = (1 << LOW_WRITE_ID_BITS) - 1, (1 << HALF_BUCKET_BITS) - 1
        high, low = bucket >> HALF_BUCKET_BITS ^ BUCKET_VERSION, bucket & low_half
        return (
            *((_slot(place, self.slots, self.seed),) if self.slots else ()),
            *((write_id >> LOW_WRITE_ID_BITS, write_id & low_bits) if self.high_write_ids else (write_id,)),
            *((low, high) if self.statements else (high | low << HALF_BUCKET_BITS,)),
        )


def layout_of(
    deleted: Mapping[str, Mapping[RowSource, DeletionBitmap]], others: Sequence[str], most_words: int
) -> Layout | None:
    """The layout of the bitmaps of some places, or of `NO_PLACE` alone; the scan may also have rows of the `others`.

    None if it has more than `most_words`, numbers that no event can have, or places that cannot be told apart.
    """
    sources = [source for of_place in deleted.values() for source in of_place]
    blocks = [block for of_place in deleted.values() for found in of_place.values() for block in found]
    if any(min(source) < 0 or source[0] >> MOST_WRITE_ID_BITS or source[1] >> _BUCKET_BITS for source in sources):
        return None
    if blocks and (min(blocks) < 0 or max(blocks) >= MOST_BLOCKS):
        return None
    found = (0, 0) if NO_PLACE in deleted else _slots_and_seed(list(deleted), others)
    if found is None:
        return None
    slots, seed = found
    statements = any(bucket & (1 << HALF_BUCKET_BITS) - 1 for _, bucket in sources)
    are_high = max((write_id for write_id, _ in sources), default=0) > MOST_DIRECT_WRITE_ID
    for high_write_ids in (True,) if are_high else (False, True):
        shape = Layout(slots, seed, high_write_ids, statements, ())
        tree = _tree(shape, deleted)
        if _length(tree) <= most_words:
            return replace(shape, tree=_laid_out(tree))
    return None


def _tree(shape: Layout, deleted: Mapping[str, Mapping[RowSource, DeletionBitmap]]) -> Mapping[int, Any]:
    """The tree of a layout that has only its shape yet."""
    root: dict[int, Any] = {}
    for place, of_place in deleted.items():
        for source, blocks in of_place.items():
            node = root
            for index in shape.path(place, *source):
                node = node.setdefault(index, {})
            for block, bits in blocks.items():
                node[block] = _WORDS.unpack(bits.to_bytes(BLOCK_ROWS // 8, "little"))
    return root


def _slot(place: str, slots: int, seed: int) -> int:
    """Where a place is: by Spark's hash, which a reader has as well."""
    return spark_hash((place, seed)) & slots - 1


def _slots_and_seed(places: Sequence[str], others: Sequence[str]) -> tuple[int, int] | None:
    """By which each of `places` has a slot that it shares with no place, nor with `others`; None if there are none."""
    for slots in _SLOTS:
        for seed in range(_TRIES):
            taken = {_slot(place, slots, seed) for place in places}
            if len(taken) == len(places) and not any(_slot(place, slots, seed) in taken for place in others):
                return slots, seed
    return None


def _length(node: _Node) -> int:
    """How many elements the arrays of a tree have together."""
    if not isinstance(node, Mapping):
        return len(node)
    return max(node, default=-1) + 1 + sum(map(_length, node.values()))


def _laid_out(node: _Node) -> Sequence[Any]:
    """A tree as arrays."""
    if not isinstance(node, Mapping):
        return node
    found: list[Any] = [None] * (max(node, default=-1) + 1)
    for index, child in node.items():
        found[index] = _laid_out(child)
    return found
