"""Makes a story that breaks shorter, for as long as it still breaks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Part = TypeVar("Part")


@dataclass(frozen=True)
class Limits:
    """How much may be tried."""

    replays: int = 200
    seconds: float = 60.0


def shortest(
    story: Sequence[Part],
    breaks_at: Callable[[list[Part]], int | None],
    limits: Limits = Limits(),
) -> list[Part]:
    """As few parts of the story as still break; `breaks_at` replays one and gives the number of the part that broke."""
    kept = list(story)
    deadline = time.monotonic() + limits.seconds
    replays = 0
    size = max(1, len(kept) // 2)
    while size:
        at = 0
        while at < len(kept):
            if replays >= limits.replays or time.monotonic() > deadline:
                return kept
            tried = kept[:at] + kept[at + size :]
            replays += 1
            broken_at = breaks_at(tried)
            if broken_at is None:
                at += size
            else:
                kept = tried[: broken_at + 1]
        size //= 2
    return kept
