"""What has happened since the server's start: numbers that only grow, and how long runs of services took."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from metastore.observe.samples import Kind, Labels, Sample, labels


@dataclass(slots=True)
class Cycle:
    """The runs of one service, or the compactions of one type; seconds.

    `last_s` is the length of the last run that has ended, `running_since` when the present one began (monotonic clock).
    """

    runs: int = 0
    failures: int = 0
    total_s: float = 0.0
    last_s: float = 0.0
    running_since: float | None = None

    @property
    def age_s(self) -> float:
        """How long the present run has taken so far, or took the last one."""
        return self.last_s if self.running_since is None else time.monotonic() - self.running_since


class Meters:
    """Counters and cycles by name and labels; safe to use from many threads."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, Labels], float] = {}
        self._cycles: dict[tuple[str, Labels], Cycle] = {}
        self._guard = threading.Lock()

    def count(self, name: str, by: float = 1, **labelled: str) -> None:
        """Something has happened `by` times."""
        with self._guard:
            key = name, labels(**labelled)
            self._counts[key] = self._counts.get(key, 0) + by

    def expect(self, name: str, **labelled: str) -> None:
        """A cycle of this name may come: it is shown from now on, that it has not run yet too."""
        with self._guard:
            self._cycles.setdefault((name, labels(**labelled)), Cycle())

    @contextmanager
    def cycle(self, name: str, **labelled: str) -> Iterator[None]:
        """A run, which fails if an error leaves the block."""
        with self._guard:
            cycle = self._cycles.setdefault((name, labels(**labelled)), Cycle())
            begun = cycle.running_since = time.monotonic()
        failed = True
        try:
            yield
            failed = False
        finally:
            with self._guard:
                cycle.runs += 1
                cycle.failures += failed
                cycle.last_s = time.monotonic() - begun
                cycle.total_s += cycle.last_s
                cycle.running_since = None

    def age_s(self, name: str) -> float:
        """How long a cycle without labels is running or ran last; 0 if it never did."""
        with self._guard:
            cycle = self._cycles.get((name, ()))
            return cycle.age_s if cycle else 0.0

    def samples(self) -> list[Sample]:
        """All of it: a cycle as a summary in seconds, with its failures and the length of the last run."""
        with self._guard:
            found = [Sample(name, value, of, Kind.COUNTER) for (name, of), value in self._counts.items()]
            for (name, of), cycle in self._cycles.items():
                found += [
                    Sample(f"{name}_seconds", cycle.total_s, of, Kind.SUMMARY, "_sum"),
                    Sample(f"{name}_seconds", cycle.runs, of, Kind.SUMMARY, "_count"),
                    Sample(f"{name}_failures_total", cycle.failures, of, Kind.COUNTER),
                    Sample(f"{name}_age_in_sec", cycle.age_s, of, Kind.GAUGE),
                ]
            return found
