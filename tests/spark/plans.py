"""What Spark did for a frame: its executed scans, with their metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

SPARK = tuple(map(int, pyspark.__version__.split(".")[:3]))


class Scan(NamedTuple):
    """One executed file scan: files and rows read, and the plan's words about it."""

    files: int
    rows: int
    text: str


def scans(frame: DataFrame) -> list[Scan]:
    """Run `frame` and return its file scans."""
    execution: Any = frame._jdf.queryExecution()
    frame._jdf.collect()
    return [_scan(node) for node in _nodes(execution.executedPlan()) if node.metrics().contains("numFiles")]


def _scan(node: Any) -> Scan:
    metric = {name: node.metrics().apply(name).value() for name in ("numFiles", "numOutputRows")}
    return Scan(metric["numFiles"], metric["numOutputRows"], node.verboseStringWithOperatorId())


def _nodes(node: Any) -> list[Any]:
    kind = node.getClass().getSimpleName()
    if kind == "AdaptiveSparkPlanExec":
        return _nodes(node.executedPlan())
    if kind.endswith("QueryStageExec"):
        return _nodes(node.plan())
    found = [node]
    children = node.children()
    for position in range(children.size()):
        found += _nodes(children.apply(position))
    return found


class Written(NamedTuple):
    """What a write did: the tree of its plan, the plan's words about each node, and sums of metrics by their names."""

    tree: str
    text: str
    metrics: dict[str, int]


def last_write(spark: SparkSession) -> Written:
    """The last write of a session, from what Spark keeps of it."""
    if not hasattr(spark, "_jsparkSession"):
        pytest.skip("a client of Spark Connect cannot look at the executed plan")
    store: Any = spark._jsparkSession.sharedState().statusStore()
    for found in reversed(_executions(store)):
        plan = found.physicalPlanDescription()
        if "WriteFiles" in plan:
            return Written(plan.partition("== Initial Plan ==")[0], plan, _sums(store, found))
    raise AssertionError("nothing has been written")


def _sums(store: Any, execution: Any) -> dict[str, int]:
    values = store.executionMetrics(execution.executionId())
    sums: dict[str, int] = {}
    # A metric is listed again with each change that adaptive execution makes to the plan.
    listed = {m.accumulatorId(): m for m in map(execution.metrics().apply, range(execution.metrics().size()))}
    for accumulator, metric in listed.items():
        value = values.get(accumulator)
        if value.isDefined() and value.get().replace(",", "").isdigit():
            sums[metric.name()] = sums.get(metric.name(), 0) + int(value.get().replace(",", ""))
    return sums


@contextmanager
def pushed_to_orc(spark: SparkSession) -> Iterator[list[str]]:
    """The filters that Spark has pushed into each scan of ACID files, known when the block has ended."""
    context: Any = spark.sparkContext._jsc.sc()
    store: Any = spark._jsparkSession.sharedState().statusStore()
    before = {one.executionId() for one in _executions(store)}
    found: list[str] = []
    yield found
    context.listenerBus().waitUntilEmpty()
    for one in _executions(store):
        if one.executionId() not in before:
            for told in re.findall(r"^\(\d+\) Scan orc\b(.*?)\n\n", one.physicalPlanDescription(), re.M | re.S):
                if "bucket:int" in told:
                    found += re.findall(r"PushedFilters: (.*)", told) or ["[]"]


def _executions(store: Any) -> list[Any]:
    listed = store.executionsList()
    return [listed.apply(at) for at in range(listed.size())]
