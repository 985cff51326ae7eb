"""A setting of Spark that takes names within backquotes for patterns, and with it all statements of ours."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from hive_acid.catalog import Table
from hive_acid.errors import UnsupportedTableError

_SETTING = "spark.sql.parser.quotedRegexColumnNames"
_PLAIN = re.compile(r"\w+", re.ASCII)


def refuse_patterns(spark: SparkSession, table: Table) -> None:
    """Raise UnsupportedTableError if the session would take the name of a column of the table for a pattern."""
    odd = next((of.name for of in (*table.columns, *table.partition_keys) if not _PLAIN.fullmatch(of.name)), None)
    if odd is not None and spark.conf.get(_SETTING, "false") == "true":
        raise UnsupportedTableError(
            f"Spark would take the name of {table.full_name}'s column '{odd}' for a pattern: set {_SETTING} to false"
        )
