"""Counts and durations of RPCs, by method and outcome."""

from __future__ import annotations

import enum
import threading
from dataclasses import dataclass


class Outcome(enum.Enum):
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


class CallCounts:
    """All methods' counts."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, Outcome], CallCount] = {}
        self._guard = threading.Lock()

    def add(self, method: str, outcome: Outcome, duration_ms: float) -> None:
        """One call has ended."""
        with self._guard:
            count = self._counts.setdefault((method, outcome), CallCount())
            count.calls += 1
            count.duration_ms += duration_ms
            count.longest_ms = max(count.longest_ms, duration_ms)

    def total(self, outcome: Outcome) -> int:
        """How many calls of any method had this outcome."""
        with self._guard:
            return sum(count.calls for (_, found), count in self._counts.items() if found is outcome)

    def snapshot(self) -> dict[tuple[str, Outcome], CallCount]:
        """A copy of all counts."""
        with self._guard:
            return {key: CallCount(**vars(count)) for key, count in self._counts.items()}
