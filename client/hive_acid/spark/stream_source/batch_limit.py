"""How much of what is new one batch of a stream has: whole writes, the oldest first; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from hive_acid.spark.stream_source.position import Fresh

FILES, BYTES = "maxFilesPerTrigger", "maxBytesPerTrigger"
"""The words of other tables' streams."""

_UNITS = {unit: 1024**power for power, unit in enumerate(("b", "k", "m", "g", "t"))}
_SIZE = re.compile(r"(\d+)\s*(?:([kmgt])?i?b?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Written:
    """Files of the writes ``first..last``, which lie in one directory."""

    first: int
    last: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class BatchLimit:
    """So many files, and so many bytes of them, has a batch at most, but always one write; None for no limit."""

    files: int | None = None
    bytes: int | None = None

    @classmethod
    def of(cls, files: object = None, size: object = None) -> Self:
        """What a user means by numbers; of bytes also by ``"512m"``. Raises ValueError."""
        return cls(_number(FILES, files, {}), _number(BYTES, size, _UNITS))

    def __bool__(self) -> bool:
        return self.files is not None or self.bytes is not None

    def last_write(self, fresh: Fresh, written: Iterable[Written]) -> int | None:
        """The last write of the next batch, if all that is `fresh` would be too much for one.

        Writes that lie in one directory, as a compaction has put them there, are not divided.
        """
        files = size = 0
        last: int | None = None
        for of in _together(one for one in written if fresh.any_in(one.first, one.last)):
            files, size = files + of.files, size + of.bytes
            if last is not None and not self._holds(files, size):
                return last
            last = of.last
        return None

    def _holds(self, files: int, size: int) -> bool:
        return (self.files is None or files <= self.files) and (self.bytes is None or size <= self.bytes)


def _together(written: Iterable[Written]) -> Iterable[Written]:
    """Those that share a write as one, ascending."""
    found: list[Written] = []
    for one in sorted(written, key=lambda of: (of.first, of.last)):
        if found and one.first <= found[-1].last:
            of = found.pop()
            one = Written(of.first, max(of.last, one.last), of.files + one.files, of.bytes + one.bytes)
        found.append(one)
    return found


def _number(name: str, given: object, units: dict[str, int]) -> int | None:
    if given is None:
        return None
    said = str(given).strip().lower()
    found = _SIZE.fullmatch(said) if not isinstance(given, bool) else None
    if found is None or (not units and not said.isdigit()) or int(found[1]) == 0:
        how = "a number of bytes from 1, as 100000 or '512m'" if units else "a whole number from 1"
        raise ValueError(f"{name} is {how}, not {given!r}")
    return int(found[1]) * (units[found[2] or "b"] if units else 1)
