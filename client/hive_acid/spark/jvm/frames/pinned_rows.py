"""Rows that are read once, and stand in the plan from then on: whoever reads the frame again reads the same."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import DataFrame

from hive_acid.spark.jvm.frames.classic import frame_in_jvm
from hive_acid.spark.jvm.frames.scala import elements, frame_of, none

_KINDS_OF_RDD = re.compile(r"(\w+)RDD\[")
_OF_FILES = "_metadata"
"""The one column that rows may lose which could be named though it is not shown."""
_OF_CLIENT = {"ParallelCollection", "Python", "MapPartitions"}


def pinned_rows(frame: DataFrame, *, most: int, most_bytes: int) -> DataFrame | None:
    """A classic frame whose columns are those of `frame`, to Spark as well, and whose rows are those of now.

    None if there are more rows, or more bytes, as Spark estimates. The rows are in the client's JVM.
    """
    of_jvm = frame_in_jvm(frame)
    execution = of_jvm.queryExecution()
    plan = execution.optimizedPlan()
    if frame.isStreaming or (int(str(plan.stats().sizeInBytes())) > most_bytes and not _is_of_client(plan)):
        return None
    analyzed = execution.analyzed()
    if any(hidden.name() != _OF_FILES for hidden in elements(analyzed.metadataOutput())):
        return None
    spark = frame.sparkSession
    rows = of_jvm.limit(most + 1).queryExecution().executedPlan().executeCollect()
    if len(rows) > most:
        return None
    jvm: Any = spark._jvm
    columns, values = analyzed.output(), jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(rows)
    plans = jvm.org.apache.spark.sql.catalyst.plans.logical
    pinned = plans.LocalRelation(columns, values, False, none(spark))
    if analyzed.nodeName() == "ResolvedHint":
        pinned = plans.ResolvedHint(pinned, analyzed.hints())
    return frame_of(spark, pinned)


def _is_of_client(plan: Any) -> bool:
    """Whether all rows are made of what the client has given, whose size Spark does not estimate."""
    return all(
        leaf.nodeName() == "LogicalRDD"
        and _OF_CLIENT.issuperset(_KINDS_OF_RDD.findall(str(leaf.rdd().toDebugString())))
        for leaf in elements(plan.collectLeaves())
    )
