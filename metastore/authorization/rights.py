"""What users may do, read from the database and kept for a while.

What is kept is thrown away when this server changes something, before it answers, and when the database tells of a
change by another one (`listener`). While nobody listens nothing is kept. Whatever happens, it is read again after
`KEPT_S`.
"""

from __future__ import annotations

import threading
from time import monotonic
from typing import NamedTuple

from metastore.authorization.models import ADMIN, ALL, ANY, SEE, VERBS, Thing, Who
from metastore.store.database import Database

KEPT_S = 30.0
MOST_KEPT = 100_000
_KNOWN = VERBS | {ADMIN, SEE}
_INSIDE = _KNOWN - {"CREATE", SEE}


class Rights(NamedTuple):
    """What somebody may do with one thing, if it `is_there`, and may grant on; `owner` is whose it is."""

    verbs: frozenset[str]
    grantable: frozenset[str]
    owner: str | None
    is_there: bool

    @property
    def is_admin(self) -> bool:
        """Whether everything is allowed."""
        return ADMIN in self.verbs

    @property
    def shows_all(self) -> bool:
        """Whether whoever has this right with a database may see all that is in it."""
        return not self.verbs.isdisjoint(_INSIDE)

    def allow(self, verbs: frozenset[str]) -> bool:
        """Whether one of `verbs` is allowed."""
        held = self.verbs
        return ADMIN in held or not held.isdisjoint(verbs) or (ANY in verbs and bool(held))


class RightsBook:
    """All rights; safe to use from many threads."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._guard = threading.Lock()
        self._kept: dict[tuple[Who, Thing], tuple[float, Rights]] = {}
        self._changes = 0
        self._is_told = False

    def known(self, who: Who, thing: Thing) -> Rights | None:
        """What is kept; None if nothing is, or it is old."""
        kept = self._kept.get((who, thing))
        return kept[1] if kept is not None and kept[0] > monotonic() else None

    def read(self, who: Who, thing: Thing) -> Rights:
        """What the database says now, in one round trip."""
        changes = self._changes
        row = self._db.call_one("rights_on", who.user, list(who.groups), *thing)
        rights, grantable, owner, is_there = row or ((), (), None, False)
        found = Rights(_verbs(rights), _verbs(grantable), owner, is_there)
        with self._guard:
            # Nobody tells of a table that is made; what holds of its name meanwhile is asked for again.
            if self._is_told and is_there and changes == self._changes:
                if len(self._kept) >= MOST_KEPT:
                    self._kept.clear()
                self._kept[who, thing] = monotonic() + KEPT_S, found
        return found

    def forget(self, database: str | None = None, table: str | None = None) -> None:
        """Something has changed: on one table, or anywhere."""
        with self._guard:
            self._changes += 1
            if table is None:
                self._kept.clear()
            else:
                for key in [key for key in self._kept if key[1].database == database and key[1].table in (None, table)]:
                    del self._kept[key]

    def listening(self, is_told: bool) -> None:
        """Whether the database tells of changes from now on; what was kept may be old."""
        with self._guard:
            self._is_told = is_told
            self._changes += 1
            self._kept.clear()

    # --- what is not kept ---

    def roles(self, who: Who) -> dict[str, bool]:
        """The roles that somebody has, and whether it may grant them on."""
        return {str(role): bool(grantable) for role, grantable in self._db.call("roles_held", who.user, [*who.groups])}

    def visible_databases(self, who: Who) -> set[str]:
        """The keys of the databases in which somebody has a right; of those with a right on all of them not all."""
        return {str(name) for (name,) in self._db.call("visible_databases", who.user, [*who.groups])}

    def visible_tables(self, who: Who, database: str) -> set[str]:
        """The tables of a database that somebody has a right of their own on."""
        return {str(name) for (name,) in self._db.call("visible_tables", who.user, [*who.groups], database)}

    def compacted(self, ids: list[int]) -> list[tuple[str, str]]:
        """The tables of compactions."""
        return [(str(db), str(table)) for db, table in self._db.call("compaction_targets", ids)]

    def table(self, number: int) -> tuple[str, str] | None:
        """The table with an id."""
        row = self._db.call_one("table_of_id", number)
        return None if row is None else (str(row[0]), str(row[1]))

    def range_is_of(self, user: str, least: int, most: int) -> bool:
        """Whether no open transaction between two ids is of another user."""
        return self._db.call_one("txn_range_is_of", user, least, most) == (True,)

    def has_admin(self) -> bool:
        """Whether anybody has the role admin."""
        return self._db.call_one("has_admin") == (True,)


def _verbs(texts: list[str] | tuple[str, ...]) -> frozenset[str]:
    """Privileges as verbs; others, such as Hive's LOCK, mean nothing."""
    found = frozenset(texts)
    return (found | VERBS if ALL in found else found) & _KNOWN
