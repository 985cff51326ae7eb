"""ACID tables on Spark: `session` joins a Spark session to a metastore; from there on tables are DataFrames.

`enable` does, too, and makes Spark's own words (`spark.sql`, `spark.table`, `df.write`) mean them.
"""

from hive_acid.spark.enabled.enabling import enable
from hive_acid.spark.enabled.joined import EnabledSession
from hive_acid.spark.session import AcidSession, session

__all__ = ["AcidSession", "EnabledSession", "enable", "session"]
