"""Figures of the present state, such as how many transactions are open, under Hive's names (transactions.md §4.12)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client.core import GaugeMetricFamily

from metastore.observe.meanings import MEANINGS
from metastore.observe.meters import PREFIX

Labels = tuple[tuple[str, str], ...]


class Figure(NamedTuple):
    """A number, and what it is of."""

    name: str
    value: float
    labels: Labels = ()


def labels(**given: str) -> Labels:
    """Labels in one order, so that equal ones are equal."""
    return tuple(sorted(given.items()))


class Gauges:
    """The latest figures by name, and those that have labels; safe to use from many threads."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}
        self._labelled: tuple[Figure, ...] = ()
        self._guard = threading.Lock()

    def replace(self, values: Mapping[str, float], labelled: Iterable[Figure] = ()) -> None:
        """Put new figures in the place of all former ones."""
        with self._guard:
            self._values = dict(values)
            self._labelled = tuple(labelled)

    def snapshot(self) -> dict[str, float]:
        """A copy of all figures without labels; empty before they were taken for the first time."""
        with self._guard:
            return dict(self._values)

    def figures(self) -> list[Figure]:
        """All figures."""
        with self._guard:
            return [*(Figure(name, value) for name, value in self._values.items()), *self._labelled]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """All figures as prometheus_client takes them: those of one name together."""
        families: dict[str, GaugeMetricFamily] = {}
        for name, value, of in self.figures():
            if name not in families:
                families[name] = GaugeMetricFamily(f"{PREFIX}{name}", MEANINGS.get(name, ""))
            families[name].add_sample(f"{PREFIX}{name}", dict(of), value)
        yield from families.values()
