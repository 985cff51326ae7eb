"""What Spark did for a frame: its executed scans, with their metrics."""

from __future__ import annotations

from typing import Any, NamedTuple

from pyspark.sql import DataFrame


class Scan(NamedTuple):
    """One executed file scan: files and rows read, and the plan's words about it."""

    files: int
    rows: int
    text: str


def scans(frame: DataFrame) -> list[Scan]:
    """Run `frame` and return its file scans."""
    execution: Any = frame._jdf.queryExecution()  # type: ignore[operator]
    frame._jdf.collect()  # type: ignore[operator]
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
