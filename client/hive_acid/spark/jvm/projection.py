"""A projection, told to the JVM in two calls however many columns it has.

PySpark hands over a list by a call for each of its elements: for a table of ten columns a third of the calls of a small
UPDATE.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

_BETWEEN = "\x1f"
"""What separates the columns on their way: no text that stands in a program has it."""

_SPLITTER = "_hive_acid_splitter"


def projected(frame: DataFrame, *columns: str) -> DataFrame:
    """As `DataFrame.selectExpr`: a frame of `columns`, each of which is SQL."""
    of_jvm: Any = vars(frame).get("_jdf")
    if of_jvm is None or not columns or any(_BETWEEN in column for column in columns):  # Connect sends a plan at once
        return frame.selectExpr(*columns)
    texts = _splitter(frame, of_jvm._gateway_client).split(_BETWEEN.join(columns), -1)
    return DataFrame(of_jvm.selectExpr(texts), frame.sparkSession)


def _splitter(frame: DataFrame, client: Any) -> Any:
    """The JVM's `java.util.regex.Pattern` of the separator, found once for each gateway."""
    found = vars(client).get(_SPLITTER)
    if found is None:
        jvm: Any = frame.sparkSession._jvm
        found = jvm.java.util.regex.Pattern.compile(_BETWEEN)
        setattr(client, _SPLITTER, found)
    return found
