"""Of the variants of long tests each has its day."""

from typing import Any

import pytest

from tests.sampling import Sample, is_played, sampled


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


class Item:
    """What `sampled` asks of a test; one without words has no mark."""

    def __init__(self, nodeid: str, *fixtures: str, **mark: Any) -> None:
        self.nodeid, self.fixturenames = nodeid, fixtures
        self._mark = pytest.mark.sampled(**mark).mark if mark else None

    def get_closest_marker(self, name: str) -> Any:
        return self._mark


def test_tests_with_one_word_are_variants_of_one_another() -> None:
    items: list[Any] = [Item(f"tests/{name}.py::test_{name}", of="backends") for name in "abc"]
    played = [sampled(items, day)[0] for day in range(3)]
    assert [len(of_day) for of_day in played] == [1, 1, 1]
    assert {item.nodeid for of_day in played for item in of_day} == {item.nodeid for item in items}


@pytest.mark.parametrize("days", [2, 3])
def test_each_thing_has_its_day_wherever_it_stands(days: int) -> None:
    things = [f"step {number}" for number in range(20)]
    played = [Sample(day).of(things, days) for day in range(days)]
    assert sorted(thing for of_day in played for thing in of_day) == sorted(things)
    assert [Sample(day + days).of(reversed(things), days)[::-1] for day in range(days)] == played
    assert Sample(None).of(things, days) == things


def test_variants_with_spark_are_sampled_and_others_only_if_they_are_marked() -> None:
    with_spark: list[Any] = [Item(f"tests/a.py::test_a[{n}]", "tmp_path", "spark") for n in range(7)]
    alone: list[Any] = [Item("tests/a.py::test_b", "spark")]
    without: list[Any] = [Item(f"tests/c.py::test_c[{n}]", "tmp_path") for n in range(7)]
    played = [sampled([*with_spark, *alone, *without], day)[0] for day in range(3)]
    assert sorted(len(of_day) for of_day in played) == [8 + 2, 8 + 2, 8 + 3]
    assert {item for of_day in played for item in of_day} == {*with_spark, *alone, *without}
