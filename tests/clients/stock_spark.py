"""Stock PySpark over its bundled Hive 2.3.10 client, in a process and a JVM of its own.

``python -m tests.clients.stock_spark thrift://host:port SCRATCH`` reads one SQL statement per line
(as JSON) and answers each with its rows, or with the error as the user would see it. `StockSpark` is the other end of
the pipe.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO, Any, Self

from tests.jvm import IN_UTC


class SparkRefusedError(Exception):
    """What Spark told its user instead of rows."""


class StockSpark:
    """A running session; knows nothing of hive-acid but the address."""

    def __init__(self, uri: str, scratch: Path) -> None:
        scratch.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "tests.clients.stock_spark", uri, str(scratch)]
        with (scratch / "spark.log").open("w") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1
            )

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a statement, lists for arrays. Raises SparkRefusedError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(statement) + "\n")
        answer = self._process.stdout.readline()
        assert answer, "Spark has ended: see spark.log"
        reply = json.loads(answer)
        if "error" in reply:
            raise SparkRefusedError(reply["error"])
        return [tuple(row) for row in reply["rows"]]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def main(uri: str, scratch: str) -> None:
    """Answer statements until the input ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)  # what Spark prints goes to the log instead
    os.dup2(2, 1)
    with _session(uri, Path(scratch)) as spark:
        for line in sys.stdin:
            _answer(spark, json.loads(line), answers)


def _answer(spark: Any, statement: str, answers: IO[str]) -> None:
    try:
        reply = {"rows": [list(row) for row in spark.sql(statement).collect()]}
    except Exception as error:
        reply = {"error": str(error)}  # type: ignore[dict-item]
    answers.write(json.dumps(reply, default=str) + "\n")


@contextlib.contextmanager
def _session(uri: str, scratch: Path) -> Any:
    from pyspark.sql import SparkSession

    from hive_acid.spark.jvm.java import ensure_java

    ensure_java()
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"{IN_UTC} -Djava.io.tmpdir={scratch} -XX:-UsePerfData",
        "spark.local.dir": str(scratch),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.hadoop.hive.metastore.uris": uri,
        "spark.hadoop.hive.exec.dynamic.partition.mode": "nonstrict",
        "spark.hadoop.hive.metastore.failure.retries": "0",
        "spark.hadoop.hive.metastore.connect.retries": "1",
    }
    builder = SparkSession.builder.master("local[2]").appName("stock Spark").enableHiveSupport()
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
