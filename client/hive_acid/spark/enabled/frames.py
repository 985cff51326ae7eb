"""Frames of sessions that are joined write to the metastore's tables: `write`, `writeTo`, `mergeInto`, `writeStream`.

Each frame that is made of another is of PySpark's own class, so these four are replaced in that class, for as long as
any session is joined. They ask the frame for its session; of one that is not joined they are PySpark's own.
"""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakSet

from pyspark.sql import Column, SparkSession

from hive_acid.spark.enabled.joined import EnabledSession, joined_to
from hive_acid.spark.enabled.kinds import as_kind
from hive_acid.spark.enabled.merge import JoinedMerge
from hive_acid.spark.enabled.rows import NewTable
from hive_acid.spark.enabled.stream_writer import JoinedStreamWriter
from hive_acid.spark.enabled.writer import JoinedWriter, JoinedWriterV2

_INSTALLING = threading.Lock()
_OWN: dict[type, dict[str, Any]] = {}
"""What the classes of frames had before."""

_JOINED: dict[type, WeakSet[EnabledSession]] = {}


def install(acid: EnabledSession, spark: SparkSession) -> None:
    """Have frames of the session that is joined to `acid` write by it."""
    kind = _class_of_frames(spark)
    with _INSTALLING:
        _JOINED.setdefault(kind, WeakSet()).add(acid)
        if kind not in _OWN:
            _OWN[kind] = {name: vars(kind)[name] for name in _MADE}
            for name, make in _MADE.items():
                setattr(kind, name, make(_OWN[kind][name]))


def uninstall(acid: EnabledSession, spark: SparkSession) -> None:
    """Undo `install`; PySpark's classes are as before with the last."""
    kind = _class_of_frames(spark)
    with _INSTALLING:
        joined = _JOINED.get(kind)
        if joined is None:
            return
        joined.discard(acid)
        if not joined:
            for name, own in _OWN.pop(kind, {}).items():
                setattr(kind, name, own)


def _class_of_frames(spark: SparkSession) -> type:
    if "_jsparkSession" in vars(spark):
        from pyspark.sql.classic.dataframe import DataFrame as Classic

        return Classic
    from pyspark.sql.connect.dataframe import DataFrame as OfConnect

    return OfConnect


def _write(own: Any) -> property:
    def write(frame: Any) -> Any:
        made, acid = own.fget(frame), joined_to(frame.sparkSession)
        if acid is None:
            return made
        return as_kind(JoinedWriter, made, _hive_acid=acid, _frame=frame, _new=NewTable())

    return property(write, doc=own.__doc__)


def _write_stream(own: Any) -> property:
    def write_stream(frame: Any) -> Any:
        made, acid = own.fget(frame), joined_to(frame.sparkSession)
        if acid is None:
            return made
        return as_kind(JoinedStreamWriter, made, _hive_acid=acid, _frame=frame, _new=NewTable())

    return property(write_stream, doc=own.__doc__)


def _write_to(own: Any) -> Any:
    def writeTo(self: Any, table: str) -> Any:  # noqa: N802 - Spark's name
        made, acid = own(self, table), joined_to(self.sparkSession)
        if acid is None:
            return made
        return as_kind(JoinedWriterV2, made, _hive_acid=acid, _frame=self, _name=table, _new=NewTable())

    writeTo.__doc__ = own.__doc__
    return writeTo


def _merge_into(own: Any) -> Any:
    def mergeInto(self: Any, table: str, condition: Column) -> Any:  # noqa: N802 - Spark's name
        acid = joined_to(self.sparkSession)
        target = None if acid is None else acid.target(table)
        if acid is None or target is None or target.table is None:
            return own(self, table, condition)
        return JoinedMerge(acid, target, self, condition)

    mergeInto.__doc__ = own.__doc__
    return mergeInto


_MADE = {"write": _write, "writeStream": _write_stream, "writeTo": _write_to, "mergeInto": _merge_into}
