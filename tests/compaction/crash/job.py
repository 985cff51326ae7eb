"""The Spark program of a compaction, killed at a step: ``python -m tests.compaction.crash.job TOLD [STEP NUMBER]``.

It is the real program but for its session, which is in the tests' JVM that is warm already: it attaches to that by
py4j, as a driver's Python attaches to its own JVM. Steps are told in the file TOLD. However small the files are, they
are merged bucket by bucket and in pieces, the way with the most steps.
"""

from __future__ import annotations

import os
import sys

from hive_acid.spark.compact import lane_merge, lanes
from hive_acid.spark.compact.compactor import lines_until_end, serve
from hive_acid.spark.compact.jobs import OwnSessions
from tests.compaction.crash.steps import Point, Steps
from tests.crash.client import attached


def main() -> None:
    """Take jobs until the input ends."""
    told = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    last = Point(sys.argv[2], int(sys.argv[3])) if len(sys.argv) > 2 else None
    steps = Steps(lambda name: os.write(told, f"{name}\n".encode()), last)
    steps.service = "Spark job"
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    session = attached()
    steps.watch_job()
    lane_merge.ONE_TASK_BYTES, lanes._LEAST_RUN_BYTES, lanes._RUNS = -1, 1, 1000
    serve(OwnSessions(session), lines_until_end(sys.stdin), answers)


if __name__ == "__main__":
    main()
