"""Projections, told to the JVM in few calls however many columns they have.

PySpark hands over a list by a call for each of its elements: for a table of ten columns a third of the calls of a small
UPDATE.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

_BETWEEN = "\x1f"
"""What separates the columns on their way: no text that stands in a program has it."""

_SPLITTER = "_hive_acid_splitter"
_METADATA = "_hive_acid_metadata"


def projected(frame: DataFrame, *columns: str) -> DataFrame:
    """As `DataFrame.selectExpr`: a frame of `columns`, each of which is SQL."""
    of_jvm: Any = vars(frame).get("_jdf")
    if of_jvm is None or not columns or any(_BETWEEN in column for column in columns):  # Connect sends a plan at once
        return frame.selectExpr(*columns)
    texts = _splitter(frame, of_jvm._gateway_client).split(_BETWEEN.join(columns), -1)
    return DataFrame(of_jvm.selectExpr(texts), frame.sparkSession)


def with_metadata(frame: DataFrame, columns: Mapping[str, tuple[str, Mapping[str, str]]]) -> DataFrame:
    """A classic `frame`, of which columns get metadata: by name the column as SQL, and what it says."""
    of_jvm: Any = vars(frame)["_jdf"]
    marked = {
        name: getattr(of_jvm.col(sql), "as")(name, _metadata(frame, of_jvm._gateway_client, json.dumps(of)))
        for name, (sql, of) in columns.items()
    }
    return DataFrame(of_jvm.withColumns(marked), frame.sparkSession)


def _metadata(frame: DataFrame, client: Any, text: str) -> Any:
    """The JVM's metadata of a text in JSON, made once for each gateway: its class is found by a call for each dot."""
    known: dict[str, Any] = vars(client).setdefault(_METADATA, {})
    if text not in known:
        jvm: Any = frame.sparkSession._jvm
        known[text] = jvm.org.apache.spark.sql.types.Metadata.fromJson(text)
    return known[text]


def _splitter(frame: DataFrame, client: Any) -> Any:
    """The JVM's `java.util.regex.Pattern` of the separator, found once for each gateway."""
    found = vars(client).get(_SPLITTER)
    if found is None:
        jvm: Any = frame.sparkSession._jvm
        found = jvm.java.util.regex.Pattern.compile(_BETWEEN)
        setattr(client, _SPLITTER, found)
    return found
