"""By what clients know this metastore."""

from __future__ import annotations

from sqlalchemy import select

from metastore.catalog.registry.schema import METASTORE_IDENTITY
from metastore.store.database import Database


def metastore_uuid(db: Database) -> str:
    """The same for every server on a database, as long as that lives; made with its tables."""
    with db.engine.connect() as connection:
        return str(connection.execute(select(METASTORE_IDENTITY.c.uuid)).scalar_one())
