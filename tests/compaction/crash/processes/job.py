"""The Spark program of a compaction, killed at a step.

``python -m tests.compaction.crash.processes.job TOLD [STEP NUMBER]``. It is the real program but for its session, which
is in the tests' JVM that is warm already: it attaches to that by py4j, as a driver's Python attaches to its own JVM.
Steps are told in the file TOLD. However small the files are, they are merged bucket by bucket and in pieces, the way
with the most steps.
"""

from __future__ import annotations

import os
import sys
from functools import partial

from hive_acid.spark.compact.compactor import lines_until_end, run_job
from hive_acid.spark.compact.jobs import Jobs, OwnSessions
from hive_acid.spark.limits import Limits
from tests.compaction.crash.steps import Point, Steps
from tests.crash.client import attached


def main() -> None:
    """Take jobs until the input ends."""
    told = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    last = Point(sys.argv[2], int(sys.argv[3])) if len(sys.argv) > 2 else None
    steps = Steps(lambda name: os.write(told, f"{name}\n".encode()), last)  # type: ignore[arg-type]
    steps.service = "Spark job"
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    session = attached()
    steps.watch_job()
    limits = Limits(by_bucket_bytes=-1, run_bytes=1, runs=1000)
    Jobs(OwnSessions(session), answers, partial(run_job, limits=limits)).take(lines_until_end(sys.stdin))


if __name__ == "__main__":
    main()
