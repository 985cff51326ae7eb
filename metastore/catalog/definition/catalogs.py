"""Catalogs: namespaces of databases. The first is ``hive``; each comes with a database ``default`` at its location."""

from __future__ import annotations

import time
from dataclasses import replace

from sqlalchemy import Connection, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from hive_acid.errors import (
    AlreadyExistsError,
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
)
from metastore.catalog import changes, records
from metastore.catalog.definition.databases import Databases
from metastore.catalog.models import ROLE, CatalogInfo, DatabaseInfo
from metastore.catalog.names import (
    DEFAULT_CATALOG,
    DEFAULT_DATABASE,
    MAX_CATALOG_NAME,
    check_object_name,
    database_key,
    database_regex,
    fold,
    split_key,
)
from metastore.catalog.place.directories import Directories
from metastore.catalog.removal.drops import DropRequest
from metastore.catalog.removal.removals import Removal, Removals
from metastore.catalog.schema import CATALOG, DATABASE
from metastore.catalog.transactions import in_transaction
from metastore.store.database import Database

_NAMED = 5
"""How many of the databases in the way of a drop its error names."""


class Catalogs:
    """All catalogs."""

    def __init__(self, db: Database, databases: Databases, directories: Directories, removals: Removals) -> None:
        self._db = db
        self._databases = databases
        self._directories = directories
        self._removals = removals

    def ensure_default(self) -> None:
        """Make the catalog ``hive`` and its database ``default`` at the warehouse root; those that exist stay."""
        root = self._directories.root
        self._directories.make(root)
        now_s = int(time.time())
        catalog = CatalogInfo(DEFAULT_CATALOG, "The catalog of clients that know only one", root, now_s)
        database = DatabaseInfo(
            DEFAULT_DATABASE,
            root,
            description="Default Hive database",  # with owner and type as every Hive metastore has it
            owner="public",
            owner_type=ROLE,
            created_s=now_s,
        )
        with self._db.engine.begin() as connection:
            connection.execute(insert(CATALOG).values(records.catalog_row(catalog)).on_conflict_do_nothing())
            connection.execute(insert(DATABASE).values(records.database_row(database)).on_conflict_do_nothing())

    def get(self, name: str) -> CatalogInfo:
        """A catalog by its name. Raises NoSuchObjectError."""
        with self._db.engine.connect() as connection:
            row = connection.execute(select(CATALOG).where(CATALOG.c.name == fold(name))).first()
        if row is None:
            raise NoSuchObjectError(f"catalog {name} does not exist")
        return records.catalog_of(tuple(row))

    def names(self) -> list[str]:
        """The names of all catalogs."""
        with self._db.engine.connect() as connection:
            return list(connection.execute(select(CATALOG.c.name).order_by(CATALOG.c.name)).scalars())

    def create(self, catalog: CatalogInfo) -> None:
        """Create a catalog with its directory and its database ``default``.

        Raises AlreadyExistsError, InvalidObjectError for an impossible name or a missing location, MetaError if the
        directory cannot be made.
        """
        name = fold(catalog.name)
        check_object_name("catalog", name, MAX_CATALOG_NAME)
        if not catalog.location:
            raise InvalidObjectError(f"catalog {name} needs a location: its databases go there")
        created = replace(catalog, name=name, created_s=int(time.time()))
        database = DatabaseInfo(
            database_key(name, DEFAULT_DATABASE),
            self._directories.chosen(catalog.location),
            description=f"Default database of catalog {name}",
            created_s=created.created_s,
        )
        if name in self.names():
            raise AlreadyExistsError(f"catalog {name} exists already")

        def store() -> None:
            with self._databases.made_first(database), self._db.engine.begin() as connection:
                statement = insert(CATALOG).values(records.catalog_row(created)).on_conflict_do_nothing()
                if connection.execute(statement.returning(CATALOG.c.name)).first() is None:
                    raise AlreadyExistsError(f"catalog {name} exists already")
                changes.catalog_created(connection, created)
                self._databases.insert_in(connection, database)

        self._removals.beside_others(store)

    def alter(self, name: str, catalog: CatalogInfo) -> None:
        """Change location, description and parameters; what is left out stays, and so do existing databases.

        Raises NoSuchObjectError, and InvalidOperationError for an attempt to rename.
        """
        if catalog.location:
            place = self._directories.stored(catalog.location)  # its databases go there
            known = self.get(name).location
            self._directories.check_allowed(place, self._directories.stored(known) if known else None)
        with self._db.engine.begin() as connection:
            old = _locked(connection, fold(name))
            if fold(catalog.name or name) != old.name:
                raise InvalidOperationError(f"catalog {old.name} cannot be renamed to {catalog.name}")
            new = replace(
                old,
                description=catalog.description if catalog.description is not None else old.description,
                location=catalog.location or old.location,
                parameters=catalog.parameters or old.parameters,
            )
            connection.execute(update(CATALOG).where(CATALOG.c.name == old.name).values(records.catalog_row(new)))
            changes.catalog_altered(connection, old, new)

    def drop(self, name: str) -> None:
        """Drop a catalog that has nothing but an empty database ``default``, and its directory if no file is in it.

        Raises NoSuchObjectError, InvalidOperationError if something is in the way, MetaError for the catalog ``hive``.
        """
        name = fold(name)
        if name == DEFAULT_CATALOG:
            raise MetaError(f"Can not drop {DEFAULT_CATALOG} catalog")

        def change(connection: Connection) -> list[Removal]:
            catalog = _locked(connection, name)
            default = database_key(name, DEFAULT_DATABASE)
            self._check_empty(connection, name, default)
            location = self._directories.stored(catalog.location)
            removals = self._removals.plan(connection, [location], f"catalog {name}", only_if_empty=True)
            if connection.execute(select(DATABASE.c.name).where(DATABASE.c.name == default)).first() is not None:
                removals = (
                    self._databases.drop_in(connection, default, DropRequest(delete_data=True), only_if_empty=True)
                    + removals
                )
            connection.execute(delete(CATALOG).where(CATALOG.c.name == name))
            changes.catalog_dropped(connection, catalog)
            return removals

        self._removals.run(in_transaction(self._db, change))

    def _check_empty(self, connection: Connection, catalog: str, default: str) -> None:
        others = DATABASE.c.name.regexp_match(database_regex(catalog, None)) & (DATABASE.c.name != default)
        query = select(DATABASE.c.name, func.count().over()).where(others).order_by(DATABASE.c.name).limit(_NAMED)
        found = connection.execute(query).all()
        if found:
            named = ", ".join(split_key(key)[1] for key, _ in found)
            raise InvalidOperationError(f"catalog {catalog} is not empty: it has {found[0][1]} databases, as {named}")


def _locked(connection: Connection, name: str) -> CatalogInfo:
    """A catalog whose row stays locked to the end of the caller's transaction. Raises NoSuchObjectError."""
    row = connection.execute(select(CATALOG).where(CATALOG.c.name == name).with_for_update()).first()
    if row is None:
        raise NoSuchObjectError(f"catalog {name} does not exist")
    return records.catalog_of(tuple(row))
