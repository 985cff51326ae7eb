"""What runs in the Python of one PySpark release: the lives of some contestants, as lines of JSON.

``python -m tests.bench.data.program`` reads its orders as one JSON object from standard input.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from hive_acid.spark.jvm.java import ensure_java
from tests.bench.data.contestants import Contestant, contestant, settings
from tests.bench.data.lifecycle import Clock, Cost, State, deleted, live
from tests.bench.data.orders import orders
from tests.bench.data.planning import planned
from tests.bench.data.statements import bulk, conditions, first, merges, small
from tests.bench.data.writers import written
from tests.waiting import comes

_Of = TypeVar("_Of")

PROFILED = "-XX:Tier3DelayOn=100"
"""On two cores the JVM's compilers are so busy at first that Java stops profiling. What it compiles meanwhile stays a
third slower for as long as it runs, and whose code that is, is luck. With this it profiles all the same.
"""


def main() -> None:
    order = json.load(sys.stdin)
    answers = sys.stdout
    spark = _session(order)
    try:
        clock = Clock(_jvm(spark))
        _line(answers, versions={"PySpark": spark.version, **_versions(order["jars"])})
        make = partial(contestant, spark=spark, root=order["root"], uri=order["uri"], partitioned=order["partitioned"])
        running = {name: make(name) for name in order["contestants"]}
        if order["first"]:
            (one,) = running.values()
            for step, cost in first(spark, one, clock, order["rows"], order["first"]):
                _tell(answers, one.name, step, cost)
            if order["last"]:
                one.drop()  # another PySpark may come next, to the same places
            return
        for life in range(order["warm_ups"] + order["lives"]):
            measured = life >= order["warm_ups"]
            for name, one in _rotated(running, life):
                times = {"reads": order["reads"] if measured else 1, "changes": order["changes"]}
                for step, found in live(spark, one, clock, order["rows"], **times):
                    _tell(answers, name, step, found, measured=measured)
        for name, one in running.items() if order["deleted"] else ():
            if one.changes or name == "orc":
                for step, found in deleted(spark, one, clock, order["rows"], reads=order["reads"]):
                    _tell(answers, name, step, found)
        under_way = {name: _statements(spark, one, clock, order) for name, one in running.items() if one.changes}
        turns = count()
        while under_way:
            for name, steps in _rotated(under_way, next(turns)):
                step_cost = next(steps, None)
                if step_cost is None:
                    del under_way[name]
                else:
                    _tell(answers, name, *step_cost)
        for name, one in running.items() if order["writers"] else ():
            if one.changes:
                _line(answers, contestant=name, **written(spark, one, order["writers"])._asdict())
        if order["first_statements"]:
            for one in running.values():
                one.restart()
                one.new_table()
                one.load(orders(spark, order["rows"]))
            return
        for one in running.values():
            one.drop()
        for what, seconds in planned(spark, order["root"], order["uri"], order["reads"]) if order["planning"] else ():
            _line(answers, contestant="hive-acid", planning=what, seconds=seconds)
    finally:
        spark.stop()


def _versions(jars: Sequence[str]) -> dict[str, str]:
    """Versions by the names of jars: ``delta-spark_4.1_2.13-4.4.0.jar``."""
    names = (Path(jar).stem.rpartition("-") for jar in jars)
    return {name.split("-")[0]: version for name, _, version in names}


def _rotated(given: Mapping[str, _Of], turn: int) -> list[tuple[str, _Of]]:
    """The items, of which another one is the first in each turn: that one has Java compile what all use of Spark."""
    items = list(given.items())
    first = turn % len(items)
    return [*items[first:], *items[:first]]


def _statements(
    spark: SparkSession, one: Contestant, clock: Clock, order: dict[str, Any]
) -> Iterator[tuple[str, Cost]]:
    times = order["changes"]
    if order["conditions"]:
        yield from conditions(spark, one, clock, order["rows"], times)
    if order["merges"]:
        yield from merges(spark, one, clock, order["root"], order["rows"], times)
    if order["bulk"]:
        yield from bulk(spark, one, clock, order["root"], order["rows"], times)
    if order["small"]:
        yield from small(spark, one, clock, times * 5)


def _tell(answers: Any, name: str, step: str, found: Cost | State, *, measured: bool = True) -> None:
    """What is not measured is checked: rows are told in every life."""
    if isinstance(found, Cost):
        if measured:
            _line(answers, contestant=name, step=step, **asdict(found))
    else:
        _line(answers, contestant=name, stage=step, **found._asdict())


def _line(answers: Any, **words: object) -> None:
    answers.write(json.dumps(words) + "\n")
    answers.flush()


def _session(order: dict[str, Any]) -> SparkSession:
    ensure_java()
    builder = SparkSession.builder.master("local[2]").appName("hive-acid bench")
    fixed = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "4g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC {PROFILED if order['tuned'] else ''}",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.log.level": "ERROR",
        "spark.local.dir": str(Path(order["root"]) / "spark"),
    }
    if order["tuned"]:
        # Of all contestants' programs together Spark keeps 100 by default, so that none would ever be warm.
        fixed["spark.sql.codegen.cache.maxEntries"] = "1000"
    if order["jars"]:
        fixed["spark.jars"] = ",".join(order["jars"])
    for key, value in {**fixed, **settings(order["contestants"], order["root"])}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _jvm(spark: SparkSession) -> int:
    """The JVM's process id: the launcher becomes it."""
    pid = int(spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]
    comes(lambda: "java" in Path(f"/proc/{pid}/comm").read_text(), 10)
    return pid


if __name__ == "__main__":
    main()
