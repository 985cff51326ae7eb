"""Tables by their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metastore.catalog import records
from metastore.catalog.models import Table
from metastore.catalog.names import fold
from metastore.store.database import Database
from metastore.store.hot.batcher import HotCall
from metastore.store.hot.connection import Rows

TableRow = tuple[Any, ...]
"""What `records.table_of_texts` reads."""


class _TableCall(HotCall[tuple[str, str], TableRow | None]):
    """The rows of tables by database and name."""

    function = "catalog_tables"
    connections = 2
    max_batch = 50
    """Definitions may be long."""

    def arguments(self, questions: Sequence[tuple[str, str]]) -> list[object]:
        return [[database for database, _ in questions], [name for _, name in questions]]

    def answers(self, questions: Sequence[tuple[str, str]], rows: Rows) -> Sequence[TableRow | None]:
        found = {row[0]: row[1:] for row in rows}
        return [found.get(number) for number in range(1, len(questions) + 1)]


_TABLE = _TableCall()


class TableLookup:
    """The tables and views of all databases, as they are now."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def find(self, database: str, name: str) -> Table | None:
        """A table by its name, in one round trip; None if there is none."""
        row = self._db.call_one(_TABLE.function, [fold(database)], [fold(name)])
        return None if row is None else records.table_of_texts(row[1:])

    def get(self, database: str, name: str) -> Table:
        """A table by its name. Raises NoSuchObjectError."""
        found = self.find(database, name)
        if found is None:
            raise records.missing_table(database, name)
        return found

    async def row_soon(self, database: str, name: str) -> TableRow:
        """A table's row by its name, on the event loop. Raises NoSuchObjectError."""
        question = fold(database), fold(name)
        row = None if "\0" in "".join(question) else await self._db.ask_soon(_TABLE, question)
        if row is None:
            raise records.missing_table(database, name)
        return row
