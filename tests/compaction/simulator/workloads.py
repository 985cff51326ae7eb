"""The recorded workloads: who writes and reads which place of a table at what time; each the same for a seed."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from tests.compaction.simulator.place import Place, WriteIds

HOUR = 3600.0
DAY = 24 * HOUR
_ROW_BYTES = 36
"""Of an order of the benchmarks, whose million rows have 36 MB."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens to some places of a table at a time, in seconds: a write if there is one, else a reading
    of a part of the columns.
    """

    at_s: float
    places: tuple[int, ...]
    write: Callable[[Place], None] | None = None
    part: float = 1.0


@dataclass(frozen=True, slots=True)
class Workload:
    """A table of so many places, which has been loaded before, and what happens to it."""

    name: str
    places: int
    rows: int
    files: int
    events: Callable[[random.Random], Iterator[Event]]
    lasts_s: float = DAY

    def begun(self) -> list[Place]:
        """The places as they are in the beginning: each with a base, or empty."""
        write_ids = WriteIds()
        made = [Place(_ROW_BYTES, write_ids) for _ in range(self.places)]
        for place in made:
            if self.rows:
                place.load(self.rows, self.files)
        return made

    def recorded(self, seed: int) -> list[Event]:
        """All events in their order."""
        return sorted(self.events(random.Random(f"{self.name} {seed}")), key=lambda event: event.at_s)


def workloads() -> list[Workload]:
    """All of them."""
    return [
        Workload("trickle inserts", 1, 5_000_000, 4, _trickle(each_s=60, reads_s=600)),
        Workload("trickle inserts, seldom read", 1, 5_000_000, 4, _trickle(each_s=60, reads_s=6 * HOUR)),
        Workload("trickle inserts, a dashboard", 1, 5_000_000, 4, _trickle(each_s=60, reads_s=15, part=0.1)),
        Workload("a new table that grows", 1, 0, 1, _trickle(each_s=120, reads_s=300)),
        Workload("hot partition updates", 12, 1_000_000, 2, _hot_updates),
        Workload("a small table of counters", 1, 20_000, 1, _counters),
        Workload("bulk loads", 1, 20_000_000, 4, _bulk, 2 * DAY),
        Workload("a stream of small commits", 1, 0, 1, _stream(each_s=5, rows=2_000), DAY / 2),
        Workload("a stream of large commits", 1, 0, 1, _stream(each_s=60, rows=250_000), DAY / 2),
        Workload("deletes here and there", 1, 10_000_000, 4, _deletes, 2 * DAY),
        Workload("all of it", 6, 2_000_000, 2, _mixed, 2 * DAY),
    ]


def _times(dice: random.Random, each_s: float, until_s: float, since_s: float = 0.0) -> Iterator[float]:
    """Instants at random, so often on average."""
    at_s = since_s
    while (at_s := at_s + dice.expovariate(1 / each_s)) < until_s:
        yield at_s


def _readings(
    dice: random.Random, each_s: float, until_s: float, part: float = 1.0, places: Sequence[int] = (0,)
) -> Iterator[Event]:
    return (Event(at_s, tuple(places), part=part) for at_s in _times(dice, each_s, until_s))


def _trickle(each_s: float, reads_s: float, part: float = 1.0) -> Callable[[random.Random], Iterator[Event]]:
    """Small inserts at short intervals."""

    def events(dice: random.Random) -> Iterator[Event]:
        for at_s in _times(dice, each_s, DAY):
            yield Event(at_s, (0,), partial(Place.insert, rows=dice.randint(200, 4_000)))
        yield from _readings(dice, reads_s, DAY, part)

    return events


def _hot_updates(dice: random.Random) -> Iterator[Event]:
    """Updates of which most meet few partitions, and readings of one partition each that prefer these, too."""
    weights = [1 / (1 + place) ** 1.2 for place in range(12)]
    for at_s in _times(dice, 60, DAY):
        (place,) = dice.choices(range(12), weights)
        change = partial(Place.update, rows=dice.randint(100, 10_000), newest=dice.choice((0.05, 1.0)))
        yield Event(at_s, (place,), change)
    for at_s in _times(dice, 120, DAY):
        yield Event(at_s, tuple(dice.choices(range(12), weights)), part=dice.choice((0.1, 1.0)))


def _counters(dice: random.Random) -> Iterator[Event]:
    """A few rows that are changed all the time, and looked at as often."""
    for at_s in _times(dice, 20, DAY):
        yield Event(at_s, (0,), partial(Place.update, rows=dice.randint(1, 20)))
    yield from _readings(dice, 30, DAY)


def _bulk(dice: random.Random) -> Iterator[Event]:
    """Large loads, each a few good files."""
    for hour in range(48):
        load = partial(Place.insert, rows=dice.randint(1_000_000, 4_000_000), files=4)
        yield Event(hour * HOUR + dice.uniform(0, 600), (0,), load)
    yield from _readings(dice, 1200, 2 * DAY, 0.25)


def _stream(each_s: float, rows: int) -> Callable[[random.Random], Iterator[Event]]:
    """Commits of a stream, whose files pyarrow writes."""

    def events(dice: random.Random) -> Iterator[Event]:
        for number in itertools.count(1):
            if number * each_s >= DAY / 2:
                break
            yield Event(number * each_s, (0,), partial(Place.insert, rows=rows, by_cpp=True))
        yield from _readings(dice, 300, DAY / 2, 0.5)

    return events


def _deletes(dice: random.Random) -> Iterator[Event]:
    """People who ask to be forgotten: a few rows out of all files; and a load each night."""
    for at_s in _times(dice, 600, 2 * DAY):
        yield Event(at_s, (0,), partial(Place.delete, rows=dice.randint(10, 2_000)))
    for day in range(2):
        yield Event(day * DAY + 2 * HOUR, (0,), partial(Place.insert, rows=1_000_000, files=4))
    yield from _readings(dice, 900, 2 * DAY, 0.5)


def _mixed(dice: random.Random) -> Iterator[Event]:
    """Loads at night, inserts and updates by day that prefer the newest partition, deletes, readers by day."""
    weights = [1 / (1 + place) ** 1.5 for place in range(6)]
    for day in range(2):
        morning_s, evening_s = day * DAY + 8 * HOUR, day * DAY + 20 * HOUR
        for place in range(6):
            load = partial(Place.insert, rows=dice.randint(100_000, 1_000_000), files=2)
            yield Event(day * DAY + dice.uniform(0, 4 * HOUR), (place,), load)
        for at_s in _times(dice, 40, evening_s, morning_s):
            (place,) = dice.choices(range(6), weights)
            kind = dice.random()
            if kind < 0.6:
                yield Event(at_s, (place,), partial(Place.insert, rows=dice.randint(1, 5_000)))
            elif kind < 0.9:
                yield Event(at_s, (place,), partial(Place.update, rows=dice.randint(1, 2_000), newest=0.2, more=50))
            else:
                yield Event(at_s, (place,), partial(Place.delete, rows=dice.randint(1, 200)))
        for at_s in _times(dice, 60, evening_s, morning_s):
            yield Event(at_s, tuple(sorted(set(dice.choices(range(6), weights, k=2)))), part=dice.choice((0.1, 1.0)))
