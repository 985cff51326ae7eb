"""Of the variants of long tests each has its day."""

import pytest

from tests.sampling import is_played


@pytest.mark.parametrize("variants", [1, 2, 3, 4, 7, 39])
@pytest.mark.parametrize("days", [1, 2, 3, 5])
def test_each_variant_has_its_day_and_each_day_its_variant(variants: int, days: int) -> None:
    for first in (0, 20_000):
        for test in ("tests/a.py::test_a", "tests/b.py::test_b"):
            played = [
                [number for number in range(variants) if is_played(test, number, variants, days, day)]
                for day in range(first, first + max(days, variants))
            ]
            assert all(played)
            assert {number for of_day in played for number in of_day} == set(range(variants))
            assert max(map(len, played)) <= -(-variants // days)
