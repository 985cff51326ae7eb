"""Waiting for what another thread, process or server does, or must not do: by looking, for so long."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from hive_acid.connection import Connection
from hive_acid.wire import ttypes

T = TypeVar("T")

PAUSE_S = 0.02


def until(
    condition: Callable[[], T],
    seconds: float = 60.0,
    told: object = "it did not happen in time",
    between: Callable[[], object] | None = None,
) -> T:
    """What `condition` gives once it is true; after so many seconds the test fails with what is `told`, or it returns.

    What is done `between` two looks may make it true, such as `gc.collect`.
    """
    found = _looked(condition, seconds, between)
    assert found, told() if callable(told) else told
    return found


def stays(condition: Callable[[], object], seconds: float, told: object = "it did not stay so") -> None:
    """The test fails with what is `told` as soon as `condition` is not true; after so many seconds it goes on."""
    assert not comes(lambda: not condition(), seconds), told() if callable(told) else told


def comes(condition: Callable[[], object], seconds: float) -> bool:
    """Whether `condition` becomes true within so many seconds."""
    return bool(_looked(condition, seconds))


def at_rest(look: Callable[[], T], seconds: float) -> T:
    """What `look` gives, once that has stayed the same for so many seconds."""
    found, seen = look(), time.monotonic()
    while time.monotonic() < seen + seconds:
        time.sleep(PAUSE_S)
        if (now := look()) != found:
            found, seen = now, time.monotonic()
    return found


def outlast_time_outs(connection: Connection) -> None:
    """Until two transactions without heartbeats, one after the other, have timed out: who lives then is kept alive."""

    def is_aborted(txn_id: int) -> bool:
        shown = {one.id: one.state for one in connection.call("get_open_txns_info").open_txns}
        return bool(shown.get(txn_id, ttypes.TxnState.ABORTED) == ttypes.TxnState.ABORTED)

    for _ in range(2):
        silent = connection.begin()
        connection.heartbeats.remove(silent)
        until(lambda txn_id=silent.id: is_aborted(txn_id))


def _looked(condition: Callable[[], T], seconds: float, between: Callable[[], object] | None = None) -> T:
    """What `condition` gives once it is true, or else after so many seconds."""
    deadline = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < deadline:
        if between:
            between()
        time.sleep(PAUSE_S)
    return found
