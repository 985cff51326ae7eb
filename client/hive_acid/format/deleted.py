"""Deleted rows as bits: what a reader needs to know of delete events to leave rows out without a join.

Rows of one write and bucket are numbered from 0, so those deleted are a set of small numbers. It is kept in blocks of
`BLOCK_ROWS` bits, of which only those are there in which something is deleted.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

BLOCK_BITS = 12
BLOCK_ROWS = 1 << BLOCK_BITS
WORDS_PER_BLOCK = BLOCK_ROWS // 64
_WORDS = struct.Struct(f"<{WORDS_PER_BLOCK}q")

_NO_ROWS = b"0" * BLOCK_ROWS
_MANY_ROWS = 16
"""From so many rows of a block on their bits are made all at once."""

_SLOTS = {
    1 << 6: (1250050201, 223609957),
    1 << 10: (503355065, 1964091789),
    1 << 14: (1841295843, 1124630449),
    1 << 16: (1150407115, 488153615),
}
"""How many slots there may be, each with two factors that suit writes one after the other into a few buckets.

They are the best of some thousands: 56 sources have 64 slots of their own by them, 868 have 1024.
"""

_LISTS = (1 << 4, 1 << 7, 1 << 10, 1 << 13, 1 << 16, 1 << 19)
"""How many blocks there may be in a list. Numbers are few, since they are part of the code that a reader compiles."""

WRITE_ID_MASK, BUCKET_MASK, SLOT_SHIFT = (1 << 24) - 1, (1 << 28) - 1, 20
"""What of a source its slot follows from. Products with factors of 31 bits have less than 63, as Spark insists."""

PACKED_WRITE_ID_BITS, PACKED_BUCKET_BITS = 32, 31
_FACTOR_BITS = 31
_TRIES = 100
"""How many other factors are tried before sources get more slots."""

Source = tuple[int, int]
"""A write id and a bucket property: where rows that are numbered together come from."""

Blocks = Mapping[int, int]
"""The number of a block to its bits, of which the lowest is its first row."""


Run = tuple[int, int, Sequence[int]]
"""Rows of one source: the write id, the bucket property, and the row ids."""


def blocks_of(runs: Iterable[Run]) -> dict[Source, dict[int, int]]:
    """The blocks of the rows of `runs`, of which several may be of one source."""
    found: dict[Source, dict[int, int]] = {}
    for write_id, bucket, row_ids in runs:
        blocks = found.setdefault((write_id, bucket), {})
        ordered = sorted(row_ids)
        begin = 0
        while begin < len(ordered):
            number = ordered[begin] >> BLOCK_BITS
            end = bisect_left(ordered, number + 1 << BLOCK_BITS, begin)
            blocks[number] = blocks.get(number, 0) | _bits(ordered[begin:end])
            begin = end
    return found


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


def holds(deleted: Mapping[Source, Blocks], write_id: int, bucket: int, row_id: int) -> bool:
    """Whether a row is among those that are deleted."""
    blocks = deleted.get((write_id, bucket))
    bits = blocks.get(row_id >> BLOCK_BITS) if blocks else None
    return bits is not None and bool(bits >> (row_id & BLOCK_ROWS - 1) & 1)


def merged(parts: Iterable[Mapping[Source, Blocks]]) -> dict[Source, dict[int, int]]:
    """All that is deleted by some of `parts`."""
    found: dict[Source, dict[int, int]] = {}
    for part in parts:
        for source, blocks in part.items():
            known = found.setdefault(source, {})
            for number, bits in blocks.items():
                known[number] = known.get(number, 0) | bits
    return found


@dataclass(frozen=True, slots=True)
class Layout:
    """Blocks as one array, `words`, in which a row's bit is found by four look-ups.

    1. At the slot of the row's source: the source, `packed`, if it has deleted rows.
    2. `slots` behind that: where the list of its blocks begins.
    3. There, at the number of the row's block, or at `longest` if that is less: where the block's words begin.
    4. The word of the row. A block in which nothing is deleted has words as well, common ones, which are zero.

    The slot follows from the two factors, which are chosen so that each source has a slot of its own. All numbers but
    `words` are the same for most tables, and as a table grows.
    """

    slots: int
    write_id_factor: int
    bucket_factor: int
    longest: int
    words: tuple[int, ...]

    def has(self, write_id: int, bucket: int, row_id: int) -> bool:
        """Whether a row is deleted: what the look-ups of a reader come to."""
        slot = _slot((write_id, bucket), self.slots, self.write_id_factor, self.bucket_factor)
        if write_id >> PACKED_WRITE_ID_BITS or self.words[slot] != packed((write_id, bucket)):
            return False
        blocks_at = self.words[self.slots + slot]
        at = self.words[blocks_at + min(row_id >> BLOCK_BITS, self.longest)]
        return bool(self.words[at + (row_id >> 6 & WORDS_PER_BLOCK - 1)] >> (row_id & 63) & 1)


def packed(source: Source) -> int:
    """A source as one number."""
    write_id, bucket = source
    return write_id << PACKED_BUCKET_BITS | bucket


def layout_of(deleted: Mapping[Source, Blocks], most_words: int) -> Layout | None:
    """The layout of some blocks; None if it has more than `most_words`, or numbers that no event can have."""
    if any(min(blocks) < 0 for blocks in deleted.values()):
        return None
    if any(write_id >> PACKED_WRITE_ID_BITS or bucket >> PACKED_BUCKET_BITS for write_id, bucket in deleted):
        return None
    least = max((max(blocks) + 1 for blocks in deleted.values()), default=0)
    longest = next((length for length in _LISTS if length >= least), least)
    found = _factors(deleted, longest, most_words)
    if found is None:
        longest = least
        found = _factors(deleted, longest, most_words)
    if found is None:
        return None
    slots, write_id_factor, bucket_factor = found
    nothing_at = 2 * slots
    words = [-1] * slots + [0] * (slots + WORDS_PER_BLOCK)
    for source, of_source in deleted.items():
        slot = _slot(source, slots, write_id_factor, bucket_factor)
        words[slot], words[slots + slot] = packed(source), len(words)
        blocks_at = len(words)
        words += [nothing_at] * (longest + 1)
        for number, bits in of_source.items():
            words[blocks_at + number] = len(words)
            words += _WORDS.unpack(bits.to_bytes(BLOCK_ROWS // 8, "little"))
    return Layout(slots, write_id_factor, bucket_factor, longest, tuple(words))


def _slot(source: Source, slots: int, write_id_factor: int, bucket_factor: int) -> int:
    write_id, bucket = source
    mixed = (write_id & WRITE_ID_MASK) * write_id_factor ^ (bucket & BUCKET_MASK) * bucket_factor
    return mixed >> SLOT_SHIFT & slots - 1


def _factors(deleted: Mapping[Source, Blocks], longest: int, most_words: int) -> tuple[int, int, int] | None:
    """A number of slots and two factors by which each source has a slot of its own, and all has room."""
    sources = list(deleted)
    blocks = sum(map(len, deleted.values()))
    left = most_words - len(sources) * (longest + 1) - WORDS_PER_BLOCK * (blocks + 1)
    sizes = [slots for slots in _SLOTS if len(sources) <= slots and 2 * slots <= left]
    for slots in sizes:
        if _are_apart(sources, slots, *_SLOTS[slots]):
            return slots, *_SLOTS[slots]
    random = Random(1)
    for slots in sizes:
        for _ in range(_TRIES):
            factors = random.getrandbits(_FACTOR_BITS) | 1, random.getrandbits(_FACTOR_BITS) | 1
            if _are_apart(sources, slots, *factors):
                return slots, *factors
    return None


def _are_apart(sources: Sequence[Source], slots: int, write_id_factor: int, bucket_factor: int) -> bool:
    taken: set[int] = set()
    for source in sources:
        slot = _slot(source, slots, write_id_factor, bucket_factor)
        if slot in taken:
            return False
        taken.add(slot)
    return True
