"""Values of partition keys as the texts that name partitions, as SQL."""

from __future__ import annotations

from pyspark.sql import types as t

from hive_acid.catalog.table import Column
from hive_acid.format.partitions import DEFAULT_PARTITION
from hive_acid.spark.values.assign import text_value
from hive_acid.spark.values.types import spark_type
from hive_acid.spark.values.wall_clock import wall_clock


def key_text(key: Column, value: str) -> str:
    """The SQL of the text that names a partition of `value`, SQL for a partition key; null for the default one.

    A value that would be read as another one fails the statement: the text that stands for null in names, which Hive
    refuses as well, bytes that are no UTF-8 or have a zero among them, which no name of a directory holds, and a time
    in the hour that clocks go back to.
    """
    kind = spark_type(key.type)
    if isinstance(kind, t.TimestampType):
        return wall_clock(value, f"partition key {key.name}")
    text = f"cast({value} AS string)"
    if not isinstance(kind, t.StringType | t.BinaryType):
        return text
    no_name = text_value(f"bytes that are no UTF-8, or 0 among them, cannot be a value of partition key {key.name}")
    words = f"{DEFAULT_PARTITION} is no value of partition key {key.name}: it stands for null there, so write null"
    failure = f"raise_error({text_value(words)})"
    # A char stands here with its whole length.
    return (
        f"CASE WHEN rtrim({text}) = {text_value(DEFAULT_PARTITION)} THEN {failure} "
        f"WHEN NOT is_valid_utf8({text}) OR instr({text}, CAST(X'00' AS string)) > 0 THEN raise_error({no_name}) "
        f"ELSE {text} END"
    )
