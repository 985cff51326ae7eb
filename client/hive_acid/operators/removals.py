"""Removals: directories of dropped objects that a metastore has still to remove, and what hinders it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from hive_acid.connection import Connection
from hive_acid.operators.show import Listing
from hive_acid.wire import ttypes


@dataclass(frozen=True, slots=True)
class Removal:
    """A directory that is to go, or to move to the `trash`: whose it was, failed attempts and the last error.

    Times are ms since 1970; `next_ms` is None while an attempt is under way or the first one is to come.
    """

    id: int
    location: str
    trash: str | None
    owner: str
    since_ms: int
    attempts: int
    next_ms: int | None
    error: str | None


def waiting(connection: Connection) -> list[Removal]:
    """The directories still to be removed, the oldest first, at most a thousand."""
    return _asked(connection, None)


def forget(connection: Connection, removal_id: int) -> list[Removal]:
    """Give up a removal that has failed: its directory stays. Returns what waits then.

    Raises NoSuchObjectError for one that does not wait, MetaError while an attempt is under way.
    """
    return _asked(connection, removal_id)


def listing(removals: list[Removal]) -> Listing:
    """Removals as a table for people."""
    now_ms = time.time() * 1000
    rows = tuple(
        (
            str(one.id),
            one.location,
            one.owner,
            f"{max(0, now_ms - one.since_ms) / 60_000:.0f} min",
            str(one.attempts),
            "" if one.next_ms is None else f"in {max(0, one.next_ms - now_ms) / 1000:.0f} s",
            one.error or "",
        )
        for one in removals
    )
    return Listing(
        "Directories to be removed", ("id", "location", "owner", "waiting", "attempts", "next", "error"), rows
    )


def _asked(connection: Connection, forgotten: int | None) -> list[Removal]:
    request = ttypes.HiveAcidRemovalsRequest(forget=forgotten)
    return [
        Removal(one.id, one.location, one.trash, one.owner, one.since, one.attempts, one.nextAttempt, one.error)
        for one in connection.call("hive_acid_removals", request).removals
    ]
