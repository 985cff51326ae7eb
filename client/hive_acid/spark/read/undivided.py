"""Frames beside a subquery that asks for their rows, as ``n < (SELECT max(m) FROM o WHERE o.k > t.id)`` does.

Spark reads the table again for such a subquery, for the values that it asks for. Where the condition has been moved
down to the filter that has all columns of an event read, Spark reads it without that filter, and ORC takes the request
for one of the user's row (data-path.md §1.1). So there is a filter between, which keeps all rows, and which Spark
neither moves nor unites with others.
"""

from __future__ import annotations

import re

from pyspark.sql import Column, DataFrame

_KEEPS_ALL = "spark_partition_id() >= 0"
_SUBQUERY = re.compile(r"\bselect\b|subquery", re.IGNORECASE)


def filtered(frame: DataFrame, condition: Column | str) -> DataFrame:
    """The rows of `frame`, or of what is joined with it, for which a condition is true."""
    return beside(frame, condition).filter(condition)


def beside(frame: DataFrame, condition: object) -> DataFrame:
    """`frame`, for a condition that may have subqueries."""
    return undivided(frame) if _SUBQUERY.search(str(condition)) else frame


def undivided(frame: DataFrame) -> DataFrame:
    """`frame`, for conditions with subqueries."""
    return DataFrame.filter(frame, _KEEPS_ALL)
