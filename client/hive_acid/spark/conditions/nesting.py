"""Room for texts whose parts are nested deeply: a parser calls itself some twenty times for each pair of brackets.

Spark takes some hundreds of them, and Python's limit of 1,000 calls ends at 50.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from hive_acid.errors import SqlError
from hive_acid.forks import renew_in_children

DEEPEST = 10_000
"""So many calls of Python within each other take some 5 MB of a thread's stack at most, which has 8 MB."""


class _Room:
    """Python's limit is one for all threads: the first that needs room raises it, and the last one takes it back."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._users = self._before = 0
        renew_in_children(self)

    def renew_in_child(self) -> None:
        if self._users:
            sys.setrecursionlimit(max(self._before, sys.getrecursionlimit()))
        self._guard = threading.Lock()
        self._users = 0

    def enter(self) -> None:
        with self._guard:
            if not self._users:
                self._before = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._before, DEEPEST))
            self._users += 1

    def leave(self) -> None:
        with self._guard:
            self._users -= 1
            if not self._users and sys.getrecursionlimit() == DEEPEST:  # nobody has set another one meanwhile
                sys.setrecursionlimit(self._before)


_ROOM = _Room()


@contextmanager
def deeply_nested(shown: object) -> Iterator[None]:
    """Let the block call itself more deeply. Raises SqlError if even that is not enough for what is `shown`.

    That may be a Column, whose text takes a call to the JVM: it is asked for only then.
    """
    _ROOM.enter()
    try:
        yield
    except RecursionError:
        text = str(shown)[:80]
        raise SqlError(f"'{text}' is nested too deeply: make a part of it a view, or a column before") from None
    finally:
        _ROOM.leave()
