"""What Spark makes of expressions without columns while it plans: literals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from hive_acid.spark.jvm.frames.classic import frame_in_jvm
from hive_acid.spark.jvm.unjoined import unjoined

Folded = tuple[str, str | None]
"""A type as Spark names it, and a value of it as Spark's text, None for null."""


def folded(spark: SparkSession, expressions: Sequence[str]) -> list[Folded] | None:
    """The literals that some SQL stands for; None where Spark has an error, or would compute one only in a job.

    A classic session takes 3 ms for it, since it is asked for a plan and runs none.
    """
    told = ", ".join(f"typeof({one}), CAST({one} AS STRING)" for one in expressions)
    try:
        frame = unjoined(spark).sql(f"SELECT {told}")
        of_jvm = frame_in_jvm(frame)
        values: Any = frame.collect()[0] if of_jvm is None else _planned(of_jvm.queryExecution().optimizedPlan())
    except (PySparkException, Py4JError):  # as the statement itself will say
        return None
    kinds = values[::2]
    return None if None in kinds else list(zip(kinds, values[1::2], strict=True))


def _planned(plan: Any) -> list[str | None]:
    """The texts that a plan of one row has; null for one that is no literal."""
    columns = plan.expressions()
    found = [columns.apply(at).child() for at in range(columns.size())]
    values = [one.value() if one.getClass().getSimpleName() == "Literal" else None for one in found]
    return [None if value is None else str(value.toString()) for value in values]
