"""Clients that are killed: a process each, all over one Spark that is warm already.

``python -m tests.crash.client`` takes orders, one JSON object per line, forks a client for each, and answers with its
exit status and the steps that it has told. The JVM is that of the tests: each client attaches to it by py4j, as a
driver's Python attaches to its own JVM.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

import hive_acid.spark
from tests.crash.statements import STATEMENTS
from tests.crash.steps import Steps
from tests.forks import Program, status_of


class Outcome(NamedTuple):
    """How a client ended, by its exit status, and the steps that it began."""

    status: int
    steps: list[str]


class Clients(Program):
    """Starts clients over a Spark session, one after the other."""

    def __init__(self, spark: SparkSession, scratch: Path) -> None:
        self._told = scratch / "told"
        super().__init__("tests.crash.client", log=scratch / "clients.log", environment=gateway_of(spark))

    def run(self, uri: str, statement: str, database: str, scratch: Path, last: int | None = None) -> Outcome:
        """Run a statement to its end, or up to the step number `last`, before which the client is killed."""
        self._told.write_text("")
        order = {
            "uri": uri, "statement": statement, "database": database, "scratch": str(scratch), "last": last,
            "told": str(self._told),
        }  # fmt: skip
        status = int(self.ask(json.dumps(order)))
        assert status in (0, -9), self.complaint()
        return Outcome(status, self._told.read_text().split())


def gateway_of(spark: SparkSession) -> dict[str, str]:
    """The environment of a program that attaches to the JVM of a session by `attached`."""
    parameters: Any = spark.sparkContext._gateway.gateway_parameters  # type: ignore[union-attr]
    return {"PYSPARK_GATEWAY_PORT": str(parameters.port), "PYSPARK_GATEWAY_SECRET": parameters.auth_token}


def attached() -> SparkSession:
    """A session in the JVM that runs already."""
    gateway = launch_gateway()
    jvm: Any = gateway.jvm
    running = jvm.org.apache.spark.SparkContext.getOrCreate()
    java_context = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(running)
    context = SparkContext(gateway=gateway, jsc=java_context, conf=SparkConf(_jconf=running.conf()))
    session = jvm.org.apache.spark.sql.SparkSession.builder().getOrCreate().newSession()
    return SparkSession(context, session)


def _carry_out(order: dict[str, Any]) -> None:
    told = os.open(order["told"], os.O_WRONLY | os.O_APPEND)
    with hive_acid.spark.session(attached(), order["uri"]) as acid:
        Steps(lambda name: os.write(told, f"{name}\n".encode()), order["last"]).watch()  # type: ignore[arg-type]
        STATEMENTS[order["statement"]].run(acid, order["database"], Path(order["scratch"]))


def main() -> None:
    """Take orders until the input ends."""
    for line in sys.stdin:
        print(status_of(partial(_carry_out, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
