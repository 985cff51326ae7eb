"""A workload under a policy: time goes from event to event, and the Initiator looks at what was written at its pace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from metastore.compaction.config import CompactionConfig
from metastore.compaction.file_totals import FileTotals
from metastore.compaction.initiator.policy import Rules, judge
from metastore.compaction.states import CompactionType
from tests.compaction.simulator.costs import MEASURED, Costs
from tests.compaction.simulator.place import Place
from tests.compaction.simulator.workloads import Event, Workload

_READERS_WEIGHT = 0.2
"""As the Initiator weighs a sample (`metastore.compaction.queue.looks`)."""


@dataclass
class Outcome:
    """What a workload has cost under a policy: CPU seconds, bytes and numbers."""

    workload: str
    policy: str
    readings: int = 0
    read_s: float = 0.0
    least_read_s: float = 0.0
    """What the readings would have taken of tables that are always compacted."""
    rewrite_s: float = 0.0
    worst_read_s: float = 0.0
    written_bytes: int = 0
    """By those who write."""
    rewritten_bytes: int = 0
    """By compactions."""
    minor: int = 0
    major: int = 0

    @property
    def total_s(self) -> float:
        """Readings and compactions."""
        return self.read_s + self.rewrite_s

    @property
    def amplification(self) -> float:
        """Bytes that were written for each byte that somebody wrote."""
        return 1 + self.rewritten_bytes / max(1, self.written_bytes)

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {**asdict(self), "total_s": self.total_s, "amplification": self.amplification}


@dataclass
class Simulation:
    """One run."""

    workload: Workload
    config: CompactionConfig
    outcome: Outcome
    costs: Costs = MEASURED
    places: list[Place] = field(init=False)
    _open_until: list[float] = field(default_factory=list)
    _readers: float = 0.0
    _to_look_at: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.places = self.workload.begun()

    def run(self, events: Sequence[Event]) -> Outcome:
        """All events and all looks of the Initiator."""
        interval_s = self.config.check_interval_ms / 1000
        before = sum(place.written_bytes for place in self.places)
        next_look_s = interval_s
        for event in events:
            while next_look_s <= event.at_s:
                self._look(next_look_s)
                next_look_s += interval_s
            self._happen(event)
        for place in self.places:
            place.check()
        self.outcome.written_bytes = sum(place.written_bytes for place in self.places) - before
        return self.outcome

    def _happen(self, event: Event) -> None:
        if event.write is not None:
            for place in event.places:
                event.write(self.places[place])
                self._to_look_at.add(place)
            return
        took_s = self.costs.reading + sum(
            self.places[place].reading_s(self.costs, event.part) for place in event.places
        )
        self._open_until.append(event.at_s + took_s)
        self.outcome.least_read_s += self.costs.reading + sum(
            self.places[place].least_s(self.costs, event.part) for place in event.places
        )
        self.outcome.readings += 1
        self.outcome.read_s += took_s
        self.outcome.worst_read_s = max(self.outcome.worst_read_s, took_s)

    def _look(self, now_s: float) -> None:
        """A run of the Initiator, and of the Worker after it."""
        self._open_until = [end_s for end_s in self._open_until if end_s > now_s]
        self._readers += _READERS_WEIGHT * (len(self._open_until) - self._readers)
        rules = Rules.of(self.config, {}, self._readers)
        for number in sorted(self._to_look_at):
            self._to_look_at.remove(number)
            place = self.places[number]
            judgement = judge(FileTotals.of(place.state()), rules)
            if judgement.type is None:
                continue
            work = place.compact(judgement.type, self.costs, judgement.after)
            if work is None:
                continue
            self._to_look_at.add(number)
            self.outcome.rewrite_s += work.cpu_s
            self.outcome.rewritten_bytes += work.written_bytes
            if work.kind is CompactionType.MAJOR:
                self.outcome.major += 1
            else:
                self.outcome.minor += 1


POLICIES = {"thresholds": CompactionConfig(policy="hive"), "cost": CompactionConfig(policy="cost")}


def simulated(workload: Workload, policy: str, seed: int) -> Outcome:
    """What a workload costs under a policy."""
    return Simulation(workload, POLICIES[policy], Outcome(workload.name, policy)).run(workload.recorded(seed))
