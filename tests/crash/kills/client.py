"""``python -m tests.crash.kills.client``: processes that write, and are killed by SIGKILL at some moment.

It takes orders as `tests.crash.client` does, forks a process for each, and may kill it so long after so many of its
steps: moments within a step as well, in the middle of a file or of a call.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.connection import Connection
from hive_acid.wire import ttypes
from tests.crash.client import attached, gateway_of
from tests.crash.kills.query import run_query
from tests.crash.kills.statements import STATEMENTS, Scene
from tests.crash.steps import Steps
from tests.forks import Program, forked
from tests.spark.by_spark import WRITTEN

START_S, QUIET_S = 60.0, 20.0
"""So long a process may take for its first step and, without being killed, for another: a query may be at its end."""

SENT, ANSWERED = "sent", "answered"
COMMITS = (SENT, "metastore.truncate_table_req")
"""The steps from which on the outcome of a statement, or of one of its transactions, is not known to others."""


class Moment(NamedTuple):
    """When a process is killed: after so many steps, and then so many seconds."""

    steps: int
    seconds: float


class Outcome(NamedTuple):
    """How a process ended, by its exit status, and what it told before: its steps, and answers to commits."""

    status: int
    told: list[str]

    @property
    def sent(self) -> int:
        """How many commits it has sent, those that were answered among them."""
        return sum(one in COMMITS for one in self.told)

    @property
    def answered(self) -> int:
        """How many of them it knows to have happened."""
        return self.told.count(ANSWERED)


class Victims(Program):
    """Starts processes over a Spark session, one after the other."""

    def __init__(self, spark: SparkSession, scratch: Path) -> None:
        self._told = scratch / "told"
        super().__init__("tests.crash.kills.client", log=scratch / "victims.log", environment=gateway_of(spark))

    def run(self, order: Mapping[str, Any], moment: Moment | None) -> Outcome:
        """Carry out an order to its end, or until it is killed."""
        self._told.write_text("")
        status = int(self.ask(json.dumps({**order, "told": str(self._told), "moment": moment})))
        return Outcome(status, self._told.read_text().split())


def _carry_out(order: dict[str, Any]) -> None:
    told = os.open(order["told"], os.O_WRONLY | os.O_APPEND)
    with hive_acid.spark.session(attached(), order["uri"]) as acid:
        if order["by_spark"]:
            acid.limits = replace(acid.limits, **WRITTEN)
        _tell_commits(told)
        Steps(lambda name: os.write(told, f"{name}\n".encode()), None).watch()  # type: ignore[arg-type]
        if order["kind"] == "query":
            run_query(acid, **order["arguments"])
        else:
            scene = Scene(acid, order["database"], Path(order["loose"]))
            STATEMENTS[order["kind"]].run(scene, **order["arguments"])


def _tell_commits(told: int) -> None:
    call = Connection.call

    @wraps(call)
    def telling(connection: Connection, method: str, *arguments: Any) -> Any:
        is_reader = method == "commit_txn" and arguments[0].txn_type == ttypes.TxnType.READ_ONLY
        commits = method in ("commit_txn", "hive_acid_commit_rows") and not is_reader
        if commits:
            os.write(told, f"{SENT}\n".encode())
        answer = call(connection, method, *arguments)
        if commits:
            os.write(told, f"{ANSWERED}\n".encode())
        return answer

    Connection.call = telling  # type: ignore[assignment, method-assign]


def _status(child: int, told: Path, moment: list[float] | None) -> int:
    """How a process ends, which is killed at `moment`."""
    if moment is not None:
        steps, seconds = moment
        size, until = 0, time.monotonic() + START_S
        while len(told.read_text().split()) < steps and time.monotonic() < until:
            if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                break
            if told.stat().st_size != size:
                size, until = told.stat().st_size, time.monotonic() + QUIET_S
            time.sleep(0.002)
        else:
            time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    """Take orders until the input ends."""
    for line in sys.stdin:
        order = json.loads(line)
        child = forked(partial(_carry_out, order))
        print(_status(child, Path(order["told"]), order["moment"]), flush=True)


if __name__ == "__main__":
    main()
