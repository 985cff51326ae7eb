"""Of the longest tests `make test` plays some of the variants, and other ones each day: ``--sample=DAY``.

A test has variants by its parameters. Of one with Spark, where each takes seconds, a day has every third (of two, the
one or the other). So it is with other tests that are marked ``sampled``; the mark says another number of days than 3,
or by ``of`` that tests which bear the same word are variants of one another. A test that does the same at many places,
such as a kill before each step, takes those of the day by the fixture `sample`. Without the option, as for whoever
names a test, all are played.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pytest

MARK = "sampled"
SPARK = "spark"
"""The fixture of a test with Spark."""
DAYS = 3

T = TypeVar("T")


def is_played(test: str, variant: int, variants: int, days: int, day: int) -> bool:
    """Whether a day has the variant of this number. Tests begin at different ones, and each has one on every day."""
    return (variant + zlib.crc32(test.encode()) + day) % min(days, variants) == 0


def sampled(items: Sequence[pytest.Item], day: int) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests that are played on a day, and the others."""
    variants: dict[tuple[str, int], list[pytest.Item]] = {}
    for item in items:
        mark = item.get_closest_marker(MARK)
        if mark or SPARK in getattr(item, "fixturenames", ()):
            said = mark.kwargs if mark else {}
            test = said.get("of", item.nodeid.partition("[")[0])
            variants.setdefault((test, said.get("days", DAYS)), []).append(item)
    left_out: set[pytest.Item] = set()
    for (test, days), of in variants.items():
        left_out.update(item for number, item in enumerate(of) if not is_played(test, number, len(of), days, day))
    return [item for item in items if item not in left_out], [item for item in items if item in left_out]


@dataclass(frozen=True)
class Sample:
    """What a day has of the many things that a test does in the same way; all without a day."""

    day: int | None

    def of(self, things: Iterable[T], days: int = DAYS) -> list[T]:
        """Those of the day, each on one of so many in a row: by its name, wherever it stands among the others.

        In a test that is ``sampled`` itself the two numbers of days have no divisor in common: else what has its day
        when the test has none would never be played.
        """
        return [one for one in things if self.day is None or (zlib.crc32(str(one).encode()) + self.day) % days == 0]
