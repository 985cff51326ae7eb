"""The process that compacts: a warm Spark session that takes jobs as JSON, one per line, and answers each with a line.

``python -m hive_acid.spark.compactor`` reads jobs from its standard input until that ends; nothing but answers goes to
its standard output. ``--job FILE --result FILE`` runs one job, for spark-submit. A job is that of
`CompactionJob.from_json` with an ``id``, which the answer repeats.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from pyspark.sql import SparkSession

from hive_acid import files
from hive_acid.spark.compact import CompactionJob, compact
from hive_acid.spark.java import ensure_java
from hive_acid.spark.timezone import jvm_zone

ZONE = "UTC"
"""The zone of a compactor that we start ourselves: it has no gaps, so every wall clock survives."""

_END_WITHIN_S = 4.0


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
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "WARN")
    )
    if config.master.startswith("local"):
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    return builder.getOrCreate()


def run_job(spark: SparkSession, job: Mapping[str, Any]) -> dict[str, Any]:
    """Run one job and answer it; a failure is an answer too."""
    job_id = job.get("id")
    try:
        result = compact(spark, CompactionJob.from_json(job))
    except Exception as error:  # whatever it is: an error of the JVM comes as py4j's, which Connect does not have
        return _failure(job_id, error)
    return {
        "id": job_id,
        "ok": True,
        "rows": result.rows,
        "deletes": result.deletes,
        "bytes": result.size,
        "directories": list(result.directories),
        "seconds": result.seconds,
    }


def serve(spark: SparkSession, jobs: Iterable[str], answers: TextIO) -> None:
    """Answer each line of `jobs` with a line of `answers`."""
    for line in jobs:
        if not line.strip():
            continue
        try:
            job = json.loads(line)
            answer = run_job(spark, job) if isinstance(job, dict) else _failure(None, ValueError("a job is an object"))
        except json.JSONDecodeError as error:
            answer = _failure(None, error)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


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


def _failure(job_id: object, error: Exception) -> dict[str, Any]:
    text = str(error).strip()
    return {"id": job_id, "ok": False, "error": f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"}


def main(arguments: list[str] | None = None) -> int:
    """Run as a process; 0 unless a job given by ``--job`` failed."""
    parser = argparse.ArgumentParser(
        prog="python -m hive_acid.spark.compactor", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--job", metavar="FILE", help="run the one job in this file")
    parser.add_argument("--result", metavar="FILE", help="write its answer to this file")
    defaults = CompactorConfig()
    parser.add_argument("--master", default=defaults.master)
    parser.add_argument("--driver-memory", default=defaults.driver_memory)
    parser.add_argument("--shuffle-partitions", type=int, default=defaults.shuffle_partitions)
    options = parser.parse_args(arguments)
    if bool(options.job) != bool(options.result):
        parser.error("--job and --result go together")
    if options.job:
        spark = SparkSession.builder.appName("hive-acid compactor").getOrCreate()
        spark.conf.set("spark.sql.session.timeZone", jvm_zone(spark))
        answer = run_job(spark, json.loads(files.read(options.job)))
        files.write(options.result, json.dumps(answer).encode())
        spark.stop()
        return 0 if answer["ok"] else 1
    # The JVM inherits file descriptor 1: answers get one of their own, everything else goes to standard error.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    spark = start_session(CompactorConfig(options.master, options.driver_memory, options.shuffle_partitions))
    serve(spark, lines_until_end(sys.stdin), answers)
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
