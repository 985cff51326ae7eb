"""Times and people in the words of answers."""

from __future__ import annotations

import time
from datetime import datetime

from metastore.txn.models import TxnOwner

_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def ms_of(when: datetime | None) -> int | None:
    """An instant in epoch milliseconds."""
    return None if when is None else int(when.timestamp() * 1000)


def ago(since_ms: int | None) -> str:
    """How long ago an instant was, in its two largest units: ``3 h 20 min ago``."""
    return "some time ago" if since_ms is None else f"{span(int(time.time() - since_ms / 1000))} ago"


def lasting(since_ms: int | None) -> str:
    """For how long something has been so: ``for 3 h 20 min``."""
    return "for some time" if since_ms is None else f"for {span(int(time.time() - since_ms / 1000))}"


def span(seconds: int) -> str:
    """A length of time in its two largest units."""
    left = max(seconds, 0)
    found: list[str] = []
    for size, unit in _UNITS:
        if left >= size or (unit == "s" and not found):
            found.append(f"{left // size} {unit}")
            left %= size
    return " ".join(found[:2])


def who(owner: TxnOwner) -> str:
    """Who it is, where, and by which program."""
    return f"{owner.user}@{owner.host} ({owner.agent_info})"
