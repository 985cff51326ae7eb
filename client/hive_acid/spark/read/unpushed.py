"""Columns of ORC files in forms in which Spark does not ask ORC for them by itself.

ORC takes the zeros of both signs for two numbers, and orders texts by units of UTF-16: of a file with -0.0 alone it
reads nothing where a filter asks for 0, and of one with emoji alone nothing where it asks for what is above U+FFFF. And
Spark itself fails to ask for numbers IN a list with a null. What ORC can be asked is the scan's search argument
(`hive_acid.spark.conditions.orc.sarg`), in whose place Spark would put its own.

Of a few columns each has a guard, which is no comparison that ORC could be asked. Of many the guards are a third of a
method that Spark generates and Java does not compile, as it is too long: these stand behind a sample of all rows.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hive_acid.catalog.table import Column
from hive_acid.spark.values.quoting import quoted

_NEVER = "get(array(0), cast({} & 0 AS int)) = 1".format
"""False, which Spark does not see: it takes it for something that may be null, and concludes nothing from it."""

METADATA = "_metadata"
"""Spark's own column of files, unless they have one of that name."""


MOST_GUARDED = 32
"""Of so many columns each has a guard."""


def has_guards(columns: Sized) -> bool:
    """Whether each of so many columns has a guard; else their rows are to stand behind a sample."""
    return len(columns) <= MOST_GUARDED


def behind_sample(rows: DataFrame) -> DataFrame:
    """All of some rows, in a form through which Spark pushes no filter, and prunes columns.

    It costs a step more of Spark's analysis, and a random number for each row.
    """
    return rows.sample(withReplacement=False, fraction=1.0, seed=0)


def unpushed(source: DataFrame, columns: Sequence[Column], *others: Expr | str, prunes: bool = False) -> DataFrame:
    """`columns` of a source of ORC files, as it was loaded, and some `others`: their values are what they are.

    `prunes` says that Spark is to leave out partitions by the others.
    """
    names = [quoted(column.name) for column in columns]
    if not prunes and not has_guards(columns):
        return behind_sample(source.select(*names, *others))
    number = f"cast({METADATA} IS NULL AS int)" if quoted(METADATA) in names else f"{METADATA}.file_size"
    return source.select(*(F.expr(f"if({_NEVER(number)}, null, {name}) AS {name}") for name in names), *others)
