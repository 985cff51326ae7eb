"""Orphans: directories that no transaction can make visible any more, which a metastore finds and removes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from hive_acid.connection import Connection
from hive_acid.operators.show import Listing
from hive_acid.wire import ttypes

_UNITS = ("B", "kB", "MB", "GB", "TB")
_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000


@dataclass(frozen=True, slots=True)
class Orphan:
    """A directory that nobody needs: bytes and number of its files, its last change in ms since 1970, and why.

    If it is not certain that it is nobody's, a removal has to insist on it (`uncertain`).
    """

    location: str
    size: int
    files: int
    modified_ms: int
    reason: str
    why: str
    is_certain: bool
    is_removed: bool


@dataclass(frozen=True, slots=True)
class Sweep:
    """What to look for, and what to do with it: nothing changed less than `older_than_ms` ago is as much as told."""

    older_than_ms: int = 7 * _DAY_MS
    remove: bool = False
    uncertain: bool = False


def of_table(connection: Connection, database: str, name: str, sweep: Sweep = Sweep()) -> list[Orphan]:
    """The orphans in the places of one table. Raises NoSuchObjectError, and MetaError for bad input."""
    return list(_asked(connection, sweep, dbname=database, tablename=name))


def of_warehouse(connection: Connection, sweep: Sweep = Sweep()) -> list[Orphan]:
    """Directories beside those of tables that the catalogue does not know; none of them is certain."""
    return list(_asked(connection, sweep))


def of_all(connection: Connection, sweep: Sweep = Sweep()) -> Iterator[Orphan]:
    """All orphans: of each table, and what lies beside tables; as they are found, in calls of some seconds each."""
    for database in connection.call("get_all_databases"):
        for name in connection.call("get_all_tables", database):
            yield from _asked(connection, sweep, dbname=database, tablename=name)
    yield from _asked(connection, sweep)


def listing(orphans: list[Orphan]) -> Listing:
    """Orphans as a table of text, with their sum."""
    now_ms = time.time() * 1000
    rows = tuple(
        (one.location, _bytes(one.size), str(one.files), _age(now_ms - one.modified_ms), one.why, _outcome(one))
        for one in orphans
    )
    removed = sum(one.is_removed for one in orphans)
    title = f"{len(orphans)} orphans, {_bytes(sum(one.size for one in orphans))}; {removed} removed"
    return Listing(title, ("location", "size", "files", "age", "why", "what became of it"), rows)


def _asked(connection: Connection, sweep: Sweep, **target: str) -> Iterator[Orphan]:
    after: str | None = None
    while True:
        request = ttypes.HiveAcidOrphansRequest(
            olderThanMs=sweep.older_than_ms, remove=sweep.remove, uncertain=sweep.uncertain, after=after, **target
        )
        answer = connection.call("hive_acid_orphans", request)
        for one in answer.orphans:
            yield Orphan(
                one.location, one.size, one.files, one.modified, one.reason, one.why, one.isCertain, one.isRemoved
            )
        if (after := answer.goOnAfter) is None:
            return


def _outcome(orphan: Orphan) -> str:
    if orphan.is_removed:
        return "removed"
    return "stays" if orphan.is_certain else "stays; it may be somebody's"


def _bytes(size: float) -> str:
    for unit in _UNITS[:-1]:
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.0f} {_UNITS[-1]}"


def _age(age_ms: float) -> str:
    return f"{age_ms / _DAY_MS:.0f} d" if age_ms >= 2 * _DAY_MS else f"{age_ms / _HOUR_MS:.1f} h"
