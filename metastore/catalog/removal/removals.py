"""Directories of dropped objects, removed after the drop is committed.

The drop's database transaction writes a row for each directory; the row goes when the directory is gone. The call that
drops makes the first attempt. What fails, or was left by a killed server, is the work of a background service, each
directory alone, with ever longer pauses; nothing waits for it but who wants the same place.

A row is claimed by the one who works on it, so a directory is never removed twice at once, and never under a new table
that took its place: who wants to make it waits for the row. The claim of a killed process ends after `CLAIM`, or when a
server starts on its host. One that was paused for long asks, before it removes anything, whether its claims are still
its own. While the clock may have been put forward no claim ends: what another one is at work on would look left.

A directory that can be brought back (`trash`) is not removed but moved to the trash, by the same rows. One that a
rename moves has such a row until the rename is committed, and goes back by it (`moves`).
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Interval,
    case,
    cast,
    delete,
    false,
    func,
    insert,
    or_,
    select,
    text,
    true,
    tuple_,
    update,
)

from hive_acid.errors import InvalidOperationError, MetaError, NoSuchObjectError
from metastore.catalog.config import CatalogConfig
from metastore.catalog.place.directories import Directories
from metastore.catalog.place.neighbours import (
    ABOVE,
    BELOW,
    DATABASE,
    MOVING,
    NOBODY,
    PARTITION,
    RENAMING,
    TABLE,
    GoingError,
    Neighbour,
    Neighbours,
    Own,
    going,
)
from metastore.catalog.place.places import OtherNameError
from metastore.catalog.schema import DIRECTORY_REMOVAL, DROPPED_DIRECTORY, DROPPED_TABLE
from metastore.filework.files import OBJECT_STORES, rename_is_copy
from metastore.filework.pools import LONG, name_of, system_of
from metastore.store.clock import ClockWatch
from metastore.store.database import Database

_CLAIM_S = 600
CLAIM = f"{_CLAIM_S} seconds"
FIRST_PAUSE_S = 10
LONGEST_PAUSE_S = 3600
WAIT_S = 5.0
_POLL_S = 0.05
_BATCH = 1000
_TOGETHER = 20
"""Directories that are removed before their rows go, in one statement: few, since others may wait for one of them."""
_MOST_SHOWN = 1000
_SYSTEMS = 8
"""File systems on which directories are removed at a time."""
_MOST_LETTERS = 1000
"""Of an error."""
_MOST_WAITS = 3
"""For what others remove and move, by one change."""
_MAY_RUN = "1 day"
"""So much longer a claim holds if a copy may still be running that nobody waits for."""

_COLUMNS = (
    DIRECTORY_REMOVAL.c.id,
    DIRECTORY_REMOVAL.c.location,
    DIRECTORY_REMOVAL.c.only_if_empty,
    DIRECTORY_REMOVAL.c.trash,
    DIRECTORY_REMOVAL.c.claimed_at,
    DIRECTORY_REMOVAL.c.takes_back,
    DIRECTORY_REMOVAL.c.home_since,
)

T = TypeVar("T")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Removal:
    """One directory to remove, or to move to `trash`; who claimed it last at `claimed_at` is to do it.

    With `takes_back` somebody moves it from `trash`, which is where it belongs, and has not committed that.
    """

    id: int
    location: str
    only_if_empty: bool
    trash: str | None
    claimed_at: datetime
    takes_back: bool
    home_since: datetime | None
    """When the database was dropped whose directory it is."""


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
    takes_back: bool
    """Whether it is a move that is not committed; `trash` is where the directory belongs."""


class Removals:
    """The list of directories still to be removed."""

    def __init__(self, db: Database, directories: Directories, neighbours: Neighbours, config: CatalogConfig) -> None:
        self._db = db
        self._directories = directories
        self._neighbours = neighbours
        self._host = f"{socket.gethostname()}:"
        self._namespace = f"{self._host}{_namespace()}:"
        self._name = f"{self._namespace}{os.getpid()}"
        self._left: list[Removal] = []
        """Claimed here, and not done because the database was away."""
        self.config = config
        self.clock = ClockWatch(_CLAIM_S)

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

        Nobody else needs them (`neighbours`). `trash` says where those go that are kept. With `only_if_empty` the
        warehouse may be among them, or be in one; such a place is left out.
        """
        if only_if_empty and locations:
            kept = self._neighbours.with_the_warehouse(connection, locations)
            locations = [location for location in locations if location not in kept]
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

    def plan_moves(self, connection: Connection, moves: Sequence[tuple[str, str]], owner: str) -> list[Removal]:
        """Note directories of an `owner` that are about to be moved, each from one place to another: `run` undoes it.

        Claimed by the caller, who calls `settle` in the transaction that stores the new places.
        """
        if not self._directories.enabled or not moves:
            return []
        rows = [
            {
                "location": target,
                "owner": owner,
                "only_if_empty": False,
                "trash": source,
                "takes_back": True,
                "claimed_by": self._name,
                "claimed_at": func.clock_timestamp() + self._copying(target),
            }
            for source, target in moves
        ]
        noted = connection.execute(insert(DIRECTORY_REMOVAL).values(rows).returning(*_COLUMNS))
        return [Removal(*row) for row in noted]

    def settle(self, connection: Connection, planned: Sequence[Removal]) -> None:
        """Moves stay as they are if the caller's transaction is committed.

        Raises InvalidOperationError if that took so long that another one has taken them back.
        """
        if planned and connection.execute(delete(DIRECTORY_REMOVAL).where(_own(planned))).rowcount != len(planned):
            raise InvalidOperationError("the move of a directory took too long and was taken back: try again")

    def stands(self, removal: Removal) -> bool:
        """Whether a claim holds for a while yet."""
        with self._db.engine.connect() as connection:
            return bool(_held(connection, [removal]))

    def leave(self, removal: Removal) -> None:
        """Nothing was moved: there is nothing to take back."""
        with self._db.engine.begin() as connection:
            connection.execute(delete(DIRECTORY_REMOVAL).where(_own([removal])))

    def undo(self, planned: Sequence[Removal], running: Removal | None = None, error: str = "") -> None:
        """Take moves back unless they are committed; what cannot be now, later. `running` may still be under way."""
        try:
            if running is not None:
                self._put_off(running, error, is_running=True)
            self.run([removal for removal in planned if removal is not running])
        except Exception as failure:  # the one that led here is to be told
            _log.warning("moves that were not committed are taken back later: %s", failure)
            self._left += planned

    def beside_others(self, work: Callable[[], T]) -> T:
        """The result of `work`, repeated when removals and moves of others have ended that it met.

        Whoever waits for them first meets one that is noted after that. Raises InvalidOperationError.
        """
        for _ in range(_MOST_WAITS):
            try:
                return work()
            except GoingError as going_on:
                self.wait_for(going_on.place)
        return work()

    def run(self, removals: list[Removal], takes_long: bool = False) -> int:
        """Remove claimed directories, in order; returns how many went. What fails is logged, and tried again later.

        `takes_long` waits longer for each. Of a file system that does not answer only one is waited for.
        """
        done, silent = 0, set[tuple[str, str]]()
        for start in range(0, len(removals), _TOGETHER):
            gone: list[int] = []
            for removal in self._standing(removals[start : start + _TOGETHER]):
                system = system_of(removal.location)
                if system in silent:
                    self._put_off(removal, f"{name_of(system)} has not answered")
                elif (error := self._error_of(removal, takes_long, gone)) is None:
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
        self.release_left(of_this_process=False)
        left, self._left = self._left, []
        by_system: dict[tuple[str, str], list[Removal]] = {}
        for removal in (*left, *self._claim(true())):
            by_system.setdefault(system_of(removal.location), []).append(removal)
        if len(by_system) < 2:
            return sum(self.run(removals, takes_long=True) for removals in by_system.values())
        with ThreadPoolExecutor(min(len(by_system), _SYSTEMS), thread_name_prefix="removals") as pool:
            return sum(pool.map(partial(self.run, takes_long=True), by_system.values()))

    def release_left(self, of_this_process: bool = True) -> None:
        """Give up the claims of processes of this host that are gone; no file is looked at.

        With `of_this_process`, as when a server starts, one with the same id is gone, and so are those that only
        another container on this host could see.
        """
        row, own = DIRECTORY_REMOVAL.c, str(os.getpid())
        seen = self._host if of_this_process else self._namespace
        with self._db.engine.begin() as connection:
            claimers = connection.execute(
                select(row.claimed_by).where(row.claimed_by.startswith(seen, autoescape=True)).distinct()
            )
            pids = {name: name.rpartition(":")[2] for name in claimers.scalars()}
            gone = [name for name, pid in pids.items() if not _is_running(pid) or (of_this_process and pid == own)]
            left = update(DIRECTORY_REMOVAL).where(row.claimed_by.in_(gone), row.next_at.is_(None))
            connection.execute(left.values(next_at=func.clock_timestamp()))

    def waiting(self, owner: str | None = None) -> list[WaitingRemoval]:
        """The directories still to be removed, the oldest first, at most a thousand; those of one owner, or all."""
        row = DIRECTORY_REMOVAL.c
        columns = (row.id, row.location, row.trash, row.owner, _ms(row.noted_at), row.attempts, _ms(row.next_at))
        query = select(*columns, row.last_error, row.takes_back).order_by(row.noted_at, row.id).limit(_MOST_SHOWN)
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
        """Those whose claim holds for a while yet; the others are another one's.

        One that is old, and that nobody else has taken, is made new. It waits for a transaction that is about to settle
        one, even if nobody hears any more how it ends.
        """
        with self._db.engine.connect() as connection:
            standing = _held(connection, removals)
            if old := [removal for removal in removals if removal.id not in standing]:
                now = func.clock_timestamp() + self._copying()
                renewal = update(DIRECTORY_REMOVAL).where(_own(old)).values(claimed_at=now).returning(*_COLUMNS)
                standing |= {one.id: Removal(*one) for one in connection.execute(renewal)}
                connection.commit()
        return [standing[removal.id] for removal in removals if removal.id in standing]

    def _error_of(self, removal: Removal, takes_long: bool, gone: Collection[int]) -> Exception | None:
        """Remove or move a directory; why that failed, None if it is gone. Those of the removals `gone` went before."""
        try:
            if not removal.takes_back and self._is_foreign(removal):
                return None
            if removal.trash is None:
                if removal.home_since is not None and self._is_home_again(removal.location):
                    return None
                only_if_empty = self._only_if_empty(removal)
                self._directories.remove(removal.location, only_if_empty, takes_long)
                if only_if_empty and self._directories.exists(removal.location):
                    self._check_nothing_waits_in(removal, gone)
            else:
                self._directories.move(removal.location, removal.trash, or_nothing=True)
        except OtherNameError as error:  # it was made anew under a name that only the file system takes for that one
            _log.warning("the directory %s stays: %s", removal.location, error)
        except Exception as error:  # whatever is wrong with one directory must not keep the others
            return error
        return None

    def _check_nothing_waits_in(self, removal: Removal, gone: Collection[int]) -> None:
        """A directory that goes only if it is empty is not done with before what is removed in it has gone."""
        there = self._pending(removal.location, below=True)
        if any(one.relation == BELOW and one.id not in gone for one in there):
            raise MetaError(f"in the directory {removal.location} something waits for its own removal")

    def _is_home_again(self, location: str) -> bool:
        """Whether somebody has something in the directory of a dropped database, or still reads there.

        Who reads there last notes it anew. Raises MetaError while something is moved there.
        """
        self._neighbours.learn([location])
        with self._db.engine.begin() as connection:
            found = self._neighbours.in_the_way(connection, [location]).get(location)
        if found is not None and found.kind in (MOVING, RENAMING):
            raise MetaError(going(location, found))
        return found is not None

    def _only_if_empty(self, removal: Removal) -> bool:
        """What has changed in a directory after its database was dropped may be somebody's: a file there keeps it.

        So does any file if the clock was put back since.
        """
        since = removal.home_since
        return removal.only_if_empty or (
            since is not None
            and (removal.claimed_at < since or self._directories.has_files(removal.location, since_s=since.timestamp()))
        )

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
        if is_running and removal.trash is not None and rename_is_copy(removal.trash):
            values["claimed_at"] = func.clock_timestamp() + text("CAST(:longer AS interval)").bindparams(
                longer=_MAY_RUN
            )
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
        self._neighbours.learn([place])
        with self._db.engine.begin() as connection:
            if self._neighbours.in_use(connection, [place], inside, lock=True):
                return False
            planned = self.plan(connection, [place], "")
        self.run(planned)
        return True

    def remove_homes(self) -> None:
        """Remove the directories of dropped databases in which nothing is read any more; what fails, later."""
        if self._directories.enabled:
            self.run(self._claim(DIRECTORY_REMOVAL.c.home_since.is_not(None)))

    def wait_for(self, location: str, below: bool = False) -> None:
        """Return when nothing at or above `location`, nor with `below` in it, waits for removal.

        Raises InvalidOperationError if another one's removal does not end within a few seconds, or fails.
        """
        if not self._directories.enabled or not location:
            return
        deadline = time.monotonic() + WAIT_S
        while there := self._pending(location, below):
            chosen = DIRECTORY_REMOVAL.c.id.in_([one.id for one in there])
            self.run(self._claim(chosen, at_once=True))
            with self._db.engine.connect() as connection:
                failed = select(DIRECTORY_REMOVAL.c.last_error).where(chosen, DIRECTORY_REMOVAL.c.next_at.is_not(None))
                error = connection.execute(failed).scalar()
            if error is not None:
                raise InvalidOperationError(f"{going(location, there[0])} ({error})")
            if time.monotonic() > deadline:
                raise InvalidOperationError(going(location, there[0]))
            time.sleep(_POLL_S)

    def _pending(self, location: str, below: bool) -> list[Neighbour]:
        with self._db.engine.connect() as connection:
            return self._neighbours.removals_near(connection, location, below)

    def _claim(self, chosen: ColumnElement[bool], at_once: bool = False) -> list[Removal]:
        """Claim those of some removals that nobody is at and that are due, or with `at_once` that have failed."""
        row, now = DIRECTORY_REMOVAL.c, func.clock_timestamp()
        longest = text("CAST(:pause AS interval)").bindparams(pause=f"{LONGEST_PAUSE_S} seconds")
        # One that is to wait for longer was put off before the clock was put back.
        is_due = or_(row.next_at <= now, row.next_at > now + longest)
        free = row.next_at.is_not(None) if at_once else is_due
        with self._db.engine.begin() as connection:
            is_free = or_(free, row.next_at.is_(None) & self._is_stale(connection))
            batch = (
                select(row.id).where(is_free, chosen).order_by(row.id).limit(_BATCH).with_for_update(skip_locked=True)
            )
            claimed = connection.execute(
                update(DIRECTORY_REMOVAL)
                .where(row.id.in_(batch))
                .values(claimed_at=now + self._copying(), claimed_by=self._name, next_at=None)
                .returning(*_COLUMNS)
            )
            return sorted((Removal(*found) for found in claimed), key=lambda removal: removal.id)

    def _is_stale(self, connection: Connection) -> ColumnElement[bool]:
        """Whether a claim has ended by itself; none has while the clock may have been moved."""
        now_ms = self.clock.trusted_ms(connection)
        if now_ms is None:
            return false()
        row, now = DIRECTORY_REMOVAL.c, func.to_timestamp(now_ms / 1000)
        claim, running = (cast(text, Interval) for text in (CLAIM, _MAY_RUN))
        ahead = now + claim + self._copying(running=running)
        # One from so far ahead was made before the clock was put back.
        return or_(row.claimed_at <= now - claim, row.claimed_at > ahead)

    def _longest_copy(self) -> ColumnElement[timedelta]:
        return cast(text(":ms * interval '1 ms'").bindparams(ms=self.config.file_timeout_ms * LONG), Interval)

    def _copying(
        self, location: str | None = None, running: ColumnElement[timedelta] | None = None
    ) -> ColumnElement[timedelta]:
        """How much longer a claim holds on what is moved by a copy: of a location, or of a row.

        With `running` that is added if nobody may wait for the copy any more.
        """
        longest = self._longest_copy()
        longest = longest if running is None else longest + running
        nothing = cast(text("interval '0'"), Interval)
        if location is not None:
            return longest if rename_is_copy(location) else nothing
        row = DIRECTORY_REMOVAL.c
        is_copy = row.trash.is_not(None) & func.split_part(row.location, ":", 1).in_(OBJECT_STORES)
        return case((is_copy, longest), else_=nothing)


def _namespace() -> str:
    """That of the ids of processes, which containers have of their own."""
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        return ""


def _is_running(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _own(removals: Sequence[Removal]) -> ColumnElement[bool]:
    """The rows of removals that nobody else has claimed since."""
    row = DIRECTORY_REMOVAL.c
    return tuple_(row.id, row.claimed_at).in_([(one.id, one.claimed_at) for one in removals])


def _held(connection: Connection, removals: Sequence[Removal]) -> dict[int, Removal]:
    """Those whose claim holds for a while yet, by id."""
    row = DIRECTORY_REMOVAL.c
    half = func.clock_timestamp() - text("CAST(:claim AS interval) / 2").bindparams(claim=CLAIM)
    chosen = select(row.id).where(_own(removals), row.claimed_at > half)
    held = set(connection.execute(chosen.with_for_update(read=True, key_share=True)).scalars())
    return {removal.id: removal for removal in removals if removal.id in held}


def _ms(column: ColumnElement[datetime]) -> ColumnElement[int]:
    return cast(func.coalesce(func.extract("epoch", column) * 1000, 0), BigInteger)
