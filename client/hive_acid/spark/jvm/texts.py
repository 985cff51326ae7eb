"""Many texts told to the JVM in one call: PySpark hands over a list by a call for each of its elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

_BETWEEN = "\x1f"
"""What separates the texts on their way: hardly one has it."""

_SPLITTER = "_hive_acid_splitter"


def can_be_told(texts: Sequence[str]) -> bool:
    """Whether `texts_in_jvm` can be asked for these."""
    return bool(texts) and not any(_BETWEEN in text for text in texts)


def texts_in_jvm(spark: SparkSession, client: Any, texts: Sequence[str]) -> Any:
    """The JVM's array of some texts, for the gateway of `client`."""
    return _splitter(spark, client).split(_BETWEEN.join(texts), -1)


def _splitter(spark: SparkSession, client: Any) -> Any:
    """The JVM's `java.util.regex.Pattern` of the separator, found once for each gateway."""
    found = vars(client).get(_SPLITTER)
    if found is None:
        jvm: Any = spark._jvm
        found = jvm.java.util.regex.Pattern.compile(_BETWEEN)
        setattr(client, _SPLITTER, found)
    return found
