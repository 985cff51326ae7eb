"""The write distribution of an INSERT, which `plans.tasks` decides: what Spark knows of its rows and running tasks.

Spark's own estimate tells: what it explains of the cost names the nodes of the plan and the size of the result. Of one
that keeps every row the estimate holds; of one that only drops rows it is an upper bound; of all others nothing is
known. What it explains of the tasks tells where rows come from in the end: from sources, or out of a shuffle.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
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
_OPTIMIZED, _PHYSICAL = "== Optimized Logical Plan ==\n", "== Physical Plan ==\n"
_CACHED = {"InMemoryRelation", "InMemoryTableScan"}
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
    "InMemoryRelation",
}
_GIVEN = {"LocalRelation", "OneRowRelation", "Project", "Union"}
_DROPPING = {"Filter", "GlobalLimit", "LocalLimit", "Aggregate", "Distinct", "Sort", "Deduplicate", "Sample", "Window"}
_PLACING = {"Repartition", "RepartitionByExpression", "RebalancePartitions"}
_ADAPTIVE = "AdaptiveSparkPlan"
_SHUFFLE = "Exchange"
_IN_ONE_TASK = re.compile(r"Exchange SinglePartition\b")
_BEFORE = {_SHUFFLE, "BroadcastExchange"}
"""What is below these is read before, by other tasks."""

_ASIDE = {"Subquery", "SubqueryBroadcast", "SubqueryAdaptiveBroadcast", "ReusedSubquery"}
"""What stands below a node and is none of its children."""

_AT_HAND = {_ADAPTIVE, "Project", "LocalTableScan", *_ASIDE}
"""The nodes of a subquery whose rows stand in the plan."""

_TREE = " :|+-"
_NODE = re.compile(r"(?:\*\(\d+\) )?(\w+)")
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


def parts_of(frame: DataFrame, leaves: Sequence[bool]) -> int | None:
    """In how many tasks the rows of a frame come, which are read from some of its `leaves`, as `estimated` has them.

    None if Spark does not tell without a job.
    """
    of_jvm = frame_in_jvm(frame)
    if of_jvm is None or not any(leaves):
        return None
    try:
        plan = of_jvm.queryExecution().executedPlan()
        if plan.nodeName() == _ADAPTIVE:
            plan = plan.initialPlan()
        found = plan.collectLeaves()
        if found.length() != len(leaves):
            return None
        return sum(_parts(found.apply(position)) for position, is_last in enumerate(leaves) if is_last)
    except (PySparkException, Py4JError):
        return None  # a plan that fails, which the job will say, or a scan of another kind


def _parts(leaf: Any) -> int:
    """In how many tasks a source is read: no task runs for it, but the subqueries that are asked of files."""
    reads_files = leaf.getClass().getSimpleName() == "FileSourceScanExec"
    return int((leaf.execute() if reads_files else leaf.inputRDDs().head()).getNumPartitions())


def parsed(text: str) -> Estimate:
    """The estimate out of the text of ``explain``; where it is not understood, nothing is known."""
    shown = [node for node in _nodes(text, _OPTIMIZED) if not node.is_aside]
    names = {node.name for node in shown}
    above = next((node.name for node in shown if node.name != "Project"), "")
    sources = [_size_of(node.line) for node in shown if node.is_leaf]
    known = [size for size in sources if size is not None]
    is_shuffled, leaves = _come_from(_nodes(text, _PHYSICAL))
    return Estimate(
        _size_of(shown[0].line) if shown and names <= _KEEPING | _DROPPING else None,
        is_exact=names <= _KEEPING,
        is_placed=above in _PLACING,
        is_given=bool(shown) and names <= _GIVEN,
        is_shuffled=is_shuffled,
        read_bytes=sum(known) if known and len(known) == len(sources) else None,
        leaves=leaves,
    )


@dataclass(slots=True)
class _Node:
    """A node of a plan as it is shown; `is_last` says that the rows are in the tasks in which they come in the end.

    One that `is_aside` is of a subquery, or of the plan by which a cached frame was made. A leaf has no other below it.
    """

    name: str
    line: str
    at: int
    is_last: bool = True
    is_aside: bool = False
    is_leaf: bool = True


def _nodes(text: str, title: str) -> list[_Node]:
    """The nodes of one of the plans that are explained, from the top."""
    _, _, plan = text.partition(title)
    found: list[_Node] = []
    above: list[_Node] = []
    for line in plan.partition("\n\n")[0].splitlines():
        at = len(line) - len(line.lstrip(_TREE))
        match = _NODE.match(line, at)
        name = match[1] if match else ""
        node = _Node(name, line, at, is_aside=name in _ASIDE)
        while above and above[-1].at >= at:
            above.pop()
        if above:
            node.is_last = above[-1].is_last and above[-1].name not in _BEFORE
            node.is_aside |= above[-1].is_aside or above[-1].name in _CACHED
            above[-1].is_leaf &= node.is_aside
        above.append(node)
        found.append(node)
    return found


def _come_from(nodes: Sequence[_Node]) -> tuple[bool, tuple[bool, ...]]:
    """Whether all rows of a physical plan come out of shuffles of which Spark chooses the parts; and as `Estimate` has
    its leaves, none where Spark would run more than subqueries whose rows stand in the plan to tell their tasks.
    """
    shown = [node for node in nodes if not node.is_aside]
    is_adaptive = bool(shown) and shown[0].name == _ADAPTIVE
    shuffles = [node for node in shown if node.is_last and node.name == _SHUFFLE]
    leaves = tuple(node.is_last for node in shown if node.is_leaf)
    in_one_task = any(_IN_ONE_TASK.search(node.line) for node in shuffles)
    is_shuffled = is_adaptive and bool(shuffles) and not in_one_task and not any(leaves)
    if (shuffles and not is_adaptive) or not {node.name for node in nodes if node.is_aside} <= _AT_HAND:
        return False, ()
    return is_shuffled, leaves


def _size_of(line: str) -> int | None:
    """How much a node of the optimized plan has, by its line; None where Spark does not know."""
    found = _SIZE.search(line)
    size_bytes = int(float(found[1]) * _UNITS[found[2]]) if found else _KNOWN_BELOW_BYTES
    return size_bytes if size_bytes < _KNOWN_BELOW_BYTES else None
