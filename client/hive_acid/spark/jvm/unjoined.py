"""A session of which Spark's own words mean the metastore's tables (`hive_acid.spark.enabled`) has a twin without that.

hive-acid itself works on the twin.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

TWIN = "_hive_acid_twin"
"""Where a session that is joined keeps its twin."""


def unjoined(spark: SparkSession) -> SparkSession:
    """The same session of Spark, as PySpark made it."""
    found: SparkSession = vars(spark).get(TWIN, spark)
    return found
