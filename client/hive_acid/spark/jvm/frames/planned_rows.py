"""Rows that stand in a plan, as of ``VALUES``: Spark computes them as it plans, and no job is needed to have them."""

from __future__ import annotations

from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from hive_acid.spark.jvm.frames.classic import frame_in_jvm

_ROWS = "LocalRelation"
_GIVEN = {_ROWS, "ResolvedInlineTable"}
"""Leaves of a plan that has been analysed."""


def may_stand_in_plan(frame: DataFrame) -> bool:
    """Whether `planned_size` may say something of `frame`, or of a projection of it. Nothing is planned for it."""
    of_jvm = frame_in_jvm(frame)
    return of_jvm is not None and _name(of_jvm.queryExecution().analyzed().collectLeaves().head()) in _GIVEN


def planned_size(frame: DataFrame) -> int | None:
    """How large Spark takes the rows of `frame` to be, in bytes, if it has computed them all in planning it.

    Then `frame.collect()` runs no job. None for other frames, over Connect, and if the planning fails.
    """
    of_jvm = frame_in_jvm(frame)
    if of_jvm is None:
        return None
    try:
        plan = of_jvm.queryExecution().optimizedPlan()
    except PySparkException:
        return None  # whoever runs it will say so
    return int(str(plan.stats().sizeInBytes())) if _name(plan) == _ROWS else None


def _name(plan: Any) -> str:
    return str(plan.nodeName())
