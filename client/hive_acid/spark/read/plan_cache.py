"""The analysed-plan cache: of a table that has not changed Spark does not analyse the frame again.

To make a frame takes Spark and the calls to its JVM longer than to plan and run a small query on it. A second frame
of the same state of a table therefore begins with the first one's plan, and only names its columns anew: to Spark they
are columns of their own, so that two frames of a table can be joined as before.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hive_acid.spark.jvm.session_settings import SessionSettings
from hive_acid.spark.plans.choice import Choice
from hive_acid.spark.plans.read_plan import Analysis, ReadPlan, analysis_of, why_not_cached
from hive_acid.spark.plans.telling import tell
from hive_acid.spark.read.listing import TableState
from hive_acid.spark.read.table_frame import planned_table


@dataclass(frozen=True, slots=True)
class _Cached:
    """A frame in the JVM with its analysed plan, the names of its columns there, our plan, and all that it was made of.

    `settings` are those of the Spark session, which its analysis may have followed.
    """

    session: Any
    settings: SessionSettings
    state: TableState
    frame: Any
    names: Any
    plan: ReadPlan


class PlanCache:
    """The plans of the tables that were read last, for all threads of a session."""

    def __init__(self) -> None:
        self._cached: OrderedDict[tuple[str, bool], _Cached] = OrderedDict()
        self._lock = threading.Lock()

    def table(self, spark: SparkSession, state: TableState, *, row_id: bool) -> DataFrame:
        """As `read_table` of all rows."""
        session = vars(spark).get("_jsparkSession")
        number = sum(len(found.data_files) for found in state.partitions)
        if why := why_not_cached(over_connect=session is None, files=number, limits=state.limits):
            frame, plan = planned_table(spark, state, row_id=row_id, analysis=Choice(Analysis.ANEW, why))
            tell(plan)
            return frame
        key = state.table.full_name, row_id
        settings = SessionSettings.of(spark)
        with self._lock:
            cached = self._cached.get(key)
        if cached is not None and cached.session is session and cached.state == state and cached.settings.are(settings):
            frame = DataFrame(cached.frame.toDF(cached.names), spark)
            tell(replace(cached.plan, analysis=analysis_of(unchanged=True)))
        else:
            frame, plan = planned_table(spark, state, row_id=row_id, analysis=analysis_of(unchanged=False))
            made: Any = frame
            cached = _Cached(session, settings, state, made._jdf, made._jseq(frame.columns), plan)
            tell(plan)
        with self._lock:
            self._cached[key] = cached
            self._cached.move_to_end(key)
            while len(self._cached) > state.limits.cached_plans:
                self._cached.popitem(last=False)
        return frame
