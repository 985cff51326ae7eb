"""Databases: create, get, list, alter and drop. They are known by their keys (`names.database_key`)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from sqlalchemy import ColumnElement, Connection, and_, delete, func, not_, select, update
from sqlalchemy.dialects.postgresql import insert

from hive_acid.errors import (
    AlreadyExistsError,
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
)
from hive_acid.format.properties import SESSION_DATABASE, SESSION_TRANSACTION, is_successor
from metastore.catalog import changes, records
from metastore.catalog.models import USER, DatabaseInfo, Table
from metastore.catalog.names import (
    DEFAULT_CATALOG,
    DEFAULT_DATABASE,
    MAX_DATABASE_NAME,
    check_object_name,
    database_regex,
    fold,
    split_key,
)
from metastore.catalog.place.directories import Directories
from metastore.catalog.place.neighbours import Neighbours
from metastore.catalog.registry.functions import has_functions
from metastore.catalog.removal.drops import DropRequest, drop_in, texts
from metastore.catalog.removal.removals import Removal, Removals
from metastore.catalog.schema import CATALOG, DATABASE, PARTITION, TBL
from metastore.catalog.transactions import in_transaction, parameters_altered
from metastore.filework import files
from metastore.store.database import Database
from metastore.store.rows import Rows


class Databases:
    """The databases of all catalogs."""

    def __init__(self, db: Database, directories: Directories, neighbours: Neighbours, removals: Removals) -> None:
        self._db = db
        self._directories = directories
        self._neighbours = neighbours
        self._removals = removals

    def find(self, name: str) -> DatabaseInfo | None:
        """A database by its key, in one round trip."""
        row = self._db.call_one("catalog_database", fold(name))
        return None if row is None else records.database_of(row)

    def get(self, name: str) -> DatabaseInfo:
        """A database by its key. Raises NoSuchObjectError."""
        found = self.find(name)
        if found is None:
            raise _missing(name)
        return found

    def matching(self, catalog: str = DEFAULT_CATALOG, pattern: str | None = None) -> Rows[DatabaseInfo]:
        """The databases of a catalog whose name matches a pattern (None: all), by name; none of an unknown one.

        Those of sessions with temporary tables are nobody else's, and in no list.
        """
        query = select(DATABASE).where(_listed(catalog, pattern))
        return Rows(self._db, query.order_by(DATABASE.c.name), lambda row: records.database_of(tuple(row)))

    def names(self, catalog: str = DEFAULT_CATALOG, pattern: str | None = None) -> Rows[str]:
        """The names, without their catalog, of the databases that `matching` finds."""
        query = select(DATABASE.c.name).where(_listed(catalog, pattern))
        return Rows(self._db, query.order_by(DATABASE.c.name), lambda row: split_key(row[0])[1])

    def create(self, database: DatabaseInfo) -> DatabaseInfo:
        """Create a database and its directories.

        Raises AlreadyExistsError, InvalidObjectError for an impossible name, an unknown catalog or a place inside of a
        table's, MetaError for a location that cannot be a place or a directory that cannot be made.
        """
        key = fold(database.name)
        check_object_name("database", split_key(key)[1], MAX_DATABASE_NAME)
        if key.startswith(SESSION_DATABASE) and SESSION_TRANSACTION not in (database.parameters or {}):
            raise InvalidObjectError(
                f"database {key} cannot be created: names that begin with {SESSION_DATABASE} are those of sessions "
                "with temporary tables"
            )
        chosen = self._directories.chosen
        created = replace(
            database,
            name=key,
            location=chosen(database.location) if database.location else self._default_location(key),
            managed_location=chosen(database.managed_location) if database.managed_location else None,
            owner_type=database.owner_type or USER,
            created_s=database.created_s or int(time.time()),
        )

        def store() -> None:
            with self.made_first(created), self._db.engine.begin() as connection:
                self.insert_in(connection, created)

        self._removals.beside_others(store)
        return created

    @contextmanager
    def made_first(self, database: DatabaseInfo) -> Iterator[None]:
        """The directories of a new database, for a body that stores it; gone again if that fails.

        Raises AlreadyExistsError before anything is made.
        """
        if self.find(database.name) is not None:
            raise _exists(database.name)
        made: list[str] = []
        self._neighbours.learn([database.location, database.managed_location])
        try:
            for location in filter(None, (database.location, database.managed_location)):
                self._removals.wait_for(location)
                if self._directories.make(location, database.owner if database.owner_type in (None, USER) else None):
                    made.append(location)
                self._neighbours.learn([location])  # as of new tables
            yield
        except Exception:
            self._removals.give_back(made)
            raise

    def insert_in(self, connection: Connection, database: DatabaseInfo) -> None:
        """Store a new database in the caller's transaction.

        Raises AlreadyExistsError, and InvalidObjectError for an unknown catalog.
        """
        catalog, name = split_key(database.name)
        # Locked, so that the catalog is not dropped meanwhile: nothing else ties the two together.
        known = select(CATALOG.c.name).where(CATALOG.c.name == catalog).with_for_update(read=True, key_share=True)
        if connection.execute(known).first() is None:
            raise InvalidObjectError(f"database {name} cannot be created: catalog {catalog} does not exist")
        statement = insert(DATABASE).values(records.database_row(database)).on_conflict_do_nothing()
        if connection.execute(statement.returning(DATABASE.c.name)).first() is None:
            raise _exists(database.name)
        self._neighbours.claim_home(connection, _places(database))
        changes.database_created(connection, database)

    def alter(self, name: str, database: DatabaseInfo) -> None:
        """Replace owner and parameters, and whatever else is given; a new location counts for new tables only.

        The name stays: one given in `database` is passed over, as every Hive metastore does. Raises NoSuchObjectError.
        """
        location = self._directories.stored(database.location) if database.location else None
        managed_location = self._directories.stored(database.managed_location) if database.managed_location else None
        self._neighbours.learn([location, managed_location])
        known = self.get(name)
        for place in (location, managed_location):
            self._directories.check_allowed(place, *_places(known))

        def change(connection: Connection) -> None:
            old = _locked(connection, fold(name))
            new = replace(
                old,
                location=location or old.location,
                managed_location=managed_location or old.managed_location,
                description=database.description or old.description,
                owner=database.owner,
                owner_type=database.owner_type or old.owner_type,
                parameters=database.parameters,
                details={**old.details, **database.details},
            )
            connection.execute(update(DATABASE).where(DATABASE.c.name == old.name).values(records.database_row(new)))
            self._neighbours.claim_home(connection, [place for place in _places(new) if place not in _places(old)])
            parameters_altered(connection, old.parameters, new.parameters, old.name)
            changes.database_altered(connection, old, new)

        self._removals.beside_others(lambda: in_transaction(self._db, change))

    def drop(self, name: str, request: DropRequest, cascade: bool = False, delete_managed: bool = True) -> None:
        """Drop a database, with `cascade` its tables, views and functions too, and remove the files that it owns.

        Of its directories, `delete_managed` spares the managed one. Below the warehouse they go with all that lies in
        them, as in Hive, unless that is somebody else's, such as an external table's; then, and elsewhere, they go only
        when no file is left in them. While dropped tables are still read they wait for the Cleaner.

        Raises NoSuchObjectError, InvalidOperationError if something is in the way, MetaError for the default database.
        """
        key = fold(name)
        if key == DEFAULT_DATABASE:
            raise MetaError(f"Can not drop default database in catalog {DEFAULT_CATALOG}")

        def change(connection: Connection) -> list[Removal]:
            return self.drop_in(connection, key, request, cascade, delete_managed)

        self._removals.run(self._removals.beside_others(lambda: in_transaction(self._db, change)))

    def drop_in(
        self,
        connection: Connection,
        key: str,
        request: DropRequest,
        cascade: bool = False,
        delete_managed: bool = True,
        only_if_empty: bool = False,
    ) -> list[Removal]:
        """`drop` in the caller's transaction, of any database; returns the removals to run after the commit.

        With `only_if_empty` no directory goes in which a file is left.
        """
        database = _locked(connection, key)
        foreign = self._foreign_places(connection, key) if request.delete_data else []
        removals = self._drop_tables(connection, key, request, cascade)
        connection.execute(delete(DATABASE).where(DATABASE.c.name == key))
        changes.database_dropped(connection, database)
        if request.delete_data:
            chosen = [database.location, database.managed_location if delete_managed else None]
            places = list(dict.fromkeys(place for place in chosen if place))
            places = _without(places, list(self._neighbours.with_the_warehouse(connection, places)))
            whole, read = self._neighbours.homes(connection, places, foreign)
            if only_if_empty:
                whole = []
            rest = [place for place in places if place not in whole]
            removals += self._removals.plan(connection, _without(whole, read), key)
            removals += self._removals.plan(connection, _without(rest, read), key, only_if_empty=True)
            if self._removals.config.undrop_window_ms:  # what is on its way to the trash must not go
                whole, rest = [], places
            if read and self._directories.enabled:
                kept = func.compaction_keep_homes(key, texts(_both(whole, read)), texts(_both(rest, read)))
                connection.execute(select(kept))
        return removals

    def drop_abandoned(self) -> int:
        """Drop the temporary tables of sessions that have died, with their databases; returns how many of these."""
        with self._db.engine.begin() as connection:
            query = select(func.abandoned_sessions(SESSION_DATABASE, SESSION_TRANSACTION))
            found = list(connection.execute(query).scalars())
        for key in found:
            with suppress(NoSuchObjectError):  # the session has ended only now
                self.drop(key, DropRequest(True, purge=True), cascade=True)
        return len(found)

    def _foreign_places(self, connection: Connection, key: str) -> list[str]:
        """The places of a database's tables that do not own their files, and of the partitions of these."""
        rows = connection.execute(select(TBL).where(TBL.c.database == key, TBL.c.location.is_not(None)))
        tables = [table for table in (records.table_of(tuple(row)) for row in rows) if not table.owns_files]
        partitioned = [table.id for table in tables if table.partition_keys]
        query = select(PARTITION.c.location).where(PARTITION.c.table_id.in_(partitioned))
        found = list(connection.execute(query).scalars()) if partitioned else []
        return [place for place in (*(table.location for table in tables), *found) if place]

    def _drop_tables(self, connection: Connection, key: str, request: DropRequest, cascade: bool) -> list[Removal]:
        rows = connection.execute(select(TBL).where(TBL.c.database == key).order_by(TBL.c.name).with_for_update())
        tables: list[Table] = [records.table_of(tuple(row)) for row in rows]
        if not cascade and not all(is_successor(table.name) for table in tables):
            raise InvalidOperationError(f"Database {split_key(key)[1]} is not empty. One or more tables exist.")
        if not cascade and has_functions(connection, key):  # they go with the database's row
            raise InvalidOperationError(f"Database {split_key(key)[1]} is not empty. One or more functions exist.")
        removals: list[Removal] = []
        for table in tables:
            # In the client's transaction ACID tables are dropped softly: their files are the Cleaner's when it commits.
            is_soft = request.txn_id > 0 and table.is_transactional
            own = replace(request, delete_data=False) if is_soft else request
            removals += drop_in(connection, self._neighbours, self._removals, table, own)
        return removals

    def _default_location(self, key: str) -> str:
        """Where a database goes that has no location: below the warehouse root, or that of its catalog.

        Raises InvalidObjectError for an unknown catalog.
        """
        catalog, name = split_key(key)
        if catalog == DEFAULT_CATALOG:
            return self._directories.of_database(name)
        with self._db.engine.connect() as connection:
            found = connection.execute(select(CATALOG.c.location).where(CATALOG.c.name == catalog)).scalar()
        if found is None:
            raise InvalidObjectError(f"database {name} cannot be created: catalog {catalog} does not exist")
        return files.join(self._directories.stored(found), f"{name}.db")

    def parameters(self, name: str) -> dict[str, str]:
        """The parameters of a database; none for one that does not exist."""
        found = self.find(name)
        return {} if found is None else found.parameters


def _listed(catalog: str, pattern: str | None) -> ColumnElement[bool]:
    name = DATABASE.c.name
    return and_(
        name.regexp_match(database_regex(catalog, pattern)), not_(name.startswith(SESSION_DATABASE, autoescape=True))
    )


def _places(database: DatabaseInfo) -> list[str]:
    return [place for place in (database.location, database.managed_location) if place]


def _without(places: list[str], others: list[str]) -> list[str]:
    return [place for place in places if place not in others]


def _both(places: list[str], others: list[str]) -> list[str]:
    return [place for place in places if place in others]


def _locked(connection: Connection, key: str) -> DatabaseInfo:
    """A database whose row stays locked to the end of the caller's transaction. Raises NoSuchObjectError."""
    row = connection.execute(select(DATABASE).where(DATABASE.c.name == key).with_for_update()).first()
    if row is None:
        raise _missing(key)
    return records.database_of(tuple(row))


def _missing(key: str) -> NoSuchObjectError:
    return NoSuchObjectError(f"database {'.'.join(split_key(key))} does not exist")


def _exists(key: str) -> AlreadyExistsError:
    return AlreadyExistsError(f"database {'.'.join(split_key(key))} exists already")
