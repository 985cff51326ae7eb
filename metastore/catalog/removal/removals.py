"""Directories of dropped objects, removed after the drop is committed.

The drop's database transaction writes a row for each directory; the row goes when the directory is gone. A row is
claimed by the one who works on it, so a directory is never removed twice at once, and never under a new table
that took its place: who wants to make it waits for the row. The claim of a killed process ends after `CLAIM`; one
that was paused for long and wakes up asks, before it removes anything, whether its claims are still its own.

A directory that can be brought back (`trash`) is not removed but moved to the trash, by the same rows.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, delete, func, insert, or_, select, text, true, update

from hive_acid.errors import InvalidOperationError, MetaError
from metastore.catalog.config import CatalogConfig
from metastore.catalog.directories import Directories, qualified
from metastore.catalog.schema import (
    DATABASE,
    DIRECTORY_REMOVAL,
    DROPPED_DIRECTORY,
    DROPPED_TABLE,
    PARTITION,
    TBL,
)
from metastore.store.database import Database

CLAIM = "10 minutes"
_WAIT_S = 5.0
_POLL_S = 0.05
_BATCH = 1000
_TOGETHER = 20
"""Directories that are removed before their rows go, in one statement: few, since others may wait for one of them."""

_COLUMNS = (
    DIRECTORY_REMOVAL.c.id,
    DIRECTORY_REMOVAL.c.location,
    DIRECTORY_REMOVAL.c.only_if_empty,
    DIRECTORY_REMOVAL.c.trash,
    DIRECTORY_REMOVAL.c.claimed_at,
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Removal:
    """One directory to remove, or to move to the trash; who claimed it last at `claimed_at` is to do it."""

    id: int
    location: str
    only_if_empty: bool
    trash: str | None
    claimed_at: datetime


class Removals:
    """The list of directories still to be removed."""

    def __init__(self, db: Database, directories: Directories, config: CatalogConfig) -> None:
        self._db = db
        self._directories = directories
        self.config = config

    @property
    def root(self) -> str:
        """The warehouse's."""
        return self._directories.root

    def plan(
        self,
        connection: Connection,
        locations: Sequence[str],
        only_if_empty: bool = False,
        trash: Mapping[str, str] | None = None,
    ) -> list[Removal]:
        """Note directories in the transaction of the drop, claimed by the caller; pass the result to `run`.

        `trash` says where those go that are kept.
        """
        if not self._directories.enabled or not locations:
            return []
        rows = [
            {"location": location, "only_if_empty": only_if_empty, "trash": (trash or {}).get(location)}
            for location in locations
        ]
        noted = connection.execute(insert(DIRECTORY_REMOVAL).returning(*_COLUMNS), rows)
        return [Removal(*row) for row in noted]

    def run(self, removals: list[Removal]) -> int:
        """Remove claimed directories, in order; returns how many. One that fails stays for `recover`, and is logged."""
        done = 0
        for start in range(0, len(removals), _TOGETHER):
            standing = self._standing(removals[start : start + _TOGETHER])
            gone = [removal.id for removal in standing if self._run(removal)]
            with self._db.engine.begin() as connection:
                connection.execute(delete(DIRECTORY_REMOVAL).where(DIRECTORY_REMOVAL.c.id.in_(gone)))
            done += len(gone)
        return done

    def _standing(self, removals: Sequence[Removal]) -> list[Removal]:
        """Those whose claim holds for a while yet; the others are, or will be, another one's."""
        row = DIRECTORY_REMOVAL.c
        half = func.clock_timestamp() - text("CAST(:claim AS interval) / 2").bindparams(claim=CLAIM)
        chosen = select(row.id, row.claimed_at).where(row.id.in_([r.id for r in removals]), row.claimed_at > half)
        with self._db.engine.connect() as connection:
            held = {(found.id, found.claimed_at) for found in connection.execute(chosen)}
        return [removal for removal in removals if (removal.id, removal.claimed_at) in held]

    def _run(self, removal: Removal) -> bool:
        try:
            if removal.trash is None:
                self._directories.remove(removal.location, removal.only_if_empty)
            else:
                self._directories.move(removal.location, removal.trash, or_nothing=True)
        except (MetaError, InvalidOperationError) as error:
            _log.warning("%s; it will be tried again", error)
            return False
        return True

    def remove_dropped(self, location: str, trash: str | None = None) -> bool:
        """Remove a directory, of an object dropped before, with all below it; or move it to its place in the `trash`.

        False, and it stays, if something of the catalogue lies at or below it: another one has taken its place.
        """
        place = qualified(location, self._directories.root)
        rows = (DATABASE.c.location, TBL.c.location, PARTITION.c.location)
        inside = [select(column).where(or_(column == place, func.starts_with(column, place + "/"))) for column in rows]
        kept = (
            select(DROPPED_DIRECTORY.c.trash)
            .join(DROPPED_TABLE, DROPPED_TABLE.c.id == DROPPED_DIRECTORY.c.dropped_id)
            .where(DROPPED_DIRECTORY.c.trash == trash)
            .with_for_update(of=DROPPED_TABLE)  # whoever brings it back comes before or after this
        )
        with self._db.engine.begin() as connection:
            is_kept = connection.execute(kept).first() is not None
            if connection.execute(select(or_(*(query.exists() for query in inside)))).scalar():
                _log.warning("the directory %s of a dropped object is in use again: it stays", place)
                return False
            planned = self.plan(connection, [place], trash={place: trash} if trash is not None and is_kept else None)
        self.run(planned)
        return True

    def recover(self, claim: str = CLAIM) -> int:
        """Take up removals whose claim is older than `claim`, at most a batch; returns how many were finished."""
        return self.run(self._claim(claim, true())) if self._directories.enabled else 0

    def wait_for(self, location: str, below: bool = False) -> None:
        """Return when nothing at or above `location`, nor with `below` in it, waits for removal.

        Raises InvalidOperationError if another one's removal does not end within a few seconds.
        """
        if not self._directories.enabled:
            return
        rows = DIRECTORY_REMOVAL.c
        in_the_way = or_(rows.location == location, func.starts_with(location, rows.location + "/"))
        if below:
            in_the_way = or_(in_the_way, func.starts_with(rows.location, location + "/"))
        deadline = time.monotonic() + _WAIT_S
        while self._is_pending(in_the_way):
            self.run(self._claim(CLAIM, in_the_way))
            if time.monotonic() > deadline:
                raise InvalidOperationError(
                    f"the directory {location} of a dropped object is still being removed: try again later"
                )
            time.sleep(_POLL_S)

    def _is_pending(self, chosen: ColumnElement[bool]) -> bool:
        with self._db.engine.connect() as connection:
            return connection.execute(select(DIRECTORY_REMOVAL.c.id).where(chosen).limit(1)).first() is not None

    def _claim(self, claim: str, chosen: ColumnElement[bool]) -> list[Removal]:
        rows = DIRECTORY_REMOVAL.c
        stale = rows.claimed_at <= func.clock_timestamp() - text("CAST(:claim AS interval)").bindparams(claim=claim)
        batch = select(rows.id).where(stale, chosen).order_by(rows.id).limit(_BATCH).with_for_update(skip_locked=True)
        with self._db.engine.begin() as connection:
            claimed = connection.execute(
                update(DIRECTORY_REMOVAL)
                .where(rows.id.in_(batch))
                .values(claimed_at=func.clock_timestamp())
                .returning(*_COLUMNS)
            )
            return sorted((Removal(*row) for row in claimed), key=lambda removal: removal.id)
