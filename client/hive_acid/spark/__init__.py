"""ACID tables on Spark: `session` joins a Spark session to a metastore; from there on tables are DataFrames."""

from hive_acid.spark.session import AcidSession, session

__all__ = ["AcidSession", "session"]
