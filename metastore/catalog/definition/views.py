"""Materialised views: those that queries may be answered from, and what they were made of."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, select, update

from hive_acid.errors import InvalidOperationError, NoSuchObjectError, UnknownDBError
from metastore.catalog import records
from metastore.catalog.definition.databases import Databases
from metastore.catalog.models import Table
from metastore.catalog.names import DEFAULT_CATALOG, database_regex, table_text
from metastore.catalog.records import locked
from metastore.catalog.schema import TBL
from metastore.catalog.transactions import in_transaction
from metastore.store.database import Database

MATERIALIZED_VIEW = "MATERIALIZED_VIEW"
_CREATION_METADATA = "creationMetadata"
_REWRITABLE = (TBL.c.table_type == MATERIALIZED_VIEW, TBL.c.details.contains({"rewriteEnabled": True}))


class MaterializedViews:
    """The materialised views among the tables."""

    def __init__(self, db: Database, databases: Databases) -> None:
        self._db = db
        self._databases = databases

    def for_rewriting(self) -> list[Table]:
        """The views of the default catalog that queries may be answered from, by database and name."""
        of_catalog = TBL.c.database.regexp_match(database_regex(DEFAULT_CATALOG, None))
        query = select(TBL).where(of_catalog, *_REWRITABLE).order_by(TBL.c.database, TBL.c.name)
        with self._db.engine.connect() as connection:
            return [records.table_of(tuple(row)) for row in connection.execute(query)]

    def names_for_rewriting(self, database: str) -> list[str]:
        """The names of the views of a database that queries may be answered from."""
        query = select(TBL.c.name).where(TBL.c.database == database, *_REWRITABLE).order_by(TBL.c.name)
        with self._db.engine.connect() as connection:
            return list(connection.execute(query).scalars())

    def update_creation_metadata(self, database: str, name: str, metadata: dict[str, Any]) -> None:
        """Note what a view is made of now, and that it was made just now.

        Raises UnknownDBError, and InvalidOperationError for what is no materialised view.
        """

        def change(connection: Connection) -> None:
            view = locked(connection, database, name)
            if view.table_type != MATERIALIZED_VIEW:
                raise InvalidOperationError(f"{table_text(database, name)} is no materialised view")
            made = just_materialized(replace(view, details=view.details | {_CREATION_METADATA: metadata}))
            connection.execute(update(TBL).where(TBL.c.id == view.id).values(details=made.details))

        if self._databases.find(database) is None:
            raise UnknownDBError(f"database {database} does not exist")
        try:
            in_transaction(self._db, change)
        except NoSuchObjectError as error:  # not declared by the method
            raise InvalidOperationError(str(error)) from None


def just_materialized(table: Table) -> Table:
    """A materialised view with the time of now (epoch milliseconds) in what it was made of; any other as it is."""
    made_of = table.details.get(_CREATION_METADATA)
    if made_of is None or table.table_type != MATERIALIZED_VIEW:
        return table
    now = {"materializationTime": int(time.time() * 1000)}
    return replace(table, details=table.details | {_CREATION_METADATA: made_of | now})
