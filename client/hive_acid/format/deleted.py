"""Deleted rows as bits: what a reader needs to know of delete events to leave rows out without a join.

Rows of one write and bucket are numbered from 0, so those deleted are a set of small numbers. It is kept in blocks of
`BLOCK_ROWS` bits, of which only those are there in which something is deleted.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hive_acid.format.hashing import spark_hash, spark_hash_of_long

BLOCK_BITS = 12
BLOCK_ROWS = 1 << BLOCK_BITS
WORDS_PER_BLOCK = BLOCK_ROWS // 64
_WORDS = struct.Struct(f"<{WORDS_PER_BLOCK}q")

_NO_ROWS = b"0" * BLOCK_ROWS
_MANY_ROWS = 16
"""From so many rows of a block on their bits are made all at once."""

_SLOTS = (1 << 6, 1 << 10, 1 << 13)
"""How many slots a layout may have. Numbers are few, since they are part of the code that a reader compiles."""

_LISTS = (1 << 4, 1 << 7, 1 << 10, 1 << 13, 1 << 16, 1 << 19)
"""How many blocks there may be in a list: few numbers for the same reason."""

_SLOTS_PER_SOURCE = 2
_SLOTS_PER_GROUP = 2
SLOT_SHIFT = 12
"""The lowest bits of a source's hash are its group, those from here on its slot."""

_TRIES = 20
"""How many other seeds are tried before sources get more slots."""

PACKED_WRITE_ID_BITS, PACKED_BUCKET_BITS = 32, 31
POSITION_BITS = 24
"""A position and, above it, the number of a place are one number."""

NO_PLACE = ""
"""The place of rows that are all of one partition; else it is some text."""

Source = tuple[int, int]
"""A write id and a bucket property: where rows of one partition that are numbered together come from."""

_Key = tuple[int, int, int]
"""The number of a place, and a source."""

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
    """Blocks as one array, `words`, in which a row's bit is found by five look-ups.

    Sources have a perfect hash: they fall into groups, and a number for each group leads each source to a slot of its
    own. One after the other there are

    1. the numbers of the groups;
    2. at each slot its source, `packed`, or -1;
    3. at each slot where the list of the source's blocks begins, and above `POSITION_BITS` the number of its place.

    In a list there is at the number of a block, or at `longest` if that is less, where the block's words begin. A block
    in which nothing is deleted has words as well, common ones, which are zero. All numbers here but the words are the
    same for most tables, and as a table grows.
    """

    slots: int
    seed: int
    longest: int
    has_places: bool
    words: tuple[int, ...]

    @property
    def groups(self) -> int:
        """How many groups there are: a power of two, as `slots` is."""
        return self.slots // _SLOTS_PER_GROUP

    @property
    def lists_at(self) -> int:
        """Where it is said where lists begin."""
        return self.groups + self.slots

    def has(self, write_id: int, bucket: int, row_id: int, place: str = NO_PLACE) -> bool:
        """Whether a row is deleted: what the look-ups of a reader come to."""
        number = number_of(place)
        group, start = _hashed((number, write_id, bucket), self.slots, self.seed)
        slot = start ^ self.words[group]
        if write_id >> PACKED_WRITE_ID_BITS or self.words[self.groups + slot] != packed((write_id, bucket)):
            return False
        found = self.words[self.lists_at + slot]
        if self.has_places and found >> POSITION_BITS != number:
            return False
        at = self.words[(found & (1 << POSITION_BITS) - 1) + min(row_id >> BLOCK_BITS, self.longest)]
        return bool(self.words[at + (row_id >> 6 & WORDS_PER_BLOCK - 1)] >> (row_id & 63) & 1)


def packed(source: Source) -> int:
    """A source as one number."""
    write_id, bucket = source
    return write_id << PACKED_BUCKET_BITS | bucket


def number_of(place: str) -> int:
    """A number of 32 bits, signed, that a reader can tell from a row: Spark's hash of a text for its partition."""
    return spark_hash([place] if place else [])


