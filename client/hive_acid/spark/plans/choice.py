"""One decision: which of several ways is taken, and why."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Generic, TypeVar

Way = TypeVar("Way", bound=enum.Enum)

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


@dataclass(frozen=True, slots=True)
class Choice(Generic[Way]):
    """The way that is taken, whose value is its name, and the reason in words."""

    way: Way
    why: str

    def __str__(self) -> str:
        return f"{self.way.value}: {self.why}"


def counted(number: int, thing: str) -> str:
    """``1 file``, ``2,000 files``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def size(number: int) -> str:
    """A number of bytes in a unit that people read."""
    for unit in _UNITS[:-1]:
        if number < 1024:
            return f"{number} {unit}"
        number = -(-number // 1024)
    return f"{number} {_UNITS[-1]}"
