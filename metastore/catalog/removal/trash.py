"""Dropped tables that can be brought back: on record with partitions and write ids, their files in the trash.

A drop puts them there (`drops`) if `metastore.catalog.undrop.window` says so. What had not committed at the drop is not
brought back, so the drop aborts those who are writing. Neither are statistics, constraints and privileges.
"""

from __future__ import annotations

from sqlalchemy import Connection, func, select, text, update
from sqlalchemy.exc import IntegrityError

from hive_acid.errors import (
    AlreadyExistsError,
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
)
from metastore.catalog import changes
from metastore.catalog.lookup import TableLookup
from metastore.catalog.names import fold
from metastore.catalog.place.directories import Directories
from metastore.catalog.place.neighbours import NOBODY, Neighbours, Own
from metastore.catalog.records import locked
from metastore.catalog.removal.moves import DirectoryMoves
from metastore.catalog.removal.removals import CLAIM, Removals
from metastore.catalog.schema import DROPPED_DIRECTORY, DROPPED_TABLE
from metastore.store.database import Database

UNDROP = "metastore.catalog.undrop"
"""The property by which a create_table, of which but the names count, asks for the table that was dropped."""
_BATCH = 100


class Trash:
    """Brings tables back, and forgets those whose time is over."""

    def __init__(
        self,
        db: Database,
        tables: TableLookup,
        directories: Directories,
        neighbours: Neighbours,
        removals: Removals,
        moves: DirectoryMoves,
    ) -> None:
        self._db = db
        self._tables = tables
        self._directories = directories
        self._neighbours = neighbours
        self._removals = removals
        self._moves = moves

    def restore(self, database: str, name: str) -> None:
        """Bring back the table of this name that was dropped last; killed meanwhile, it can be asked for again.

        Raises NoSuchObjectError if there is none, AlreadyExistsError if there is a table of that name, MetaError if
        another one is at it.
        """
        database, name = fold(database), fold(name)
        if self._tables.find(database, name) is not None:
            raise AlreadyExistsError(f"table {database}.{name} exists: rename it, then the dropped one can come back")
        dropped_id, places = self._claim(database, name)
        for place, _ in places:
            self._removals.wait_for(place)  # it may be on its way to the trash
        moves = [(trash, place) for place, trash in places if self._directories.exists(trash)]

        gone = NoSuchObjectError(f"table {database}.{name} was brought back or purged by another one")

        def restored(connection: Connection) -> None:
            restored = func.catalog_restore_dropped(dropped_id)
            outcome = connection.execute(select(restored)).scalar_one()
            if outcome == "gone":
                raise gone
            if outcome == "moving":
                raise MetaError(f"the directory of {database}.{name} is being moved: try again")
            table = locked(connection, database, name)
            self._neighbours.claim(connection, [place for place, _ in places], table, Own(table.id))
            changes.table_appeared(connection, table)

        def check(connection: Connection) -> None:
            # The table that is to claim its places comes with the last step, which finds whose they are by then.
            kept = select(DROPPED_TABLE.c.id).where(DROPPED_TABLE.c.id == dropped_id).with_for_update()
            if connection.execute(kept).first() is None:
                raise gone

        try:
            self._moves.moved(f"{database}.{name}", moves, check, restored)
        except (IntegrityError, InvalidObjectError, InvalidOperationError) as error:
            if not isinstance(error, IntegrityError):
                raise AlreadyExistsError(f"table {database}.{name} cannot be brought back: {error}") from error
            raise AlreadyExistsError(
                f"table {database}.{name} cannot be brought back: its database is gone, or the name is taken"
            ) from error

    def purge(self) -> int:
        """Forget tables whose time is over and remove their directories; returns how many of these went."""
        with self._db.engine.begin() as connection:
            now_ms = self._removals.clock.trusted_ms(connection)
            if now_ms is None:
                return 0
            places = list(connection.execute(select(func.catalog_purge_dropped(_BATCH, now_ms))).scalars())
            shared = self._neighbours.in_the_way(connection, places, NOBODY)
            planned = self._removals.plan(connection, [place for place in places if place not in shared], "trash")
        return self._removals.run(planned)

    def _claim(self, database: str, name: str) -> tuple[int, list[tuple[str, str]]]:
        """The table dropped last, which is not purged for a while, and its directories: where they were and are."""
        dropped, directory = DROPPED_TABLE.c, DROPPED_DIRECTORY.c
        newest = (
            select(dropped.id)
            .where(dropped.database == database, dropped.name == name)
            .order_by(dropped.id.desc())
            .limit(1)
            .with_for_update()
        )
        with self._db.engine.begin() as connection:
            found = connection.execute(newest).scalar()
            if found is None:
                raise NoSuchObjectError(
                    f"no dropped table {database}.{name} is in the trash: it keeps those that were dropped within"
                    " metastore.catalog.undrop.window and not purged"
                )
            later = func.clock_timestamp() + text("CAST(:claim AS interval)").bindparams(claim=CLAIM)
            claim = update(DROPPED_TABLE).where(dropped.id == found)
            connection.execute(claim.values(purge_at=func.greatest(dropped.purge_at, later)))
            query = select(directory.location, directory.trash).where(directory.dropped_id == found)
            return found, [(row.location, row.trash) for row in connection.execute(query)]
