"""What is made of findings once for many replies: who asks at one time is given the same finding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

F = TypeVar("F")
M = TypeVar("M")


class Kept(Generic[M]):
    """What has been made of findings, none of which changes: of the ones that were asked for last."""

    def __init__(self, most: int) -> None:
        """So many are kept."""
        self._most = most
        self._kept: dict[int, tuple[object, M]] = {}

    def of(self, finding: F, make: Callable[[F], M]) -> M:
        """What `make` makes of this very finding."""
        kept = self._kept.pop(id(finding), None)
        if kept is None:
            kept = finding, make(finding)  # holds the finding, so that its id stays its own
            if len(self._kept) >= self._most:
                del self._kept[next(iter(self._kept))]
        self._kept[id(finding)] = kept
        return kept[1]
