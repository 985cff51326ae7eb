"""``python -m tests.crash.cluster URI SCRATCH``: writes on a Spark with executors of their own, some of which fail.

Tasks fail at their first attempt, take so long that they are started a second time, and executors are killed under
running tasks, with what earlier stages have left on them. At its end it says whether the table holds what it should.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.errors import StorageError
from hive_acid.spark.jvm.java import ensure_java
from tests.jvm import IN_UTC

ROWS = 400
ATTEMPTS = 3
TABLE = "d.t"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": IN_UTC,
    "spark.executor.extraJavaOptions": IN_UTC,
    "spark.executor.memory": "512m",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.task.maxFailures": "6",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "2",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "200ms",
    "spark.log.level": "OFF",
}


def _first_time(directory: str, name: str) -> bool:
    """Whether nobody has been here, in any process."""
    try:
        (Path(directory) / name).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _task() -> int:
    context = TaskContext.get()
    assert context is not None
    return context.partitionId()


def _fails(directory: str) -> Callable[[int], int]:
    def run(value: int) -> int:
        if value % 100 == 94 and _first_time(directory, f"failed-{_task()}"):
            raise RuntimeError("as if")
        return value

    return run


def _is_slow(directory: str) -> Callable[[int], int]:
    def run(value: int) -> int:
        if value == 150 and _first_time(directory, "slow"):
            time.sleep(4)
        return value

    return run


def _dies(directory: str) -> Callable[[int], int]:
    """Kills the executor, and with it the output of the tasks that it has done."""

    def run(value: int) -> int:
        if value == 350 and _first_time(directory, "killed"):
            daemon = int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(daemon, signal.SIGKILL)
        return value

    return run


def _say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


def main(uri: str, scratch: str) -> None:
    """Write with a trouble in each statement, and print what was found and what should have been."""
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local-cluster[2,2,512]").appName("trouble")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()

    def rows(first: int, last: int, name: str, trouble: Callable[[str], Callable[[int], int]]) -> Any:
        number = F.col("id").cast("int")
        parts = spark.range(first, last, 1, 8).select(number.alias("id"), (F.col("id") % 2).cast("int").alias("p"))
        return parts.withColumn("v", troubled(name, trouble))

    def troubled(name: str, trouble: Callable[[str], Callable[[int], int]]) -> Column:
        place = Path(scratch) / name
        place.mkdir(parents=True, exist_ok=True)
        return F.udf(trouble(str(place)), "int")(F.col("id").cast("int"))

    with hive_acid.spark.session(spark, uri) as acid:
        acid.create_table(TABLE, {"id": "int", "v": "int"}, partitioned_by={"p": "int"})
        _say("slow")
        assert acid.insert(TABLE, rows(0, 300, "slow", _is_slow)) == 300
        _say("dies")
        assert acid.insert(TABLE, rows(300, ROWS, "dies", _dies)) == ROWS - 300
        _say("fails")
        assert acid.update(TABLE, {"v": troubled("fails", _fails) + 1000}, "id % 10 < 5") == ROWS // 2
        _say("dies too")
        for _ in range(ATTEMPTS):
            merged = acid.merge(TABLE, rows(300, 400, "dies too", _dies), "t.id = s.id")
            try:
                merged.whenMatchedDelete("s.id % 2 = 0").whenMatchedUpdateAll().execute()
            except (PySparkException, Py4JJavaError, StorageError):
                # The source is kept on executors; with one of these the whole statement may go, but never half of it.
                continue
            break
        _say("reads")
        found = sorted((row.id, row.v) for row in acid.table(TABLE).collect())
    expected = {number: number + 1000 if number % 10 < 5 else number for number in range(300)}
    expected |= {number: number for number in range(301, ROWS, 2)}
    had_trouble = [place.name for place in Path(scratch).iterdir() if any(place.iterdir())]
    print(json.dumps({"ok": found == sorted(expected.items()), "troubles": sorted(had_trouble)}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
