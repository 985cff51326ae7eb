"""Figures of the present state, such as how many transactions are open, under Hive's names (transactions.md §4.12)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from metastore.observe.samples import Sample


class Gauges:
    """The latest figures by name, and those that have labels; safe to use from many threads."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}
        self._labelled: tuple[Sample, ...] = ()
        self._guard = threading.Lock()

    def replace(self, values: Mapping[str, float], labelled: Iterable[Sample] = ()) -> None:
        """Put new figures in the place of all former ones."""
        with self._guard:
            self._values = dict(values)
            self._labelled = tuple(labelled)

    def snapshot(self) -> dict[str, float]:
        """A copy of all figures without labels; empty before they were taken for the first time."""
        with self._guard:
            return dict(self._values)

    def samples(self) -> list[Sample]:
        """All figures."""
        with self._guard:
            return [*(Sample(name, value) for name, value in self._values.items()), *self._labelled]
