"""Of the tests that take long `make test` plays some, and other ones each day: ``--sample=DAY``.

Long are those with Spark, and those that are marked ``slow`` or ``sampled``. Of the long tests in a folder, variants
counted, a day has every twentieth and at least one. The mark ``sampled`` may say another number of days than 20, for
the variants of its test alone, or by ``of`` that tests of one word take turns, wherever they stand. A test that does
the same at many places, such as a kill before each step, takes some by the fixture `sample`, and others when it is its
turn again. Without the option, as for whoever names a test, all are played.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

MARK, SLOW = "sampled", "slow"
SPARK = "spark"
"""The fixture of a test with Spark."""
DAYS = 20
THING_TURNS = 3
"""Within so many turns of its test each thing has its own."""
TURN = pytest.StashKey[int]()
"""How often it was a test's turn."""

T = TypeVar("T")


def is_played(group: str, number: int, size: int, days: int, day: int) -> bool:
    """Whether a day has the test of this number. Groups begin at different ones, and each has one on every day."""
    return (number + zlib.crc32(group.encode()) + day) % min(days, size) == 0


def sampled(items: Sequence[pytest.Item], day: int) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests that are played on a day, and the others."""
    groups: dict[tuple[str, int], list[pytest.Item]] = {}
    for item in items:
        mark = item.get_closest_marker(MARK)
        if mark or item.get_closest_marker(SLOW) or SPARK in getattr(item, "fixturenames", ()):
            groups.setdefault(_group(item.nodeid, mark.kwargs if mark else {}), []).append(item)
    left_out: set[pytest.Item] = set()
    for (group, days), of in groups.items():
        for number, item in enumerate(of):
            item.stash[TURN] = day // min(days, len(of))
            if not is_played(group, number, len(of), days, day):
                left_out.add(item)
    return [item for item in items if item not in left_out], [item for item in items if item in left_out]


def _group(test: str, said: Mapping[str, Any]) -> tuple[str, int]:
    """Whose turn is taken together, and within how many days."""
    file, _, _ = test.partition("::")
    whole = test.partition("[")[0] if "days" in said else file.rpartition("/")[0]
    return said.get("of", whole), said.get("days", DAYS)


@dataclass(frozen=True)
class Sample:
    """What a test's turn has of the many things that it does in the same way; all without a turn."""

    turn: int | None

    def of(self, things: Iterable[T], turns: int = THING_TURNS) -> list[T]:
        """Those of the turn, each in one of so many: by its name, wherever it stands among the others."""
        return [one for one in things if self.turn is None or (zlib.crc32(str(one).encode()) + self.turn) % turns == 0]
