"""Each of the long tests has its day."""

from typing import Any

import pytest

from tests.sampling import DAYS, TURN, Sample, is_played, sampled


@pytest.mark.parametrize("variants", [1, 2, 3, 4, 7, 39])
@pytest.mark.parametrize("days", [1, 2, 3, 5, 20])
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

    def __init__(self, nodeid: str, *fixtures: str, slow: bool = False, **mark: Any) -> None:
        self.nodeid, self.fixturenames = nodeid, fixtures
        self.stash = pytest.Stash()
        self._marks = {"slow": slow, "sampled": pytest.mark.sampled(**mark).mark if mark else None}

    def get_closest_marker(self, name: str) -> Any:
        return self._marks[name]


def played(items: list[Any], days: int = DAYS) -> list[list[Any]]:
    found = [sampled(items, day)[0] for day in range(days)]
    assert {item for of_day in found for item in of_day} == {*items}
    return found


def test_tests_with_one_word_take_turns() -> None:
    items = [Item(f"tests/{name}.py::test_{name}", of="backends") for name in "abc"]
    assert [len(of_day) for of_day in played(items)] == [1] * DAYS


def test_a_number_of_days_is_for_the_variants_of_one_test() -> None:
    items = [Item(f"tests/a.py::test_{name}[{n}]", days=7) for name in "ab" for n in range(7)]
    assert [len(of_day) for of_day in played(items, 7)] == [2] * 7


@pytest.mark.parametrize("turns", [2, 3])
def test_each_thing_has_its_turn_wherever_it_stands(turns: int) -> None:
    things = [f"step {number}" for number in range(20)]
    seen = [Sample(turn).of(things, turns) for turn in range(turns)]
    assert sorted(thing for of_turn in seen for thing in of_turn) == sorted(things)
    assert [Sample(turn + turns).of(reversed(things), turns)[::-1] for turn in range(turns)] == seen
    assert Sample(None).of(things, turns) == things


@pytest.mark.parametrize("size", range(1, 2 * DAYS))
def test_the_turns_of_a_test_are_counted(size: int) -> None:
    items: list[Any] = [Item(f"tests/a.py::test_a[{n}]", "spark") for n in range(size)]
    turns: dict[Any, list[int]] = {item: [] for item in items}
    for day in range(20_000, 20_000 + 5 * DAYS):
        for item in sampled(items, day)[0]:
            turns[item].append(item.stash[TURN])
    for of_item in turns.values():
        assert of_item == list(range(of_item[0], of_item[0] + len(of_item)))


def test_of_a_rooms_long_tests_a_day_has_every_twentieth_and_of_the_others_all() -> None:
    with_spark = [
        Item(f"tests/room/test_{file}.py::test_a[{n}]", "tmp_path", "spark") for file in "ab" for n in range(19)
    ]
    slow = [Item("tests/room/test_d.py::test_b", slow=True), Item("tests/room/test_d.py::test_c", slow=True)]
    alone = [Item("tests/room/within/test_b.py::test_b", "spark")]
    without = [Item(f"tests/room/test_a.py::test_c[{n}]", "tmp_path") for n in range(7)]
    assert [len(of_day) for of_day in played([*with_spark, *slow, *alone, *without])] == [2 + 1 + 7] * DAYS
