"""Columns of ids as stretches: numbers that are all alike or go up by one, of which there may be millions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import overload


@dataclass(frozen=True, slots=True)
class Stretch(Sequence[int]):
    """`length` numbers from `first` on, each of which is `step` more than the one before."""

    first: int
    step: int
    length: int

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, at: int) -> int: ...

    @overload
    def __getitem__(self, at: slice) -> Stretch: ...

    def __getitem__(self, at: int | slice) -> int | Stretch:
        places = range(self.length)[at]
        if isinstance(places, int):
            return self.first + places * self.step
        return Stretch(self.first + places.start * self.step, self.step * places.step, len(places))

    def __iter__(self) -> Iterator[int]:
        return (self.first + at * self.step for at in range(self.length))


class Stretches(Sequence[int]):
    """Stretches one behind the other, none of which is empty."""

    __slots__ = ("_ends", "parts")

    def __init__(self, parts: Sequence[Stretch]) -> None:
        self.parts = parts
        self._ends = list(accumulate(part.length for part in parts))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, at: int) -> int: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[int]: ...

    def __getitem__(self, at: int | slice) -> int | Sequence[int]:
        if isinstance(at, int):
            place = range(len(self))[at]
            number = bisect_right(self._ends, place)
            return self.parts[number][place - self._begin(number)]
        start, stop, step = at.indices(len(self))
        if step != 1:
            raise ValueError(f"stretches are cut into pieces, not by a step of {step}")
        first = bisect_right(self._ends, start)
        if stop > start and stop <= self._ends[first]:
            begin = self._begin(first)
            return self.parts[first][start - begin : stop - begin]
        found: list[int] = []
        while start < stop:
            begin, end = self._begin(first), min(self._ends[first], stop)
            found += self.parts[first][start - begin : end - begin]
            start = end
            first += 1
        return found

    def __iter__(self) -> Iterator[int]:
        return (number for part in self.parts for number in part)

    def _begin(self, number: int) -> int:
        return self._ends[number - 1] if number else 0
