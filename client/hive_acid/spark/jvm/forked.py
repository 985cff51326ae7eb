"""Spark in a child that was forked: its sockets, to the JVM or to the server of Connect, are the parent's.

On these each of the two would get the other's answers, so nothing of Spark is used that was there before the fork.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from pyspark.sql import SparkSession

from hive_acid.errors import OtherProcessError

_inherited: list[Any] = []
"""What this process shares with the one that forked it."""


def check_spark(spark: SparkSession) -> None:
    """Raise OtherProcessError if a process that has forked this one has made `spark`."""
    link = _link(spark)
    if link is not None and any(link is one for one in _inherited):
        raise OtherProcessError(
            f"this Spark session is of a process that forked process {os.getpid()}, and two cannot use one: start "
            "Spark after the fork, or start workers by multiprocessing's 'spawn'"
        )


def _link(spark: Any) -> Any:
    """What a session's calls go through: the gateway to its JVM, or Connect's client."""
    fields = vars(spark)
    return getattr(fields.get("_sc"), "_gateway", None) or fields.get("_client")


def _note_links() -> None:
    context = sys.modules.get("pyspark.core.context")
    if context is not None and context.SparkContext._gateway is not None:
        _inherited.append(context.SparkContext._gateway)
    connect = sys.modules.get("pyspark.sql.connect.session")
    if connect is not None:
        kind = connect.SparkSession
        found = (kind._default_session, getattr(kind._active_session, "session", None))
        _inherited.extend(_link(session) for session in found if session is not None)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_links)
