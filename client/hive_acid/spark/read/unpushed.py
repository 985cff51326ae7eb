"""Columns of plain ORC files in a form in which Spark does not ask ORC for them by itself.

ORC takes the zeros of both signs for two numbers, and orders texts by units of UTF-16: of a file with -0.0 alone it
reads nothing where a filter asks for 0, and of one with emoji alone nothing where it asks for what is above U+FFFF. And
Spark itself fails to ask for numbers IN a list with a null. What ORC can be asked is the scan's search argument
(`hive_acid.spark.conditions.sarg`), in whose place Spark would put its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as Expr
from pyspark.sql import functions as F

from hive_acid.catalog.table import Column
from hive_acid.spark.values.quoting import quoted

_NEVER = "get(array(0), cast({} & 0 AS int)) = 1".format
"""False, which Spark does not see: it takes it for something that may be null, and concludes nothing from it."""

METADATA = "_metadata"
"""Spark's own column of files, unless they have one of that name."""


def unpushed(columns: Sequence[Column]) -> list[Expr]:
    """Columns of a source of ORC files, to be selected from it as it was loaded: their values are what they are."""
    names = [quoted(column.name) for column in columns]
    number = f"cast({METADATA} IS NULL AS int)" if quoted(METADATA) in names else f"{METADATA}.file_size"
    return [F.expr(f"if({_NEVER(number)}, null, {name}) AS {name}") for name in names]
