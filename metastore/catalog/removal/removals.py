"""Directories of dropped objects, removed after the drop is committed.

The drop's database transaction writes a row for each directory; the row goes when the directory is gone. The call that
drops makes the first attempt. What fails, or was left by a killed server, is the work of a background service, each
directory alone, with ever longer pauses; nothing waits for it but who wants the same place.

A row is claimed by the one who works on it, so a directory is never removed twice at once, and never under a new table
that took its place: who wants to make it waits for the row. The claim of a killed process ends after `CLAIM`, or when a
server starts on its host. One that was paused for long asks, before it removes anything, whether its claims are still
its own.

A directory that can be brought back (`trash`) is not removed but moved to the trash, by the same rows.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    cast,
    delete,
    func,
    insert,
    or_,
    select,
    text,
    true,
    update,
)

from hive_acid.errors import InvalidOperationError, MetaError, NoSuchObjectError
from metastore.catalog.config import CatalogConfig
from metastore.catalog.place.directories import Directories
from metastore.catalog.place.neighbours import ABOVE, DATABASE, NOBODY, PARTITION, TABLE, Neighbours, Own, being_removed
from metastore.catalog.schema import DIRECTORY_REMOVAL, DROPPED_DIRECTORY, DROPPED_TABLE
from metastore.filework.lanes import name_of, system_of
from metastore.store.database import Database

CLAIM = "10 minutes"
FIRST_PAUSE_S = 10
LONGEST_PAUSE_S = 3600
_WAIT_S = 5.0
_POLL_S = 0.05
_BATCH = 1000
_TOGETHER = 20
"""Directories that are removed before their rows go, in one statement: few, since others may wait for one of them."""
_MOST_SHOWN = 1000
_SYSTEMS = 8
"""File systems on which directories are removed at a time."""
_MOST_LETTERS = 1000
"""Of an error."""

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


@dataclass(frozen=True, slots=True)
class WaitingRemoval:
    """A directory that is still to be removed: whose it was, how often that failed and why; times in ms since 1970."""

    id: int
    location: str
    trash: str | None
    owner: str
    noted_ms: int
    attempts: int
    next_ms: int
    """0 while nobody has failed: an attempt is under way, or comes soon."""
    error: str | None


class Removals:
    """The list of directories still to be removed."""

    def __init__(self, db: Database, directories: Directories, neighbours: Neighbours, config: CatalogConfig) -> None:
        self._db = db
        self._directories = directories
        self._neighbours = neighbours
        self._name = f"{socket.gethostname()}:{os.getpid()}"
        self.config = config

    @property
    def root(self) -> str:
        """The warehouse's."""
        return self._directories.root

    def plan(
        self,
        connection: Connection,
        locations: Sequence[str],
        owner: str,
        only_if_empty: bool = False,
        trash: Mapping[str, str] | None = None,
    ) -> list[Removal]:
        """Note directories of an `owner` in the transaction of its drop, claimed by the caller; pass them to `run`.

        Nobody else needs them (`neighbours`). `trash` says where those go that are kept.
        """
        if not self._directories.enabled or not locations:
            return []
        rows = [
            {
                "location": location,
                "owner": owner,
                "only_if_empty": only_if_empty,
                "trash": (trash or {}).get(location),
                "claimed_by": self._name,
            }
            for location in locations
        ]
        noted = connection.execute(insert(DIRECTORY_REMOVAL).returning(*_COLUMNS), rows)
        return [Removal(*row) for row in noted]

    def run(self, removals: list[Removal], takes_long: bool = False) -> int:
        """Remove claimed directories, in order; returns how many went. What fails is logged, and tried again later.

        `takes_long` waits longer for each. Of a file system that does not answer only one is waited for.
        """
        done, silent = 0, set[tuple[str, str]]()
        for start in range(0, len(removals), _TOGETHER):
            gone = []
            for removal in self._standing(removals[start : start + _TOGETHER]):
                system = system_of(removal.location)
                if system in silent:
                    self._put_off(removal, f"{name_of(system)} has not answered")
                elif (error := self._error_of(removal, takes_long)) is None:
                    gone.append(removal.id)
                else:
                    _log.warning("%s; it will be tried again", error)
                    is_running = isinstance(error.__cause__, TimeoutError)
                    if is_running:
                        silent.add(system)
                    self._put_off(removal, str(error), is_running)
            with self._db.engine.begin() as connection:
                connection.execute(delete(DIRECTORY_REMOVAL).where(DIRECTORY_REMOVAL.c.id.in_(gone)))
            done += len(gone)
        return done

    def run_due(self) -> int:
        """Take up what failed and is due again, and what a killed server left; returns how many directories went.

        File systems do not wait for each other.
        """
        if not self._directories.enabled:
            return 0
        by_system: dict[tuple[str, str], list[Removal]] = {}
        for removal in self._claim(true()):
            by_system.setdefault(system_of(removal.location), []).append(removal)
        if len(by_system) < 2:
            return sum(self.run(removals, takes_long=True) for removals in by_system.values())
        with ThreadPoolExecutor(min(len(by_system), _SYSTEMS), thread_name_prefix="removals") as pool:
            return sum(pool.map(partial(self.run, takes_long=True), by_system.values()))

    def release_left(self) -> None:
        """Give up the claims of processes of this host that are gone; no file is looked at."""
        row, (host, _, own) = DIRECTORY_REMOVAL.c, self._name.rpartition(":")
        with self._db.engine.begin() as connection:
            claimers = connection.execute(
                select(row.claimed_by).where(row.claimed_by.startswith(f"{host}:")).distinct()
            )
            pids = {name: name.rpartition(":")[2] for name in claimers.scalars()}
            gone = [name for name, pid in pids.items() if pid == own or not _is_running(pid)]
            left = update(DIRECTORY_REMOVAL).where(row.claimed_by.in_(gone), row.next_at.is_(None))
            connection.execute(left.values(next_at=func.clock_timestamp()))

    def waiting(self, owner: str | None = None) -> list[WaitingRemoval]:
        """The directories still to be removed, the oldest first, at most a thousand; those of one owner, or all."""
        row = DIRECTORY_REMOVAL.c
        columns = (row.id, row.location, row.trash, row.owner, _ms(row.noted_at), row.attempts, _ms(row.next_at))
        query = select(*columns, row.last_error).order_by(row.noted_at, row.id).limit(_MOST_SHOWN)
        if owner is not None:
            query = query.where(row.owner == owner)
        with self._db.engine.connect() as connection:
            return [WaitingRemoval(*found) for found in connection.execute(query)]

    def forget(self, removal_id: int) -> None:
        """Give a removal up; its directory stays. Raises NoSuchObjectError, MetaError while an attempt is under way."""
        row = DIRECTORY_REMOVAL.c
        chosen = delete(DIRECTORY_REMOVAL).where(row.id == removal_id, row.next_at.is_not(None))
        with self._db.engine.begin() as connection:
            if connection.execute(chosen).rowcount:
                return
            found = connection.execute(select(row.location).where(row.id == removal_id)).scalar()
        if found is None:
            raise NoSuchObjectError(f"no removal {removal_id} waits")
        raise MetaError(f"removal {removal_id} of {found} has not failed: an attempt is under way, or comes soon")

    def _standing(self, removals: Sequence[Removal]) -> list[Removal]:
        """Those whose claim holds for a while yet; the others are, or will be, another one's."""
        row = DIRECTORY_REMOVAL.c
        half = func.clock_timestamp() - text("CAST(:claim AS interval) / 2").bindparams(claim=CLAIM)
        chosen = select(row.id, row.claimed_at).where(row.id.in_([r.id for r in removals]), row.claimed_at > half)
        with self._db.engine.connect() as connection:
            held = {(found.id, found.claimed_at) for found in connection.execute(chosen)}
        return [removal for removal in removals if (removal.id, removal.claimed_at) in held]

    def _error_of(self, removal: Removal, takes_long: bool) -> Exception | None:
        """Remove or move a directory; why that failed, None if it is gone."""
        try:
            if self._is_foreign(removal):
                return None
            if removal.trash is None:
                self._directories.remove(removal.location, removal.only_if_empty, takes_long)
            else:
                self._directories.move(removal.location, removal.trash, or_nothing=True)
        except Exception as error:  # whatever is wrong with one directory must not keep the others
            return error
        return None

    def _is_foreign(self, removal: Removal) -> bool:
        """Whether the way to the directory leads through a link that was not known, to somebody else's data."""
        if not self._neighbours.learn([removal.location]):
            return False
        with self._db.engine.begin() as connection:
            blocked = self._neighbours.in_the_way(connection, [removal.location])
        for neighbour in blocked.values():
            _log.warning("the directory %s stays: it is a link, and there lies %s", removal.location, neighbour)
        return bool(blocked)

    def _put_off(self, removal: Removal, error: str, is_running: bool = False) -> None:
        """Try again after a pause; what may still be running keeps its claim, so that nobody begins beside it."""
        row = DIRECTORY_REMOVAL.c
        pause_s = func.least(LONGEST_PAUSE_S, FIRST_PAUSE_S * func.power(2, func.least(row.attempts, 20)))
        chosen = update(DIRECTORY_REMOVAL).where(row.id == removal.id, row.claimed_at == removal.claimed_at)
        values = {
            "attempts": row.attempts + 1,
            "next_at": None if is_running else func.clock_timestamp() + pause_s * text("interval '1 second'"),
            "last_error": error[:_MOST_LETTERS],
        }
        with self._db.engine.begin() as connection:
            connection.execute(chosen.values(values))

    def give_back(self, places: Sequence[str], own: Own = NOBODY) -> None:
        """Remove directories that were made for something that was not stored then, unless others have them by now.

        If that cannot be found out they stay, empty.
        """
        if not places:
            return
        try:
            with self._db.engine.begin() as connection:
                taken = self._neighbours.in_the_way(connection, places, own)
                free = [place for place in places if place not in taken]
                planned = self.plan(connection, free, "", only_if_empty=True)
            self.run(planned)
        except Exception as error:  # the one that led here is to be told
            _log.warning("the directories %s, which were made in vain, may stay: %s", ", ".join(places), error)

    def remove_dropped(self, location: str, trash: str | None = None) -> bool:
        """Remove a directory, of an object dropped before, with all below it; or move it to its place in the `trash`.

        False, and it stays, if something of the catalogue lies at or below it: another one has taken its place.
        """
        place = self._directories.stored(location)
        self._neighbours.learn([place])
        kept = (
            select(DROPPED_DIRECTORY.c.trash)
            .join(DROPPED_TABLE, DROPPED_TABLE.c.id == DROPPED_DIRECTORY.c.dropped_id)
            .where(DROPPED_DIRECTORY.c.trash == trash)
            .with_for_update(of=DROPPED_TABLE)  # whoever brings it back comes before or after this
        )
        with self._db.engine.begin() as connection:
            is_kept = connection.execute(kept).first() is not None
            there = self._neighbours.near(connection, [place], NOBODY, lock=True)[place]
            taken = [one for one in there if one.relation != ABOVE and one.kind in (TABLE, PARTITION, DATABASE)]
            if taken:
                _log.warning("the directory %s of a dropped object is in use again, by %s: it stays", place, taken[0])
                return False
            trashes = {place: trash} if trash is not None and is_kept else None
            planned = self.plan(connection, [place], "", trash=trashes)
        self.run(planned)
        return True

    def remove_unknown(self, location: str, inside: str | None = None) -> bool:
        """Remove a directory of which nothing is known (`Neighbours.in_use`); False, and it stays, if something is."""
        place = self._directories.stored(location)
        return self._remove_unless(place, lambda connection: self._neighbours.in_use(connection, [place], inside, True))

    def remove_home(self, location: str, only_if_empty: bool, dropped_s: float) -> None:
        """Remove the directory of a database dropped at `dropped_s` (s since 1970) of which nothing is read any more.

        It stays if something of the catalogue lies at or below it. What has changed there since may be somebody's: then
        it goes only if no file is left in it, as with `only_if_empty`.
        """
        place = self._directories.stored(location)
        spared = only_if_empty or self._directories.has_files(place, since_s=dropped_s)
        self._remove_unless(place, lambda connection: self._neighbours.in_the_way(connection, [place]), spared)

    def _remove_unless(
        self, place: str, is_taken: Callable[[Connection], Collection[str]], only_if_empty: bool = False
    ) -> bool:
        """Remove a directory unless it `is_taken`, as the transaction that plans it finds; whether it was not."""
        self._neighbours.learn([place])
        with self._db.engine.begin() as connection:
            if is_taken(connection):
                return False
            planned = self.plan(connection, [place], "", only_if_empty=only_if_empty)
        self.run(planned)
        return True

    def wait_for(self, location: str, below: bool = False) -> None:
        """Return when nothing at or above `location`, nor with `below` in it, waits for removal.

        Raises InvalidOperationError if another one's removal does not end within a few seconds, or fails.
        """
        if not self._directories.enabled or not location:
            return
        deadline = time.monotonic() + _WAIT_S
        while ids := self._pending(location, below):
            chosen = DIRECTORY_REMOVAL.c.id.in_(ids)
            self.run(self._claim(chosen, at_once=True))
            with self._db.engine.connect() as connection:
                failed = select(DIRECTORY_REMOVAL.c.last_error).where(chosen, DIRECTORY_REMOVAL.c.next_at.is_not(None))
                error = connection.execute(failed).scalar()
            if error is not None:
                raise InvalidOperationError(f"{being_removed(location)} ({error})")
            if time.monotonic() > deadline:
                raise InvalidOperationError(being_removed(location))
            time.sleep(_POLL_S)

    def _pending(self, location: str, below: bool) -> list[int]:
        with self._db.engine.connect() as connection:
            return self._neighbours.removals_near(connection, location, below)

    def _claim(self, chosen: ColumnElement[bool], at_once: bool = False) -> list[Removal]:
        """Claim those of some removals that nobody is at and that are due, or with `at_once` that have failed."""
        row, now = DIRECTORY_REMOVAL.c, func.clock_timestamp()
        stale = row.claimed_at <= now - text("CAST(:claim AS interval)").bindparams(claim=CLAIM)
        free = row.next_at.is_not(None) if at_once else row.next_at <= now
        is_free = or_(free, row.next_at.is_(None) & stale)
        batch = select(row.id).where(is_free, chosen).order_by(row.id).limit(_BATCH).with_for_update(skip_locked=True)
        with self._db.engine.begin() as connection:
            claimed = connection.execute(
                update(DIRECTORY_REMOVAL)
                .where(row.id.in_(batch))
                .values(claimed_at=now, claimed_by=self._name, next_at=None)
                .returning(*_COLUMNS)
            )
            return sorted((Removal(*found) for found in claimed), key=lambda removal: removal.id)


def _is_running(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _ms(column: ColumnElement[datetime]) -> ColumnElement[int]:
    return cast(func.coalesce(func.extract("epoch", column) * 1000, 0), BigInteger)
