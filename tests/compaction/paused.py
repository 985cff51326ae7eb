"""Servers' background services, in processes that are paused (SIGSTOP) at a step and woken up (SIGCONT) later.

``python -m tests.compaction.paused`` takes orders of `tests.compaction.crash.processes.services`, one JSON object per
line, and forks a process for each. The answer is ``stopped`` when that has come to the point `last`, or else its exit
status; at the word ``wake`` it goes on, and the answer is its exit status: 0, or `LOST` if it was told that it leads no
more.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from metastore.store.leases import LeaseLostError
from tests.compaction.crash.processes.services import Order, run
from tests.compaction.crash.steps import Point, Steps
from tests.forks import Program, forked

LOST = 3
PAUSE = "pause"


class PausingSteps(Steps):
    """Stops the process before the step."""

    def step(self, name: str) -> bool:
        if super().step(name):
            os.kill(os.getpid(), signal.SIGSTOP)
        return False


class PausedServices(Program):
    """Starts processes of services, one after the other."""

    def __init__(self, scratch: Path) -> None:
        super().__init__("tests.compaction.paused", log=scratch / "paused.log")

    def pause(self, order: Order) -> None:
        """Run services up to a point, and pause them there."""
        answer = self.ask(json.dumps(asdict(order)))
        assert answer == "stopped", (order.last, answer, self.complaint())

    def wake(self) -> bool:
        """Let the paused ones go on to their end; whether they were told that they have lost the lease."""
        status = int(self.ask("wake"))
        assert status in (0, LOST), self.complaint()
        return status == LOST


def _carry_out(order: dict[str, Any]) -> int:
    last = Point(*order["last"])
    try:
        run(Order(**{**order, "last": last}), PausingSteps(lambda name: None, last, PAUSE))
    except LeaseLostError:
        return LOST
    return 0


def main() -> None:
    """Take orders until the input ends; a process that is paused then is killed."""
    child = 0
    for line in sys.stdin:
        if line.strip() == "wake":
            os.kill(child, signal.SIGCONT)
        else:
            child = forked(partial(_carry_out, json.loads(line)))
        status = os.waitpid(child, os.WUNTRACED)[1]
        if os.WIFSTOPPED(status):
            print("stopped", flush=True)
        else:
            child = 0
            print(os.waitstatus_to_exitcode(status), flush=True)
    if child:
        os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    main()
