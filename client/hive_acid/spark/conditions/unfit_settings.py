"""Settings of Spark under which a table's columns would be others: tables that they concern are refused."""

from __future__ import annotations

import re

from pyspark.sql import SparkSession

from hive_acid.catalog.table import Table
from hive_acid.errors import UnsupportedTableError
from hive_acid.spark.jvm.session_settings import is_on
from hive_acid.spark.values.texts import is_char

_PATTERNS = "spark.sql.parser.quotedRegexColumnNames"
_BLANKS_COUNT = ("spark.sql.legacy.charVarcharAsString", "spark.sql.legacy.noCharPaddingInPredicate")
_PLAIN = re.compile(r"\w+", re.ASCII)


def refuse_unfit_settings(spark: SparkSession, table: Table) -> None:
    """Raise UnsupportedTableError if the session would take the name of a column of the table for a pattern, or count
    the blanks at the end of a CHAR.
    """
    columns = table.all_columns
    odd = next((of.name for of in columns if not _PLAIN.fullmatch(of.name)), None)
    if odd is not None and is_on(spark, _PATTERNS):
        raise UnsupportedTableError(
            f"Spark would take the name of {table.full_name}'s column '{odd}' for a pattern: set {_PATTERNS} to false"
        )
    char = next((of.name for of in columns if is_char(of)), None)
    setting = next((of for of in _BLANKS_COUNT if is_on(spark, of)), None) if char is not None else None
    if setting is not None:
        raise UnsupportedTableError(
            f"Spark would compare {table.full_name}'s column '{char}' with the blanks at its end, which mean nothing "
            f"in a CHAR: set {setting} to false"
        )
