"""Waiting for what another thread, process or server does, or must not do: by looking, for so long."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

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
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, told() if callable(told) else told
        if between:
            between()
        time.sleep(PAUSE_S)
    return found


def stays(condition: Callable[[], object], seconds: float, told: object = "it did not stay so") -> None:
    """The test fails with what is `told` as soon as `condition` is not true; after so many seconds it goes on."""
    deadline = time.monotonic() + seconds
    while True:
        assert condition(), told() if callable(told) else told
        if time.monotonic() >= deadline:
            return
        time.sleep(PAUSE_S)
