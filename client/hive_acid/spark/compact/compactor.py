"""The process that compacts: a warm Spark session, or one of a Spark Connect server, for jobs given as lines of JSON.

``python -m hive_acid.spark.compact.compactor`` reads jobs from its standard input until that ends, for
`hive_acid.spark.compact.jobs`; nothing but answers goes to its standard output. ``--directory PLACE`` runs the one job
in that directory, for spark-submit (`hive_acid.spark.compact.submitted`). A job is a `hive_acid.compaction_job`.
"""

from __future__ import annotations

import argparse
import os
import queue
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from pyspark.sql import SparkSession

from hive_acid.compaction_job import CompactionJob, TellProgress, unheard
from hive_acid.errors import ColumnError, UnsupportedTableError
from hive_acid.spark.compact.compaction import compact
from hive_acid.spark.compact.job import columns_of
from hive_acid.spark.compact.jobs import Jobs, OwnSessions, RemoteSessions, Sessions, failure
from hive_acid.spark.compact.submitted import run_submitted
from hive_acid.spark.jvm.java import ensure_java
from hive_acid.spark.limits import DEFAULT, Limits
from hive_acid.spark.values.timezone import refuse_zone_with_gaps
from hive_acid.streaming.memory import keep_freed_memory

ZONE = "UTC"
"""The zone of a compactor that we start ourselves: it has no gaps, so every wall clock survives."""

_END_WITHIN_S = 4.0

_WORDS_OF_CONNECT = ("SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
"""By these PySpark takes whoever starts it for a client of Spark Connect, whatever master it is told."""


@dataclass(frozen=True, slots=True)
class CompactorConfig:
    """How a compactor starts Spark.

    `master` is Spark's; `driver_memory` in Spark's notation; `shuffle_partitions` bounds the tasks of a compaction.
    """

    master: str = "local[2]"
    driver_memory: str = "1g"
    shuffle_partitions: int = 16


def start_session(config: CompactorConfig) -> SparkSession:
    """A Spark session for compactions alone, on Java of its own if the machine has none."""
    ensure_java()
    for word in _WORDS_OF_CONNECT:
        os.environ.pop(word, None)
    zone = f"-Duser.timezone={ZONE}"
    builder = (
        SparkSession.builder.master(config.master)
        .appName("hive-acid compactor")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", config.driver_memory)
        .config("spark.driver.extraJavaOptions", zone)
        .config("spark.executor.extraJavaOptions", zone)
        .config("spark.sql.session.timeZone", ZONE)
        .config("spark.sql.shuffle.partitions", str(config.shuffle_partitions))
        .config("spark.scheduler.mode", "FAIR")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "WARN")
    )
    if config.master.startswith("local"):
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    return builder.getOrCreate()


def run_job(
    spark: SparkSession, job: Mapping[str, Any], report: TellProgress = unheard, limits: Limits = DEFAULT
) -> dict[str, Any]:
    """Run one job and answer it; a failure is an answer too. `report` takes its progress."""
    job_id = job.get("id")
    try:
        asked = CompactionJob.from_json(job)
        if not asked.insert_only:
            refuse_zone_with_gaps(spark, columns_of(asked))
        result = compact(spark, asked, report, limits)
    except (UnsupportedTableError, ColumnError) as error:
        return {**failure(job_id, error), "refused": True}
    except Exception as error:  # whatever it is: an error of the JVM comes as py4j's, which Connect does not have
        return failure(job_id, error)
    return result.to_answer(asked.id)


def serve(sessions: Sessions, lines: Iterable[str], answers: TextIO) -> None:
    """Do what `lines` say, and answer in lines of `answers`."""
    Jobs(sessions, answers, run_job).take(lines)


def lines_until_end(stream: TextIO) -> Iterator[str]:
    """The lines of `stream`. When it ends, whoever wrote to it is gone or wants an end: so does this process, even in
    the middle of a job.
    """
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        for line in stream:
            lines.put(line)
        lines.put(None)
        time.sleep(_END_WITHIN_S)
        os._exit(1)  # the JVM ends with the pipe that it has from us

    threading.Thread(target=read, name="jobs", daemon=True).start()
    while (line := lines.get()) is not None:
        yield line


def main(arguments: list[str] | None = None) -> int:
    """Run as a process; 0 unless a job given by ``--directory`` failed."""
    parser = argparse.ArgumentParser(
        prog="python -m hive_acid.spark.compact.compactor", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--directory", metavar="PLACE", help="run the one job in this directory")
    parser.add_argument("--remote", metavar="URL", help="a Spark Connect server, instead of a Spark of its own")
    defaults = CompactorConfig()
    parser.add_argument("--master", default=defaults.master)
    parser.add_argument("--driver-memory", default=defaults.driver_memory)
    parser.add_argument("--shuffle-partitions", type=int, default=defaults.shuffle_partitions)
    options = parser.parse_args(arguments)
    keep_freed_memory()
    if options.directory:
        return run_submitted(options.directory, run_job)
    # The JVM inherits file descriptor 1: answers get one of their own, everything else goes to standard error.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    lines = lines_until_end(sys.stdin)
    if options.remote:
        serve(RemoteSessions(options.remote), lines, answers)
        return 0
    spark = start_session(CompactorConfig(options.master, options.driver_memory, options.shuffle_partitions))
    serve(OwnSessions(spark), lines, answers)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
