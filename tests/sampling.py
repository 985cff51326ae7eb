"""Of the longest tests `make test` plays some of the variants, and other ones each day: ``--sample=DAY``.

A test that is marked ``sampled`` has many variants that are alike. Each is played on one of so many days in a row
as the mark says (3). Without the option, as for whoever names a test, all are played.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import pytest

MARK = "sampled"
DAYS = 3


def is_played(test: str, variant: int, variants: int, days: int, day: int) -> bool:
    """Whether a day has the variant of this number. Tests begin at different ones, and each has one on every day."""
    return (variant + zlib.crc32(test.encode()) + day) % min(days, variants) == 0


def sampled(items: Sequence[pytest.Item], day: int) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests that are played on a day, and the others."""
    variants: dict[tuple[str, int], list[pytest.Item]] = {}
    for item in items:
        if mark := item.get_closest_marker(MARK):
            test = item.nodeid.partition("[")[0]
            variants.setdefault((test, mark.kwargs.get("days", DAYS)), []).append(item)
    left_out: set[pytest.Item] = set()
    for (test, days), of in variants.items():
        left_out.update(item for number, item in enumerate(of) if not is_played(test, number, len(of), days, day))
    return [item for item in items if item not in left_out], [item for item in items if item in left_out]