def layout_of(deleted: Mapping[str, Mapping[Source, Blocks]], most_words: int) -> Layout | None:
    """The layout of the blocks of some places, all with a number of their own, or of `NO_PLACE` alone.

    None if it has more than `most_words`, or numbers that no event can have.
    """
    keyed = {
        (number_of(place), *source): blocks
        for place, of_place in deleted.items()
        for source, blocks in of_place.items()
    }
    if any(min(blocks) < 0 for blocks in keyed.values()):
        return None
    if any(write_id >> PACKED_WRITE_ID_BITS or bucket >> PACKED_BUCKET_BITS for _, write_id, bucket in keyed):
        return None
    has_places = NO_PLACE not in deleted
    least = max((max(blocks) + 1 for blocks in keyed.values()), default=0)
    longest = next((length for length in _LISTS if length >= least), least)
    most_words = min(most_words, 1 << POSITION_BITS)
    return _laid_out(keyed, longest, most_words, has_places=has_places) or _laid_out(
        keyed, least, most_words, has_places=has_places
    )


def _laid_out(keyed: Mapping[_Key, Blocks], longest: int, most_words: int, *, has_places: bool) -> Layout | None:
    """The layout with lists of `longest`, if it has no more than `most_words`."""
    left = most_words - (longest + 1) * len(keyed) - WORDS_PER_BLOCK * (sum(map(len, keyed.values())) + 1)
    found = _perfect_hash(list(keyed), left)
    if found is None:
        return None
    seed, groups, slot_of = found
    slots = len(groups) * _SLOTS_PER_GROUP
    nothing_at = len(groups) + 2 * slots
    words = [*groups, *[-1] * slots, *[0] * (slots + WORDS_PER_BLOCK)]
    for key, slot in slot_of.items():
        number, *source = key
        blocks_at = len(words)
        words[len(groups) + slot] = packed((source[0], source[1]))
        words[len(groups) + slots + slot] = (number << POSITION_BITS if has_places else 0) | blocks_at
        words += [nothing_at] * (longest + 1)
        for block, bits in keyed[key].items():
            words[blocks_at + block] = len(words)
            words += _WORDS.unpack(bits.to_bytes(BLOCK_ROWS // 8, "little"))
    return Layout(slots, seed, longest, has_places, tuple(words))


def _hashed(key: _Key, slots: int, seed: int) -> tuple[int, int]:
    """The group of a source, and the slot at which it would be if its group's number were zero."""
    number, write_id, bucket = key
    mixed = spark_hash((bucket, seed), spark_hash_of_long(write_id, number))
    return mixed & slots // _SLOTS_PER_GROUP - 1, mixed >> SLOT_SHIFT & slots - 1


def _perfect_hash(keys: Sequence[_Key], most_words: int) -> tuple[int, list[int], dict[_Key, int]] | None:
    """A seed, the number of each group, and the slot of each key; None if there is no room."""
    for slots in _SLOTS:
        if slots < _SLOTS_PER_SOURCE * len(keys) or 2 * slots + slots // _SLOTS_PER_GROUP > most_words:
            continue
        for seed in range(_TRIES):
            found = _apart(keys, slots, seed)
            if found is not None:
                return seed, *found
    return None


def _apart(keys: Sequence[_Key], slots: int, seed: int) -> tuple[list[int], dict[_Key, int]] | None:
    """The number of each group, and the slot of each key; None if there are no such numbers."""
    members: dict[int, list[tuple[int, _Key]]] = {}
    for key in keys:
        group, start = _hashed(key, slots, seed)
        members.setdefault(group, []).append((start, key))
    groups = [0] * (slots // _SLOTS_PER_GROUP)
    slot_of: dict[_Key, int] = {}
    taken: set[int] = set()
    # The largest first, while there is most room.
    for group, of_group in sorted(members.items(), key=lambda found: -len(found[1])):
        starts = {start for start, _ in of_group}
        if len(starts) < len(of_group):
            return None
        number = next((number for number in range(slots) if taken.isdisjoint(start ^ number for start in starts)), None)
        if number is None:
            return None
        groups[group] = number
        for start, key in of_group:
            slot_of[key] = start ^ number
            taken.add(start ^ number)
    return groups, slot_of
