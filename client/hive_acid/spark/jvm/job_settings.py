"""Spark's settings for one job: put into its session, and taken out again.

Jobs of several threads may want the same one in the same session, of one value or of several: the value of who came
last is there, and the last who goes takes it out.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession

from hive_acid.errors import UnsupportedTableError

LOG = logging.getLogger(__name__)

NOT_INFERRED = {"spark.sql.constraintPropagation.enabled": "false"}
"""Spark concludes nothing from what columns are computed of.

Else, below each filter and join, it looks for each computed column in what it knows of all others: that grows with
their square, and faster where several are computed alike; a hundred took half a minute, some hundreds all memory. What
it would conclude, as that a key of a join is not null, is of no use where few rows of a table are sought.
"""


INFERRED_COLUMNS = 16
"""Of so many columns Spark may conclude what it likes: to set the setting and take it out again would cost more."""


LISTS_AS_SETS = {"spark.sql.optimizer.inSetSwitchThreshold": "0"}
"""Spark keeps the numbers and days of a list as a set.

Up to 400 would be cases of the code that it generates, which is then compiled for each statement: 0.4 s of a processor
for 200, where to look 2,000,000 numbers up in a set takes 0.1.
"""


COMPILED_METHODS = {"spark.sql.codegen.hugeMethodLimit": "8000"}
"""Spark generates no method that Java would not compile: of more bytes it interprets each, for all rows.

Of some 55 to 100 columns a stage has such a method; of more Spark generates other code by itself. It pays where a stage
takes rows as they come: an INSERT of 85 columns takes two thirds of the time, a MERGE as well. Where few rows are taken
the method ends early for the others, and what Spark does instead takes longer.
"""


SHORT_LIST = 10
"""Of so many values Spark makes comparisons."""


_WITH_KEYS = {"spark.sql.retainGroupColumns": "true"}


@dataclass
class _Held:
    """A setting that some jobs have put into their session: what was there before, and their values, the last one's
    last.
    """

    own: str | None
    values: list[str]


_HELD: dict[tuple[str, str], _Held] = {}
"""By session and key."""

_LOCK = threading.Lock()


@contextmanager
def configured(spark: SparkSession, settings: Mapping[str, str], *, gives_way: bool = False) -> Iterator[None]:
    """Within the block the session has `settings`, as far as a running session takes them.

    What the session has been given already stays if this one `gives_way`. Raises UnsupportedTableError for a value that
    Spark does not take.
    """
    session = _identity(spark) if settings else ""
    held: list[tuple[str, str]] = []
    try:
        for key, value in settings.items():
            with _LOCK:
                if _hold(spark, session, key, value, gives_way=gives_way):
                    held.append((key, value))
        yield
    finally:
        for key, value in reversed(held):
            with _LOCK:
                _release(spark, session, key, value)


def grouped(frame: DataFrame, keys: Sequence[Column], aggregates: Sequence[Column]) -> DataFrame:
    """`aggregates` of each group of a frame's rows, behind its `keys`, which a session may be set to leave out."""
    with configured(frame.sparkSession, _WITH_KEYS):
        return frame.groupBy(*keys).agg(*aggregates)


def _hold(spark: SparkSession, session: str, key: str, value: str, *, gives_way: bool) -> bool:
    """Put a setting into the session unless it is there; False if it stays without."""
    held = _HELD.get((session, key))
    if held is None:
        if not spark.conf.isModifiable(key):
            LOG.info("%s is for the start of a Spark, or not known to it: this one runs already", key)
            return False
        held = _Held(spark.conf.get(key, None), [])
    now = held.values[-1] if held.values else held.own
    if gives_way and now is not None and value not in held.values:
        return False
    if not held.values or value != now:
        try:
            spark.conf.set(key, value)
        except Exception as error:  # of the JVM, which comes as py4j's or, by way of Connect, as PySpark's own
            raise UnsupportedTableError(f"compactor.{key} cannot be '{value}': {str(error).splitlines()[0]}") from error
        except BaseException:  # an interrupt, before or after it was set
            _put_back(spark, key, now)
            raise
    held.values.append(value)
    _HELD[session, key] = held
    return True


def _release(spark: SparkSession, session: str, key: str, value: str) -> None:
    held = _HELD[session, key]
    last = len(held.values) - 1 - held.values[::-1].index(value)
    is_there = last == len(held.values) - 1
    del held.values[last]
    if not held.values:
        del _HELD[session, key]
    left = held.values[-1] if held.values else held.own
    if not is_there or (held.values and left == value):
        return
    try:
        _put_back(spark, key, left)
    except BaseException as error:
        if not isinstance(error, Exception):  # an interrupt must not leave it there
            _put_back(spark, key, left)
        raise


def _put_back(spark: SparkSession, key: str, own: str | None) -> None:
    """Let a setting be what it was before."""
    if own is None:
        spark.conf.unset(key)
    else:
        spark.conf.set(key, own)


def _identity(spark: SparkSession) -> str:
    """What tells sessions apart, however many objects of Python stand for one."""
    of_connect = getattr(spark, "session_id", None)
    return str(of_connect or spark._jsparkSession.sessionUUID())
