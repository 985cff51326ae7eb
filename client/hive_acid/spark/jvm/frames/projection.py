"""Projections, told to the JVM in few calls however many columns they have.

For a table of ten columns the calls for single ones were a third of those of a small UPDATE.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from hive_acid.spark.jvm.frames.classic import frame_in_jvm
from hive_acid.spark.jvm.texts import can_be_told, texts_in_jvm

_METADATA = "_hive_acid_metadata"


def projected(frame: DataFrame, *columns: str) -> DataFrame:
    """As `DataFrame.selectExpr`: a frame of `columns`, each of which is SQL."""
    of_jvm = frame_in_jvm(frame)
    if of_jvm is None or not can_be_told(columns):  # Connect sends a plan at once
        return frame.selectExpr(*columns)
    texts = texts_in_jvm(frame.sparkSession, of_jvm._gateway_client, columns)
    return DataFrame(of_jvm.selectExpr(texts), frame.sparkSession)


def renamed(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """As `DataFrame.toDF`: `frame` with other names of its columns."""
    of_jvm = frame_in_jvm(frame)
    if of_jvm is None or not can_be_told(names):
        return frame.toDF(*names)
    texts = texts_in_jvm(frame.sparkSession, of_jvm._gateway_client, names)
    return DataFrame(of_jvm.toDF(texts), frame.sparkSession)


def with_metadata(frame: DataFrame, columns: Mapping[str, tuple[str, Mapping[str, str]]]) -> DataFrame:
    """A classic `frame`, of which columns get metadata: by name the column as SQL, and what it says."""
    of_jvm = frame_in_jvm(frame)
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
