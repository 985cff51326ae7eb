"""Words of Scala for calls to the JVM of a classic session: sequences, options, objects, and plans made of plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from hive_acid.spark.jvm.frames.classic import frame_in_jvm


def module(package: Any, name: str) -> Any:
    """The object `name` of a package."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def nothing(spark: SparkSession) -> Any:
    """An empty sequence."""
    jvm: Any = spark._jvm
    return module(jvm.scala.collection.immutable, "Nil")


def none(spark: SparkSession) -> Any:
    """An option without a value."""
    jvm: Any = spark._jvm
    return module(jvm.scala, "None")


def elements(sequence: Any) -> list[Any]:
    """The elements of a short sequence."""
    return [sequence.apply(at) for at in range(sequence.size())]


def frame_of(spark: SparkSession, plan: Any) -> DataFrame:
    """The frame of a logical plan."""
    jvm: Any = spark._jvm
    of_jvm = module(jvm.org.apache.spark.sql.classic, "Dataset").ofRows(vars(spark)["_jsparkSession"], plan)
    return DataFrame(of_jvm, spark)


def projection(spark: SparkSession, plan: Any, columns: Sequence[tuple[Any, str, Any]]) -> Any:
    """A plan of `columns` over a plan: an expression of each, with its name, and by what Spark tells it from others."""
    jvm: Any = spark._jvm
    of_spark = jvm.org.apache.spark.sql.catalyst
    named = [
        of_spark.expressions.Alias(value, name, identity, nothing(spark), none(spark), nothing(spark))
        for value, name, identity in columns
    ]
    return of_spark.plans.logical.Project(jvm.PythonUtils.toSeq(named), plan)


def identified(frame: DataFrame, like: DataFrame) -> DataFrame:
    """A classic `frame` whose columns are to Spark those of another one, `like`, so that who names these means them."""
    spark: SparkSession = frame.sparkSession
    plan, other = (frame_in_jvm(of).queryExecution().analyzed() for of in (frame, like))
    pairs = zip(elements(plan.output()), elements(other.output()), strict=True)
    return frame_of(spark, projection(spark, plan, [(mine, of.name(), of.exprId()) for mine, of in pairs]))


def have_columns_in_common(frame: DataFrame, other: DataFrame) -> bool:
    """Whether a column of two classic frames is one to Spark, which then looks for what it may mean in a join."""
    one, two = (frame_in_jvm(of).queryExecution().analyzed().outputSet() for of in (frame, other))
    return not one.intersect(two).isEmpty()


def has_pattern(spark: SparkSession, plan: Any, *names: str) -> bool:
    """Whether there is something of these kinds in a plan, by Spark's names of patterns."""
    jvm: Any = spark._jvm
    patterns = module(jvm.org.apache.spark.sql.catalyst.trees, "TreePattern")
    return any(plan.containsPattern(getattr(patterns, name)()) for name in names)
