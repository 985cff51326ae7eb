"""Sketches of distinct values, in the two forms in which Hive keeps them as bit vectors.

``HLL`` is HyperLogLog: a header byte with the number of index bits and the packing, the estimate as a variable-length
number, then either the registers, bit-packed from the most significant bit on, or, while few are set, a list of
(25-bit index, run length) pairs, each as its difference to the one before. ``FM`` are Flajolet and Martin's bit
vectors, four bytes each, the least significant first.

Packed registers are merged without a loop over them: one integer holds them all, a byte each, and the larger of two is
chosen for all bytes at once. The estimate from registers is that of Ertl, "New cardinality estimation algorithms for
HyperLogLog sketches" (2017), which has no bias that a table would have to correct; few set registers are counted as
Hive counts them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Protocol, Self

_HLL, _FM = b"HLL", b"FM"
_HASH_BITS = 64
_SPARSE_INDEX_BITS = 25
_RUN_BITS = 6
_UNPACKED = 7
_FM_BITS = 31
_FM_FACTOR = 0.77351


class SketchError(ValueError):
    """The bytes are not a sketch, or not one that is merged with the other."""


class Sketch(Protocol):
    """Distinct values of some rows."""

    def merge(self, other: Self) -> Self:
        """The sketch of the rows of both. Raises SketchError if they do not go together."""

    def estimate(self) -> int:
        """How many distinct values; at least 1, as Hive has it."""

    def encode(self) -> bytes:
        """The form that is stored."""


def decode(data: bytes) -> Sketch:
    """The sketch in a bit vector. Raises SketchError for any other bytes, such as the text form of Hive 2.3."""
    try:
        if data.startswith(_HLL):
            return HyperLogLog.decode(data)
        if data.startswith(_FM):
            return FlajoletMartin.decode(data)
    except (IndexError, OverflowError) as error:
        raise SketchError(f"a bit vector of {len(data)} bytes is cut off or damaged") from error
    raise SketchError(f"a bit vector that begins with {data[:4]!r} is of no known form")


class SketchUnion:
    """The union of sketches that come one by one; None in memory but the union."""

    def __init__(self) -> None:
        self._union: Sketch | None = None
        self._is_complete = True

    def add(self, data: bytes | None) -> bool:
        """Add a bit vector; False if it cannot be, which leaves the union unknown for good."""
        if self._is_complete:
            try:
                sketch = decode(data or b"")
                self._union = sketch if self._union is None else _merged(self._union, sketch)
            except SketchError:
                self._is_complete = False
        return self._is_complete

    @property
    def sketch(self) -> Sketch | None:
        """The union; None if nothing was added, or something that could not be."""
        return self._union if self._is_complete else None


def _merged(one: Sketch, other: Sketch) -> Sketch:
    if type(one) is not type(other):
        raise SketchError("sketches of two forms")
    return one.merge(other)


@dataclass(frozen=True)
class HyperLogLog:
    """Registers by the lowest `index_bits` of a hash, each with the longest run of zeros above them.

    `pairs` (index to run) stands for the registers as long as there are few; `registers` holds a byte for each.
    """

    index_bits: int
    pairs: dict[int, int] | None
    registers: bytes = b""

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Raises SketchError, IndexError for bytes that end too early."""
        index_bits, packing = data[3] >> 4, data[3] & 7
        if index_bits < 4:
            raise SketchError(f"HyperLogLog with {index_bits} index bits")
        _, at = _read_number(data, 4)  # the estimate, which follows from the rest
        size = 1 << index_bits
        if packing == 0:
            return cls(index_bits, _read_pairs(data, at))
        if packing == _UNPACKED:
            registers = data[at : at + size]
        else:
            packed = data[at : at + size * packing // 8]
            if len(packed) < size * packing // 8:
                raise IndexError
            registers = _unpacked(int.from_bytes(packed), size, packing).to_bytes(size)
        if len(registers) < size or max(registers) > _HASH_BITS:
            raise SketchError("HyperLogLog registers are damaged")
        return cls(index_bits, None, registers)

    def merge(self, other: Self) -> Self:
        if self.index_bits != other.index_bits:
            fewer = min(self.index_bits, other.index_bits)
            return self._with(fewer).merge(other._with(fewer))
        if self.pairs is not None and other.pairs is not None:
            pairs = dict(self.pairs)
            for index, run in other.pairs.items():
                pairs[index] = max(run, pairs.get(index, 0))
            found = type(self)(self.index_bits, pairs)
            # Beyond this the registers take less room; Hive switches at the same number.
            return found if len(pairs) <= (1 << self.index_bits) * 6 // 8 // 5 else found._dense()
        one, another = self._dense().registers, other._dense().registers
        return type(self)(self.index_bits, None, _larger(one, another))

    def estimate(self) -> int:
        if self.pairs is not None:
            size = 1 << _SPARSE_INDEX_BITS
            return max(1, round(size * math.log(size / (size - len(self.pairs)))))
        size = 1 << self.index_bits
        longest = _HASH_BITS - self.index_bits
        counts = Counter(self.registers)
        total = size * _tau(1 - counts[longest + 1] / size)
        for run in range(longest, 0, -1):
            total = (total + counts[run]) / 2
        total += size * _sigma(counts[0] / size)
        return max(1, round(size * size / (2 * math.log(2) * total)))

    def encode(self) -> bytes:
        if self.pairs is not None:
            words = sorted(index << _RUN_BITS | run for index, run in self.pairs.items())
            steps = [after - before for before, after in pairwise(words)]
            body = b"".join(map(_number, [len(words), *words[:1], *steps]))
            return _HLL + bytes([self.index_bits << 4]) + _number(self.estimate()) + body
        width = max(1, max(self.registers).bit_length())
        if width > _RUN_BITS:
            header, body = _UNPACKED, self.registers
        else:
            bits = "".join(f"{register:0{width}b}" for register in self.registers)
            header, body = width, int(bits, 2).to_bytes(len(bits) // 8)
        return _HLL + bytes([self.index_bits << 4 | header]) + _number(self.estimate()) + body

    def _dense(self) -> Self:
        """The same with registers."""
        if self.pairs is None:
            return self
        registers = bytearray(1 << self.index_bits)
        for index, run in self.pairs.items():
            index &= len(registers) - 1
            registers[index] = max(run, registers[index])
        return type(self)(self.index_bits, None, bytes(registers))

    def _with(self, index_bits: int) -> Self:
        """The same with fewer index bits: the ones that are dropped now count for the runs."""
        dropped = self.index_bits - index_bits
        if dropped == 0:
            return self
        registers = bytearray(1 << index_bits)
        for index, run in self._set():
            rest = (index & (1 << self.index_bits) - 1) >> index_bits
            run = (rest & -rest).bit_length() if rest else dropped + run
            index &= len(registers) - 1
            registers[index] = max(run, registers[index])
        return type(self)(index_bits, None, bytes(registers))

    def _set(self) -> Iterator[tuple[int, int]]:
        if self.pairs is not None:
            return iter(self.pairs.items())
        return ((index, run) for index, run in enumerate(self.registers) if run)


@dataclass(frozen=True)
class FlajoletMartin:
    """`vectors` bit vectors of 31 bits, in one integer; a bit set says that some hash ended in that many zeros."""

    vectors: int
    bits: int

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """Raises SketchError."""
        vectors = int.from_bytes(data[2:4], "little")
        if vectors == 0 or len(data) < 4 + 4 * vectors:
            raise SketchError("FM bit vectors are cut off")
        return cls(vectors, int.from_bytes(data[4 : 4 + 4 * vectors], "little"))

    def merge(self, other: Self) -> Self:
        if self.vectors != other.vectors:
            raise SketchError(f"FM sketches of {self.vectors} and of {other.vectors} vectors")
        return type(self)(self.vectors, self.bits | other.bits)

    def estimate(self) -> int:
        ends = 0
        for number in range(self.vectors):
            vector = self.bits >> 32 * number & (1 << _FM_BITS) - 1
            ends += (~vector & vector + 1).bit_length() - 1
        return max(1, int(2 ** (ends / self.vectors) / _FM_FACTOR))

    def encode(self) -> bytes:
        return _FM + self.vectors.to_bytes(2, "little") + self.bits.to_bytes(4 * self.vectors, "little")


def _read_pairs(data: bytes, at: int) -> dict[int, int]:
    count, at = _read_number(data, at)
    if count > len(data):
        raise SketchError(f"{count} HyperLogLog entries in {len(data)} bytes")
    pairs: dict[int, int] = {}
    word = 0
    for _ in range(count):
        difference, at = _read_number(data, at)  # Java's ints: a negative one wraps round
        word = word + difference & 0xFFFFFFFF
        index, run = word >> _RUN_BITS, word & (1 << _RUN_BITS) - 1
        if index >> _SPARSE_INDEX_BITS:
            raise SketchError("a HyperLogLog entry is damaged")
        pairs[index] = max(run, pairs.get(index, 0))
    return pairs


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > _HASH_BITS:
            raise SketchError("a number in a bit vector is too long")


def _number(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(0x80 | value & 0x7F)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _unpacked(packed: int, size: int, width: int) -> int:
    """`size` fields of `width` bits as fields of a byte: in each step all blocks are cut in two, moved apart."""
    for half, low in _halves(size, width):
        packed = packed & low | (packed & low << half * width) << half * (8 - width)
    return packed


@lru_cache(maxsize=64)
def _halves(size: int, width: int) -> list[tuple[int, int]]:
    """For each step of `_unpacked`: the fields of half a block, and a mask of the lower half of every block."""
    steps = []
    half = size // 2
    while half:
        block = (1 << half * width) - 1
        steps.append((half, sum(block << start * 8 for start in range(0, size, 2 * half))))
        half //= 2
    return steps


def _larger(one: bytes, other: bytes) -> bytes:
    """The larger byte at each place; all are below 128, so the highest bit of each is free to hold a comparison."""
    size = len(one)
    first, second, high = int.from_bytes(one), int.from_bytes(other), _high_bits(size)
    wins = (first | high) - second & high
    return (second ^ (first ^ second) & wins - (wins >> 7)).to_bytes(size)


@lru_cache(maxsize=16)
def _high_bits(size: int) -> int:
    return int.from_bytes(b"\x80" * size)


def _sigma(share: float) -> float:
    if share == 1:
        return math.inf
    factor, total, last = 1.0, share, -1.0
    while total != last:
        share, last = share * share, total
        total += share * factor
        factor += factor
    return total


def _tau(share: float) -> float:
    if share in (0, 1):
        return 0.0
    factor, total, last = 1.0, 1 - share, -1.0
    while total != last:
        share, last = math.sqrt(share), total
        factor /= 2
        total -= (1 - share) ** 2 * factor
    return total / 3
