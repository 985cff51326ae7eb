"""The write distribution of an INSERT, which `plans.tasks` decides: what Spark knows of its rows and running tasks.

Spark's own estimate tells: what it explains of the cost names the nodes of the plan and the size of the result. Of one
that keeps every row the estimate holds; of one that only drops rows it is an upper bound; of all others nothing is
known, and Spark chooses by what the shuffle turns out to hold.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hive_acid.spark.jvm.frames.classic import frame_in_jvm
from hive_acid.spark.plans.choice import Choice
from hive_acid.spark.plans.tasks import Estimate, Tasks, tasks_of

TARGET_FILE_SIZE_BYTES = 256 * 1024 * 1024
"""How large a file should be, unless a session says otherwise."""

BY_SIZE = {"spark.sql.files.openCostInBytes": str(256 * 1024)}
"""The setting by which the tasks of a job get even shares of small and large files.

To open a file takes Spark 3 ms, in which it reads so much of one. By its default each file counts as 4 MB more than it
has: of a table of many small files and a few large ones one task gets all of the latter.
"""

_MODE = "cost"
_CACHED = "InMemoryRelation"
_KEEPING = {
    "Project",
    "Relation",
    "RelationV2",
    "LocalRelation",
    "Range",
    "Union",
    "SubqueryAlias",
    "LogicalRDD",
    "OneRowRelation",
    _CACHED,
}
_GIVEN = {"LocalRelation", "OneRowRelation", "Project", "Union"}
_DROPPING = {"Filter", "GlobalLimit", "LocalLimit", "Aggregate", "Distinct", "Sort", "Deduplicate", "Sample", "Window"}
_PLACING = {"Repartition", "RepartitionByExpression", "RebalancePartitions"}
_TREE = " :|+-"
_NODE = re.compile(r"\w+")
_SIZE = re.compile(r"Statistics\(sizeInBytes=([0-9.E+]+) ([KMGTPE]?i?B)")
_UNITS = {"B": 1, **{f"{unit}iB": 1 << 10 * power for power, unit in enumerate("KMGTPE", 1)}}
_KNOWN_BELOW_BYTES = 1 << 50
"""Spark says 8 EiB where it does not know."""


class Distributor:
    """What a Spark session is asked for a decision; `target_bytes` is how large a file should be."""

    def __init__(self, spark: SparkSession, target_bytes: int) -> None:
        if target_bytes < 1:
            raise ValueError(f"a target file size of {target_bytes} bytes: it has to be at least 1")
        self.target_bytes = target_bytes
        self._spark = spark
        self._parallelism: int | None = None

    def reads_in(self, sizes: Sequence[int]) -> Choice[Tasks]:
        """In how many tasks files of these sizes are read."""
        return tasks_of(sizes, self.cores)

    def cores(self) -> int:
        """How many tasks run side by side; asked of Spark once, over Connect by a query."""
        context: Any = vars(self._spark).get("_sc")
        if self._parallelism is None and context is not None:
            self._parallelism = int(context.defaultParallelism)
        elif self._parallelism is None:
            parts = self._spark.range(100_000).select(F.spark_partition_id().alias("part"))
            self._parallelism = int(parts.agg(F.max("part")).collect()[0][0]) + 1
        return self._parallelism


def estimated(frame: DataFrame) -> Estimate:
    """What Spark says of `frame`; nothing is run."""
    try:
        return parsed(_explained(frame))
    except PySparkException:
        # Rows that are given in the plan are computed while it is made: if that fails, the job will say so.
        return parsed("")


def _explained(frame: DataFrame) -> str:
    """What `explain` prints. SQL would need a view of the frame, and analyse it twice more."""
    asked: Any = frame
    of_jvm = frame_in_jvm(frame)
    if of_jvm is None:
        return str(asked._explain_string(mode=_MODE))
    return str(asked._sc._jvm.PythonSQLUtils.explainString(of_jvm.queryExecution(), _MODE))


def parts_of(frame: DataFrame) -> int | None:
    """In how many tasks a frame comes of which `estimated` is exact; None if Spark does not tell without a job."""
    of_jvm = frame_in_jvm(frame)
    if of_jvm is None:
        return None
    try:
        leaves = of_jvm.queryExecution().executedPlan().collectLeaves()
        scans = [leaves.apply(position).inputRDDs() for position in range(leaves.length())]
        return sum(int(scan.head().getNumPartitions()) for scan in scans)
    except (PySparkException, Py4JError):
        return None  # a plan that fails, which the job will say, or a scan of another kind


def parsed(text: str) -> Estimate:
    """The estimate out of the text of ``explain``; where it is not understood, nothing is known."""
    _, _, plan = text.partition("== Optimized Logical Plan ==\n")
    lines = [line for line in plan.partition("\n\n")[0].splitlines() if line.strip()]
    nodes = _nodes(lines)
    size = _SIZE.search(lines[0]) if lines else None
    above = next((node for node in nodes if node != "Project"), "")
    size_bytes = int(float(size[1]) * _UNITS[size[2]]) if size else None
    if size_bytes is not None and (size_bytes >= _KNOWN_BELOW_BYTES or not set(nodes) <= _KEEPING | _DROPPING):
        size_bytes = None
    return Estimate(
        size_bytes,
        is_exact=set(nodes) <= _KEEPING,
        is_placed=above in _PLACING,
        is_given=bool(nodes) and set(nodes) <= _GIVEN,
    )


def _nodes(lines: list[str]) -> list[str]:
    """The names of the nodes, without those of the plan by which a cached frame was made."""
    nodes: list[str] = []
    cached_at: int | None = None
    for line in lines:
        at = len(line) - len(line.lstrip(_TREE))
        match = _NODE.match(line, at)
        name = match[0] if match else ""
        if cached_at is not None and at > cached_at:
            continue
        cached_at = at if name == _CACHED else None
        nodes.append(name)
    return nodes
