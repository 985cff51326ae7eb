"""Servers' background services, in processes that are killed.

``python -m tests.compaction.crash.processes.services`` takes orders, one JSON object per line, forks a process for each
that makes the services of a server and runs them until they find nothing to do, and answers with its exit status. The
services are all that a server has, in the wiring of a server, under the lease; but for Spark, in whose place files of
lines are merged (tests/compaction/world.py).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from hive_acid.filesystem import files
from metastore.config import Config
from metastore.slices import Slices
from metastore.store.database import Database
from tests.compaction.crash.processes.merging import EXECUTORS
from tests.compaction.crash.steps import KILL, Point, Steps
from tests.forks import Program, status_of

ROUNDS = 12
"""More than these are needed by nothing: services that still find something to do then will do so for ever."""
FIRST = ("AcidHouseKeeper", "Initiator", "Worker", "Cleaner")
"""In this order a round takes a compaction from its beginning to its end; the rest follow in the server's own."""

REPORTERS = frozenset({"AcidMetricLogger"})
"""What says again and again what is not in order, and so never comes to an end."""


@dataclass(frozen=True)
class Order:
    """Run services until nothing is left to do, unless harm is done at a step.

    `executor` is one of `EXECUTORS`; directories whose names begin with `stuck` cannot be removed.
    """

    url: str
    warehouse: str
    settings: Mapping[str, str]
    executor: str = "merges"
    last: Point | None = None
    harm: str = KILL
    stuck: str = ""


@dataclass
class Outcome:
    """How the process ended, by its exit status, and the steps that it began; without those of a last round in which
    there was nothing left to do.
    """

    status: int
    steps: list[str] = field(default_factory=list)


class Services(Program):
    """Starts processes of services, one after the other."""

    def __init__(self, scratch: Path) -> None:
        self._told = scratch / "told"
        super().__init__(
            "tests.compaction.crash.processes.services",
            str(self._told),
            log=scratch / "services.log",
            environment={"TMPDIR": str(scratch)},  # what the killed leave there goes with the tests' files
        )

    def run(self, order: Order) -> Outcome:
        """Carry out an order to its end, whatever that is."""
        self._told.write_text("")
        status = int(self.ask(json.dumps(asdict(order))))
        assert status in (0, -9), self.complaint()
        *rounds, last = self._told.read_text().split("\n\n")
        counted = rounds if status == 0 and rounds else [*rounds, last]
        return Outcome(status, [step for one in counted for step in one.splitlines()])


def run(order: Order, steps: Steps) -> None:
    """Start the services and run them in rounds until a round does nothing."""
    executor = EXECUTORS[order.executor]()
    if order.stuck:
        files.remove = partial(_remove_unless, order.stuck, files.remove)
    steps.watch()
    steps.watch_executor(executor)
    config = Config.parse([f"{k}={v}" for k, v in order.settings.items()])
    made = Slices(Database(order.url), order.warehouse, config, executor)
    executor.server = made
    assert made.lease.compete()
    services = sorted(made.services(), key=lambda one: FIRST.index(one.name) if one.name in FIRST else len(FIRST))
    for _ in range(ROUNDS):
        busy = []
        for service in services:
            steps.service = service.name
            with made.lease.term():
                if service.run_once() and service.name not in REPORTERS:
                    busy.append(service.name)
        if not busy:
            return
        steps.end_round()
    raise AssertionError(f"after {ROUNDS} rounds there is still something to do for {busy}")


def _remove_unless(stuck: str, remove: Callable[[str], bool], location: str) -> bool:
    if location.rpartition("/")[2].startswith(stuck):
        raise PermissionError(f"{location} is not to be removed")
    return remove(location)


def _carry_out(order: dict[str, Any], told: str) -> None:
    descriptor = os.open(told, os.O_WRONLY | os.O_APPEND)
    last = order["last"] and Point(*order["last"])
    steps = Steps(lambda name: os.write(descriptor, f"{name}\n".encode()), last, order["harm"])  # type: ignore[arg-type]
    run(Order(**{**order, "last": last}), steps)


def main() -> None:
    """Take orders until the input ends; steps are told in the file that is the first argument."""
    for line in sys.stdin:
        print(status_of(partial(_carry_out, json.loads(line), sys.argv[1])), flush=True)


if __name__ == "__main__":
    main()
