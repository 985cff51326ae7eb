"""Counts and durations of RPCs, by method and outcome."""

from __future__ import annotations

import bisect
import enum
import threading
from collections import defaultdict
from dataclasses import dataclass, field, replace

from metastore.observe.samples import Kind, Sample, labels

BUCKETS_MS = (1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 1000.0, 5000.0, 30_000.0)
"""Upper bounds of the lengths that are told apart; the last kind is what is longer than all."""


class Outcome(enum.StrEnum):
    """How a call ended: well, refused as the IDL declares, by a failure of ours, or in the middle of its long reply."""

    FINE = "fine"
    REFUSED = "refused"
    CRASHED = "crashed"
    BROKEN_OFF = "broken_off"
    UNKNOWN = "unknown_method"


@dataclass
class CallCount:
    """What happened to one method."""

    calls: int = 0
    duration_ms: float = 0.0
    longest_ms: float = 0.0
    by_length: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_MS) + 1))


class CallCounts:
    """All methods' counts."""

    def __init__(self) -> None:
        self._counts: defaultdict[tuple[str, Outcome], CallCount] = defaultdict(CallCount)
        self._guard = threading.Lock()

    def add(self, method: str, outcome: Outcome, duration_ms: float) -> None:
        """One call has ended."""
        with self._guard:
            count = self._counts[method, outcome]
            count.calls += 1
            count.duration_ms += duration_ms
            count.longest_ms = max(count.longest_ms, duration_ms)
            count.by_length[bisect.bisect_left(BUCKETS_MS, duration_ms)] += 1

    def total(self, outcome: Outcome) -> int:
        """How many calls of any method had this outcome."""
        with self._guard:
            return sum(count.calls for (_, found), count in self._counts.items() if found is outcome)

    def snapshot(self) -> dict[tuple[str, Outcome], CallCount]:
        """A copy of all counts."""
        with self._guard:
            # Without ado: the event loop waits for the guard when a call ends.
            return {key: replace(count, by_length=[*count.by_length]) for key, count in self._counts.items()}

    def samples(self) -> list[Sample]:
        """Numbers and lengths of calls by method and outcome, as a histogram in seconds."""
        found = []
        for (method, outcome), count in sorted(
            self.snapshot().items(), key=lambda item: (item[0][0], item[0][1].value)
        ):
            told = {"method": method, "outcome": outcome.value}
            so_far = 0
            for bound_ms, number in zip((*BUCKETS_MS, float("inf")), count.by_length, strict=True):
                so_far += number
                bound = "+Inf" if bound_ms == float("inf") else f"{bound_ms / 1000:g}"
                found.append(_sample(so_far, "_bucket", **told, le=bound))
            found += [_sample(count.duration_ms / 1000, "_sum", **told), _sample(count.calls, "_count", **told)]
        return found


def _sample(value: float, suffix: str, **labelled: str) -> Sample:
    return Sample("api_duration_seconds", value, labels(**labelled), Kind.HISTOGRAM, suffix)
