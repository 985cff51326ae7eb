"""Figures of the present state, such as how many transactions are open, under Hive's names (transactions.md §4.12)."""

from __future__ import annotations

import threading
from collections.abc import Mapping


class Gauges:
    """The latest figures by name; safe to use from many threads."""

    def __init__(self) -> None:
        self._values: dict[str, float] = {}
        self._guard = threading.Lock()

    def replace(self, values: Mapping[str, float]) -> None:
        """Put new figures in the place of all former ones."""
        with self._guard:
            self._values = dict(values)

    def snapshot(self) -> dict[str, float]:
        """A copy of all figures; empty before they were taken for the first time."""
        with self._guard:
            return dict(self._values)
