"""One measurement: a scenario, a metastore, so many connections; with the CPU time that it took on either side."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.bench.calls.driver import Driver, Figures, Scenario
from tests.bench.calls.servers import Server
from tests.bench.machine import real_time


@dataclass(frozen=True)
class Options:
    """How to measure: the length of each measurement, how often each is repeated, and in which scheduling class."""

    seconds: float
    rounds: int = 1
    real_time: bool = False
    warm_up_s: float = 0.5


@dataclass(frozen=True)
class Measurement:
    """What was found."""

    scenario: str
    server: str
    connections: int
    figures: Figures
    server_cpu_s: float
    postgres_cpu_s: float

    def cpu_us(self, cpu_s: float) -> float:
        """CPU time per round, in microseconds."""
        return cpu_s / max(1, self.figures.rounds) * 1e6

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        figures = self.figures
        return {
            "scenario": self.scenario,
            "server": self.server,
            "connections": self.connections,
            "per_second": round(figures.per_second, 1),
            "conflicts_per_second": round(figures.conflicts / figures.seconds, 1),
            "failures": dict(figures.failures),
            "latency_ms": {
                name: {f"p{percent}": round(figures.percentile_ms(name, percent), 3) for percent in (50, 99)}
                for name in figures.latencies_s
            },
            "server_cpu_us": round(self.cpu_us(self.server_cpu_s)),
            "postgres_cpu_us": round(self.cpu_us(self.postgres_cpu_s)),
            "driver_cpu_us": round(self.cpu_us(figures.driver_cpu_s)),
        }


def measure(scenario: Scenario, server: Server, connections: int, options: Options) -> Measurement:
    """Run the scenario once. Raises ConnectionError when the server closes a connection."""
    with Driver(server.uri, connections) as driver, contextlib.ExitStack() as stack:
        if options.real_time:
            stack.enter_context(real_time(server.processes))
        before = server.cpu_s()
        figures = driver.run(scenario, options.seconds, options.warm_up_s)
        after = server.cpu_s()
    share = options.seconds / (options.seconds + options.warm_up_s)  # the warm-up's CPU time is about its share
    return Measurement(
        scenario.name,
        server.name,
        connections,
        figures,
        (after[0] - before[0]) * share,
        (after[1] - before[1]) * share,
    )


def median(measurements: Sequence[Measurement]) -> Measurement:
    """The one in the middle by rounds per second."""
    return sorted(measurements, key=lambda one: one.figures.per_second)[len(measurements) // 2]
