"""Errors that come in the middle of a call, as by Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def interrupted(error: type[BaseException], after_s: float) -> Iterator[None]:
    """The body is interrupted after a while by an error that a signal's handler raises, and has to end by that."""

    def interrupt(*_: object) -> None:
        raise error

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, after_s)
    try:
        with pytest.raises(error):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
