"""What an interrupt leaves of Spark: calls to its JVM that nobody waits for any more, and jobs that go on.

A signal's handler may raise at any line: KeyboardInterrupt, SystemExit, or the time-out of a scheduler. In the middle
of a call the answer is still to come then, and py4j would take it for that of the next one, unless the error is one
that it knows. The job of the call does not end by itself; that PySpark cancels all jobs on Ctrl-C fails while the main
thread waits for one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

_INSTALLING = threading.Lock()
_NUMBERS = count(1)
_ATTEMPTS, _PAUSE_S = 5, 0.05
"""On Ctrl-C py4j has the JVM close sockets, and may have it close the next one as well."""


def watch(spark: SparkSession) -> None:
    """Have each call to the JVM that is interrupted close the socket on which its answer will come."""
    context = vars(spark).get("_sc")
    client: Any = None if context is None else context._gateway._gateway_client
    if client is None:
        return
    with _INSTALLING:
        if "_hive_acid_watched" in vars(client):
            return
        client._hive_acid_watched = send = client.send_command

        def send_command(*arguments: Any, **options: Any) -> Any:
            for attempt in range(_ATTEMPTS):
                try:
                    return send(*arguments, **options)
                except Py4JNetworkError:  # no socket could be had: nothing has been sent
                    if attempt == _ATTEMPTS - 1:
                        raise
                    time.sleep(_PAUSE_S)
                except BaseException:
                    _close(client)
                    raise
            raise AssertionError("the last attempt returns or raises")

        client.send_command = send_command


def _close(client: Any) -> None:
    """Close this thread's socket; without threads of its own for each of Python's, py4j keeps none that has failed."""
    own = getattr(client, "get_thread_connection", None)
    connection = None if own is None else own()
    if connection is not None:
        connection.close()


@contextmanager
def cancelled_with_errors(spark: SparkSession, name: str) -> Iterator[None]:
    """Jobs of this thread within the block are cancelled if an error leaves it; `name` is how their tag begins.

    Connect cancels them by itself.
    """
    context: Any = vars(spark).get("_sc")
    if context is None:
        yield
        return
    tag = f"{name}-{next(_NUMBERS)}"  # two metastores may have transactions of one number
    context.addJobTag(tag)
    try:
        yield
    except BaseException:
        with suppress(Exception):  # it has been stopped, say
            context.cancelJobsWithTag(tag)
        raise
    finally:
        with suppress(Exception):
            context.removeJobTag(tag)
