"""Truncating tables and partitions: their rows go, they stay (wire.md §5.13, acid-format.md §4.4).

An ACID table gets an empty base, under the client's write id or in a transaction of the server's own, so that readers
under way keep their snapshots; the Cleaner removes the files when these have ended. A plain table's files are removed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from sqlalchemy import Connection, func, select, update

from hive_acid.errors import InvalidOperationError, MetaError, NoSuchObjectError
from hive_acid.ids import TxnId, WriteId
from metastore.catalog import changes, records
from metastore.catalog.accuracy import ACCURATE, NUM_FILES, TOTAL_SIZE
from metastore.catalog.lookup import TableLookup
from metastore.catalog.models import LAST_DDL_TIME, Table
from metastore.catalog.place.directories import Directories
from metastore.catalog.place.neighbours import Neighbours, Own
from metastore.catalog.records import locked
from metastore.catalog.removal.drops import texts
from metastore.catalog.removal.overwrites import Overwrites, RowDirectory
from metastore.catalog.removal.removals import Removals
from metastore.catalog.schema import PARTITION, TBL
from metastore.catalog.statistics import upkeep as statistics_upkeep
from metastore.catalog.transactions import in_transaction
from metastore.store.database import Database
from metastore.txn.models import TxnOwner
from metastore.txn.service import refuse

_COUNTS = (NUM_FILES, TOTAL_SIZE, "numRows", "rawDataSize", "numFilesErasureCoded")


class Truncations:
    """Removes all rows of tables and partitions."""

    def __init__(
        self,
        db: Database,
        tables: TableLookup,
        directories: Directories,
        neighbours: Neighbours,
        removals: Removals,
        overwrites: Overwrites,
    ) -> None:
        self._db = db
        self._tables = tables
        self._directories = directories
        self._neighbours = neighbours
        self._removals = removals
        self._overwrites = overwrites

    def truncate(
        self, database: str, name: str, partitions: Sequence[str] | None, owner: TxnOwner, write_id: int = 0
    ) -> None:
        """Remove the rows of a table, or of the named partitions.

        With `write_id`, that of the client's open transaction, they are gone when it commits. Raises NoSuchObjectError
        for an unknown table or partition, InvalidOperationError for a view or files that are not the table's own alone,
        MetaError if writers are under way that do not end, or if this server does not look at files.
        """
        table = self._tables.get(database, name)
        if table.is_view:
            raise InvalidOperationError(f"{table.full_name} is a view: it has no rows of its own to remove")
        if not table.owns_files:
            raise InvalidOperationError(
                f"{table.full_name} is an external table: its files are not the metastore's to remove, unless it says"
                " 'external.table.purge'='true'"
            )
        if not self._directories.enabled:
            raise MetaError(
                f"{table.full_name} cannot be truncated: this server does not look at files"
                " (metastore.filesystem.directories)"
            )
        places = self._places(table, partitions)
        if not places:
            return
        own = Own(
            table.id, tuple(place.partition for place in places if place.partition) if table.partition_keys else None
        )
        self._neighbours.learn(place.location for place in places)

        def check() -> None:
            with self._db.engine.begin() as connection:
                what = f"truncate {table.full_name}"
                self._neighbours.check_removable(connection, [place.location for place in places], own, what)

        self._removals.beside_others(check)
        submit = partial(_submit_replaced, table, places)
        if not table.is_transactional:
            for place in places:
                self._directories.empty(place.location)
        elif write_id > 0:  # a transaction that is no SOFT_DELETE hands nothing over: a compaction finds what is left
            self._overwrites.in_clients(table, places, WriteId(write_id), submit)
        else:
            self._overwrites.in_own(table, places, owner, submit)
        self._note(table, places)

    def _places(self, table: Table, names: Sequence[str] | None) -> list[RowDirectory]:
        if not table.partition_keys:
            if names:
                raise NoSuchObjectError(f"{table.full_name} is not partitioned: it has no partition {names[0]}")
            return [RowDirectory(None, table.location or "")] if names is None else []
        query = select(PARTITION.c.name, PARTITION.c.location).where(PARTITION.c.table_id == table.id)
        if names is not None:
            query = query.where(PARTITION.c.name.in_(list(names)))
        with self._db.engine.connect() as connection:
            found = [
                RowDirectory(row.name, row.location) for row in connection.execute(query.order_by(PARTITION.c.name))
            ]
        missing = set(names or ()) - {place.partition for place in found}
        if missing:
            raise NoSuchObjectError(f"partition {min(missing)} of {table.full_name} does not exist")
        return found

    def _note(self, table: Table, places: Sequence[RowDirectory]) -> None:
        """Statistics say so: all counts are 0. They are not called accurate, since a client may yet abort."""

        def change(connection: Connection) -> None:
            stands = locked(connection, table.database, table.name)
            parameters = _emptied(stands.parameters)
            new = replace(stands, parameters=parameters)
            connection.execute(update(TBL).where(TBL.c.id == stands.id).values(records.table_row(new)))
            names = [place.partition for place in places if place.partition is not None]
            statistics_upkeep.data_removed(connection, stands, names)
            own = PARTITION.c.table_id == stands.id
            if not names:
                changes.table_altered(connection, stands, new, truncated=True)
                return
            query = select(*records.PARTITION_COLUMNS).where(own, PARTITION.c.name == func.any(texts(names)))
            told = []
            for before in list(map(records.partition_reader(stands), connection.execute(query))):
                after = replace(before, parameters=_emptied(before.parameters))
                chosen = update(PARTITION).where(own, PARTITION.c.name == before.name)
                connection.execute(chosen.values(parameters=after.parameters))
                told.append((before, after))
            changes.partitions_altered(connection, stands, told, truncated=True)

        in_transaction(self._db, change)


def _submit_replaced(
    table: Table, places: Sequence[RowDirectory], connection: Connection, txn_id: TxnId, write_id: WriteId
) -> None:
    """The Cleaner is to look below the new bases when the transaction has committed."""
    names = texts([place.partition for place in places])
    nowhere = texts([None] * len(places))
    replaced = func.submit_replaced(table.database, table.name, names, nowhere, write_id, txn_id)
    refuse(connection.execute(select(replaced)).scalar_one(), txn_id)


def _emptied(parameters: dict[str, str]) -> dict[str, str]:
    counts = {key: "0" for key in _COUNTS if key in parameters}
    kept = {key: value for key, value in parameters.items() if key != ACCURATE}
    return {**kept, **counts, LAST_DDL_TIME: str(int(time.time()))}
