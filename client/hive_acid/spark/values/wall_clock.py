"""Times as texts in files: the wall clock of the session's zone, as Hive writes it."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import SparkSession
from pyspark.sql import types as t

from hive_acid.catalog.table import Column, Table
from hive_acid.errors import ColumnError
from hive_acid.spark.values.assign import text_value
from hive_acid.spark.values.types import spark_type

DATED = "^ *[+-]?[0-9]{4,}-[0-9]{1,2}-[0-9]{1,2}"
"""How a text begins that says of which day it is. To Spark's casts a time alone is one of today."""


def dated(text: str) -> str:
    """The SQL of `text`, SQL as well, null where it names no day."""
    return f"CASE WHEN {text} RLIKE '{DATED}' THEN {text} END"


def wall_clock(value: str, where: str) -> str:
    """The SQL of the text of a timestamp, SQL as well; `where` is the column that errors name.

    One that would be read as another time, in the hour that clocks go back to, fails the statement.
    """
    text = f"CAST({value} AS string)"
    words = text_value(f"its text would be another time, as clocks go back then, for {where}: ")
    same = f"try_cast({text} AS timestamp_ltz) <=> {value}"
    return f"CASE WHEN {same} THEN {text} ELSE raise_error(concat({words}, {text})) END"


def refuse_skipped(spark: SparkSession, table: Table, values: Iterable[tuple[Column, str | None]]) -> None:
    """Raise ColumnError if clocks of the session's zone never show a time among the `values` of partition keys.

    Rows of such a partition would be read as of a later time.
    """
    for key, value in values:
        if value is None or not isinstance(spark_type(key.type), t.TimestampType):
            continue
        read = spark.sql(f"SELECT CAST(CAST({text_value(value)} AS timestamp_ltz) AS string)").collect()[0][0]
        if read != value:
            raise ColumnError(
                f"clocks are put forward past {value} in the session's zone, so it is no value of partition key "
                f"{key.name} of {table.full_name}"
            )
