"""How far a statement is, by Spark's tasks: shown while it runs, if somebody looks."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

from pyspark.sql import SparkSession

from hive_acid.display.status_line import status_line


def shown_progress(spark: SparkSession, tables: Iterable[str]) -> AbstractContextManager[None]:
    """Say how far a statement on these tables is, while the block lasts, in a terminal or a notebook.

    Connect says by itself how many tasks there are, and so does Spark in a terminal with
    ``spark.ui.showConsoleProgress``: then there are only the seconds.
    """
    context: Any = vars(spark).get("_sc")
    return status_line(", ".join(tables), lambda: "" if context is None else _tasks(context))


def _tasks(context: Any) -> str:
    """How many tasks of the stages that run now are done."""
    if context.getConf().get("spark.ui.showConsoleProgress") == "true":
        return ""
    tracker = context.statusTracker()
    stages = [found for stage in tracker.getActiveStageIds() if (found := tracker.getStageInfo(stage)) is not None]
    if not stages:
        return ""
    return f"{sum(one.numCompletedTasks for one in stages)} of {sum(one.numTasks for one in stages)} tasks"
