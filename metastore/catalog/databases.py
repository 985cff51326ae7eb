"""Databases: create, get, list, alter and drop."""

from __future__ import annotations

import time
from dataclasses import replace

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.dialects.postgresql import insert

from hive_acid.errors import AlreadyExistsError, InvalidOperationError, MetaError, NoSuchObjectError
from metastore.catalog import records
from metastore.catalog.directories import Directories, qualified
from metastore.catalog.models import DatabaseInfo, Table
from metastore.catalog.names import DEFAULT_DATABASE, MAX_DATABASE_NAME, check_object_name, fold, pattern_regex
from metastore.catalog.removals import Removal, Removals
from metastore.catalog.schema import DATABASE, TBL
from metastore.catalog.tables import drop_in
from metastore.catalog.transactions import in_transaction
from metastore.store.database import Database


class Databases:
    """The databases of the one catalog."""

    def __init__(self, db: Database, directories: Directories, removals: Removals) -> None:
        self._db = db
        self._directories = directories
        self._removals = removals

    def ensure_default(self) -> None:
        """Make the default database at the warehouse root; one that exists stays as it is."""
        self._directories.make(self._directories.root)
        default = DatabaseInfo(
            DEFAULT_DATABASE, self._directories.root, description="Default database", created_s=int(time.time())
        )
        with self._db.engine.begin() as connection:
            connection.execute(insert(DATABASE).values(records.database_row(default)).on_conflict_do_nothing())

    def find(self, name: str) -> DatabaseInfo | None:
        """A database by its name, in one round trip."""
        row = self._db.call_one("catalog_database", fold(name))
        return None if row is None else records.database_of(row)

    def get(self, name: str) -> DatabaseInfo:
        """A database by its name. Raises NoSuchObjectError."""
        found = self.find(name)
        if found is None:
            raise NoSuchObjectError(f"database {name} does not exist")
        return found

    def matching(self, pattern: str | None = None) -> list[DatabaseInfo]:
        """The databases whose name matches a pattern (None: all), by name."""
        query = select(DATABASE).order_by(DATABASE.c.name)
        if pattern is not None:
            query = query.where(DATABASE.c.name.regexp_match(pattern_regex(pattern)))
        with self._db.engine.connect() as connection:
            return [records.database_of(tuple(row)) for row in connection.execute(query)]

    def names(self, pattern: str | None = None) -> list[str]:
        """The names of the databases that match a pattern (None: all)."""
        return [database.name for database in self.matching(pattern)]

    def create(self, database: DatabaseInfo) -> DatabaseInfo:
        """Create a database and its directory.

        Raises AlreadyExistsError, InvalidObjectError for an impossible name, MetaError if the directory cannot be made.
        """
        name = fold(database.name)
        check_object_name("database", name, MAX_DATABASE_NAME)
        root = self._directories.root
        location = qualified(database.location, root) if database.location else self._directories.of_database(name)
        managed = qualified(database.managed_location, root) if database.managed_location else None
        created = replace(
            database,
            name=name,
            location=location,
            managed_location=managed,
            created_s=database.created_s or int(time.time()),
        )
        if self.find(name) is not None:
            raise AlreadyExistsError(f"database {name} exists already")
        self._removals.wait_for(location)
        made = self._directories.make(location)
        try:
            with self._db.engine.begin() as connection:
                statement = insert(DATABASE).values(records.database_row(created)).on_conflict_do_nothing()
                if connection.execute(statement.returning(DATABASE.c.name)).first() is None:
                    raise AlreadyExistsError(f"database {name} exists already")
        except AlreadyExistsError:
            raise  # the directory is the other one's now
        except Exception:
            if made:
                self._directories.remove(location, only_if_empty=True)
            raise
        return created

    def alter(self, name: str, database: DatabaseInfo) -> None:
        """Change everything but the name; a location left out stays, a new one counts for new tables only.

        Raises NoSuchObjectError, and MetaError for an attempt to rename.
        """
        old = self.get(name)
        if fold(database.name or name) != old.name:
            raise MetaError(f"database {old.name} cannot be renamed to {database.name}")
        root = self._directories.root
        new = replace(
            database,
            name=old.name,
            location=qualified(database.location, root) if database.location else old.location,
            owner=database.owner or old.owner,
            created_s=old.created_s,
        )
        with self._db.engine.begin() as connection:
            statement = update(DATABASE).where(DATABASE.c.name == old.name).values(records.database_row(new))
            if connection.execute(statement).rowcount == 0:
                raise NoSuchObjectError(f"database {old.name} does not exist")

    def drop(self, name: str, delete_data: bool, cascade: bool) -> None:
        """Drop a database, with `cascade` its tables too, and remove the files that it owns.

        The directory itself goes only when nothing else is left in it. Raises NoSuchObjectError,
        InvalidOperationError if tables are in the way, MetaError for the default database.
        """
        name = fold(name)
        if name == DEFAULT_DATABASE:
            raise MetaError("the default database cannot be dropped")

        def change(connection: Connection) -> list[Removal]:
            row = connection.execute(select(DATABASE).where(DATABASE.c.name == name).with_for_update()).first()
            if row is None:
                raise NoSuchObjectError(f"database {name} does not exist")
            removals = self._drop_tables(connection, name, delete_data, cascade)
            connection.execute(delete(DATABASE).where(DATABASE.c.name == name))
            if delete_data:
                removals += self._removals.plan(connection, [row.location], only_if_empty=True)
            return removals

        self._removals.run(in_transaction(self._db, change))

    def _drop_tables(self, connection: Connection, name: str, delete_data: bool, cascade: bool) -> list[Removal]:
        rows = connection.execute(select(TBL).where(TBL.c.database == name).order_by(TBL.c.name).with_for_update())
        tables: list[Table] = [records.table_of(tuple(row)) for row in rows]
        if tables and not cascade:
            raise InvalidOperationError(f"database {name} is not empty: it has {len(tables)} tables")
        return [removal for table in tables for removal in drop_in(connection, self._removals, table, delete_data)]

    def parameters(self, name: str) -> dict[str, str]:
        """The parameters of a database; none for one that does not exist."""
        found = self.find(name)
        return {} if found is None else found.parameters
