"""Tables by their names."""

from __future__ import annotations

from hive_acid.errors import NoSuchObjectError
from metastore.catalog import records
from metastore.catalog.models import Table
from metastore.catalog.names import fold, table_text
from metastore.store.database import Database


class TableLookup:
    """The tables and views of all databases, as they are now."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def find(self, database: str, name: str) -> Table | None:
        """A table by its name, in one round trip; None if there is none."""
        row = self._db.call_one("catalog_table", fold(database), fold(name))
        return None if row is None else records.table_of(row)

    def get(self, database: str, name: str) -> Table:
        """A table by its name. Raises NoSuchObjectError."""
        found = self.find(database, name)
        if found is None:
            raise NoSuchObjectError(f"{table_text(database, name)} table not found")
        return found
