"""The demo's Spark sessions: small, quiet, and in one time zone."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import SparkSession

from hive_acid.spark.jvm.java import ensure_java


def start(name: str, work: Path, memory: str = "2g") -> SparkSession:
    """A local session on two threads; it brings its own Java if the machine has none.

    Its log and its temporary files are below `work`, even those that a killed session leaves.
    """
    ensure_java()
    scratch = work / "scratch"
    scratch.mkdir(exist_ok=True)
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC -Djava.io.tmpdir={scratch} -XX:-UsePerfData",
        "spark.local.dir": str(scratch),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.appName(name).master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _stderr_to(work / "spark.log"):  # the JVM keeps what it is born with
        spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextlib.contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    kept = os.dup(2)
    with log.open("a") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
