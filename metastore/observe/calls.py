"""Counts and durations of RPCs, by method and outcome."""

from __future__ import annotations

import bisect
import enum
import itertools
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client.core import HistogramMetricFamily

from metastore.observe.meters import PREFIX

BUCKETS_MS = (1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1000.0, 5000.0, 30_000.0)
"""Upper bounds of the lengths that are told apart; the last kind is what is longer than all."""
_BOUNDS = [*(str(bound_ms / 1000) for bound_ms in BUCKETS_MS), "+Inf"]


class Outcome(enum.StrEnum):
    """How a call ended: well, refused as the IDL declares, by a failure of ours, or in the middle of its long reply."""

    FINE = "fine"
    REFUSED = "refused"
    CRASHED = "crashed"
    BROKEN_OFF = "broken_off"
    UNKNOWN = "unknown_method"


@dataclass(slots=True)
class _Count:
    """What happened to one method."""

    duration_ms: float = 0.0
    by_length: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_MS) + 1))


class CallCounts:
    """All methods' counts; safe to use from many threads.

    Tens of thousands of calls end in a second, so each is counted at once for a histogram: prometheus_client's own asks
    for three locks and looks at each bound, which took half as long again.
    """

    def __init__(self) -> None:
        self._counts: defaultdict[tuple[str, Outcome], _Count] = defaultdict(_Count)
        self._guard = threading.Lock()

    def add(self, method: str, outcome: Outcome, duration_ms: float) -> None:
        """One call has ended."""
        with self._guard:
            count = self._counts[method, outcome]
            count.duration_ms += duration_ms
            count.by_length[bisect.bisect_left(BUCKETS_MS, duration_ms)] += 1

    def total(self, outcome: Outcome) -> int:
        """How many calls of any method had this outcome."""
        return sum(sum(count.by_length) for (_, found), count in self._snapshot() if found is outcome)

    def by_method(self) -> dict[str, int]:
        """How often each method was called."""
        found: Counter[str] = Counter()
        for (method, _), count in self._snapshot():
            found[method] += sum(count.by_length)
        return found

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """Numbers and lengths of calls as prometheus_client takes them, in seconds."""
        what = "How long calls took, by method and outcome."
        family = HistogramMetricFamily(f"{PREFIX}api_duration_seconds", what, labels=("method", "outcome"))
        for (method, outcome), count in sorted(self._snapshot(), key=lambda one: one[0]):
            so_far = itertools.accumulate(count.by_length)
            family.add_metric((method, outcome.value), [*zip(_BOUNDS, so_far, strict=True)], count.duration_ms / 1000)
        yield family

    def _snapshot(self) -> list[tuple[tuple[str, Outcome], _Count]]:
        """A copy of all counts."""
        with self._guard:
            # Without ado: the event loop waits for the guard when a call ends.
            return [(key, _Count(count.duration_ms, [*count.by_length])) for key, count in self._counts.items()]
