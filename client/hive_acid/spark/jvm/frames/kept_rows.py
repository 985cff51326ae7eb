"""Rows that are computed once, and are the same to everything that reads them.

Spark keeps them on its executors, in the parts that its tasks have computed. Nothing is read before all of them are
there: if an executor is lost meanwhile, a part that is computed anew may be another one, as of a source that changes or
whose order is chance. One that is lost later is an error, since nobody could compute it.

Where Spark may start a task twice (`spark.speculation`), both may leave their part, on two executors, and which of them
is read is chance. So rows are shuffled there before they are kept: of the tasks that make a shuffle's parts Spark takes
one, and those that read them may come twice.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from hive_acid.spark.jvm.frames.classic import frame_in_jvm
from hive_acid.spark.jvm.job_settings import NOT_INFERRED, configured
from hive_acid.spark.jvm.session_settings import is_on

_SPECULATION = "spark.speculation"


def kept_rows(rows: DataFrame) -> DataFrame:
    """`rows`, computed now; to be read as often as one likes.

    Spark keeps with them what it concludes of each column from all others (`job_settings.NOT_INFERRED`). A client of
    Connect has no plan of its own, and leaves it at that: the joins and filters behind `rows` are planned by it.
    """
    if is_on(rows.sparkSession, _SPECULATION):
        rows = rows.hint("rebalance")
    of_jvm = frame_in_jvm(rows)
    if of_jvm is None:
        return rows.localCheckpoint(eager=True)
    of_jvm.queryExecution().executedPlan()
    with configured(rows.sparkSession, NOT_INFERRED, gives_way=True):
        return rows.localCheckpoint(eager=True)
