"""What has happened since the server's start: numbers that only grow, and how long runs of services took.

All of it is shown from the start, so that a rate can be made of the first event.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Summary, disable_created_metrics

PREFIX = "hive_"
"""Before every name: what follows is Hive's own."""
COMPACTIONS = ("minor", "major", "rebalance")
CLEANINGS = (*COMPACTIONS, "abort_txn_cleanup")
"""Of what a compaction of that type replaced, or of what an aborted transaction left."""

disable_created_metrics()  # a second series for each, which says when the server started


class Cycle:
    """The runs of one service, or the compactions of one type."""

    def __init__(self, seconds: Summary, failures: Counter, age: Gauge) -> None:
        self._seconds, self._failures = seconds, failures
        self._last_s = 0.0
        self._running_since: float | None = None
        age.set_function(self.age_s)

    @contextmanager
    def run(self) -> Iterator[None]:
        """A run, which fails if an error leaves the block."""
        begun = self._running_since = time.monotonic()
        try:
            with self._failures.count_exceptions(BaseException):
                yield
        finally:
            self._last_s = time.monotonic() - begun
            self._running_since = None
            self._seconds.observe(self._last_s)

    def age_s(self) -> float:
        """How long the present run has taken so far, or took the last one; 0 if there was none."""
        since = self._running_since
        return self._last_s if since is None else time.monotonic() - since


class Cycles:
    """Cycles of one name, told apart by a label; safe to use from many threads."""

    def __init__(self, registry: CollectorRegistry, name: str, what: str, label: str, expected: Sequence[str]) -> None:
        self._parts = _parts(registry, name, what, label)
        self._guard = threading.Lock()
        self._of: dict[str, Cycle] = {}
        for value in expected:
            self.of(value)

    def of(self, value: str) -> Cycle:
        """The cycle of that label, shown from now on."""
        with self._guard:
            found = self._of.get(value)
            if found is None:
                seconds, failures, age = self._parts
                found = self._of[value] = Cycle(seconds.labels(value), failures.labels(value), age.labels(value))
            return found


def _parts(registry: CollectorRegistry, name: str, what: str, *label: str) -> tuple[Summary, Counter, Gauge]:
    return (
        Summary(f"{PREFIX}{name}_seconds", f"How long {what} took.", label, registry=registry),
        Counter(f"{PREFIX}{name}_failures", f"How many {what} failed.", label, registry=registry),
        Gauge(
            f"{PREFIX}{name}_age_in_sec",
            f"How long the latest of {what} has taken so far, or took if it has ended.",
            label,
            registry=registry,
        ),
    )


class Meters:
    """Everything that one server counts and times, but for its calls (`calls`)."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()

        def counter(name: str, meaning: str) -> Counter:
            return Counter(f"{PREFIX}{name}", meaning, registry=registry)

        self.committed = counter("total_num_committed_transactions", "Transactions that were committed.")
        self.aborted = counter("total_num_aborted_transactions", "Transactions that were aborted by a call.")
        self.timed_out = counter(
            "total_num_timed_out_transactions", "Transactions that were aborted since nobody kept them alive."
        )
        self.not_cleaned = counter(
            "compaction_cleaner_failure_counter", "Tables and partitions that the Cleaner could not clean, each time."
        )
        self.not_judged = counter(
            "compaction_initiator_failure_counter",
            "Tables and partitions that the Initiator could not look at, each time.",
        )
        self.initiator = Cycle(*_parts(registry, "compaction_initiator_cycle", "runs of the Initiator"))
        self.services = Cycles(registry, "service_cycle", "runs of the background services", "service", ())
        self.compactions = Cycles(
            registry, "compaction_worker_cycle", "compactions that this server ran", "type", COMPACTIONS
        )
        self.cleanings = Cycles(registry, "compaction_cleaner_cycle", "cleanings", "type", CLEANINGS)
