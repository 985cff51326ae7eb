"""Tables: create, get and drop. Changes are in `alterations`, lists in `listings`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError

from hive_acid.errors import AlreadyExistsError, InvalidObjectError
from metastore.catalog import changes, records
from metastore.catalog.config import CatalogConfig
from metastore.catalog.lookup import TableLookup
from metastore.catalog.models import USER, Table
from metastore.catalog.place.directories import Directories
from metastore.catalog.place.neighbours import READ, Neighbours, Own
from metastore.catalog.place.places import is_root
from metastore.catalog.records import locked
from metastore.catalog.removal.drops import DropRequest, beside, drop_in, free_place
from metastore.catalog.removal.removals import Removal, Removals
from metastore.catalog.rules.conversion import is_written_by_trino
from metastore.catalog.rules.translation import is_translated, translated, with_default_kind
from metastore.catalog.rules.validation import new_table, with_lowered_names
from metastore.catalog.schema import TBL, is_missing_parent
from metastore.catalog.transactions import in_transaction
from metastore.store.database import Database

Dependent = Callable[[Connection, Table], None]
"""Stores what comes with a new table: its constraints, the privileges of its owner."""


class Tables(TableLookup):
    """The tables and views of all databases."""

    def __init__(
        self,
        db: Database,
        directories: Directories,
        neighbours: Neighbours,
        removals: Removals,
        config: CatalogConfig,
    ) -> None:
        super().__init__(db)
        self._directories = directories
        self._neighbours = neighbours
        self._removals = removals
        self._config = config

    def create(self, table: Table, capabilities: Collection[str] | None = None, *dependents: Dependent) -> Table:
        """Create a table or view and its directory, for a client with these `capabilities`.

        `dependents` store what comes with the table in the same database transaction; what they raise undoes it all.
        Raises AlreadyExistsError, InvalidObjectError for an unknown database, InvalidObjectError or MetaError for a
        definition that is not acceptable (`validation`, `translation`) or another one's data in its place, MetaError
        for a location that cannot be a place, or if the directory cannot be made.
        """
        given, table = table, self.completed(table, capabilities)
        self._check_absent(table)
        if table.is_view:
            return self._insert(table, dependents)
        return self._removals.beside_others(lambda: self._made(given, table, dependents))

    def _made(self, given: Table, table: Table, dependents: Sequence[Dependent]) -> Table:
        """Store a table in a place that is free, with its directory; if it cannot be stored that goes again."""
        self._neighbours.learn([table.location])
        try:
            table = self._placed(given, table)
        except InvalidObjectError:
            # Another one may have made it meanwhile, and who says IF NOT EXISTS wants to hear that.
            self._check_absent(table)
            raise
        made = self._directories.make(table.location or "", table.owner if table.owner_type == USER else None)
        try:
            self._neighbours.learn([table.location])  # now that it is there, whoever made it, and however spelt
            return self._insert(table, dependents)
        except Exception:
            self._removals.give_back([table.location or ""] if made else [])
            raise

    def _check_absent(self, table: Table) -> None:
        if self.find(table.database, table.name) is not None:
            raise AlreadyExistsError(f"table {table.full_name} exists already")

    def completed(self, table: Table, capabilities: Collection[str] | None = None) -> Table:
        """A table as `create` stores it, but nothing is stored.

        Raises InvalidObjectError for an unknown database, InvalidObjectError or MetaError for a definition that is not
        acceptable.
        """
        table = new_table(with_default_kind(with_lowered_names(table), self._config))
        if self._config.translate_types:
            table = translated(table, frozenset(capabilities or ()))
        row = self._db.call_one("catalog_database", table.database)
        if row is None:
            raise InvalidObjectError(f"database {table.database} does not exist")
        if table.is_view:
            return table
        if table.location:
            location = self._directories.chosen(table.location)
            if is_root(location):
                raise InvalidObjectError(f"{table.name} location must not be root path")
            return replace(table, location=location)
        database = records.database_of(row)
        if is_translated(table):
            return replace(table, location=self._directories.of_translated_table(database, table.name))
        return replace(table, location=self._directories.of_table(database, table.name, table.is_external))

    def drop(self, database: str, name: str, request: DropRequest) -> Table:
        """Drop a table with its partitions and, if it is asked for, the files that it owns; returns it as it was.

        Raises NoSuchObjectError, InvalidOperationError if the client's transaction is not open.
        """

        def change(connection: Connection) -> tuple[Table, list[Removal]]:
            table = locked(connection, database, name)
            return table, drop_in(connection, self._neighbours, self._removals, table, request)

        table, removals = self._removals.beside_others(lambda: in_transaction(self._db, change))
        self._removals.run(removals)
        return table

    def _placed(self, given: Table, table: Table) -> Table:
        """`table` in a place that is free; another default one if readers of a dropped table, or files, are in that.

        Raises InvalidObjectError if the place cannot be taken, or a transactional table would lie on files.
        """
        place, may_move = table.location or "", not given.location
        with self._db.engine.begin() as connection:
            in_the_way = self._neighbours.check_free(connection, place, table, may_move)
            if in_the_way == READ:
                place = free_place(connection, self._neighbours, place)
        if in_the_way is not None:
            self._removals.wait_for(place)
        if table.is_transactional and self._directories.enabled:
            place = self._unburdened(table, place, may_move)
        return replace(table, location=place)

    def _unburdened(self, table: Table, place: str, may_move: bool) -> str:
        """`place`, or another one if it may be one and files of nobody's are in it.

        A new ACID table's write ids begin at 1 again: files of an earlier table would come to life as its own. Those of
        a table whose write ids were begun before, as for one that another metastore hands back, go on above; Trino's
        CREATE TABLE AS SELECT writes files without write ids, and first.
        """
        found = self._directories.files_below(place)
        if not found or is_written_by_trino(table, found):
            return place
        with self._db.engine.begin() as connection:
            if connection.execute(select(func.get_max_write_id(table.database, table.name))).scalar_one() > 0:
                return place
            if may_move:
                return beside(connection, place)
        raise InvalidObjectError(
            f"{table.full_name} is transactional, but its location {place} is in use:"
            " choose an empty one that no other table has"
        )

    def _insert(self, table: Table, dependents: Sequence[Dependent]) -> Table:
        statement = insert(TBL).values(records.table_row(table)).on_conflict_do_nothing().returning(TBL.c.id)

        def change(connection: Connection) -> Table:
            created = connection.execute(statement).first()
            if created is None:
                raise AlreadyExistsError(f"table {table.full_name} exists already")
            stored = replace(table, id=created.id)
            if table.location:
                self._neighbours.claim(connection, [table.location], stored, Own(stored.id))
            changes.table_created(connection, stored)
            for dependent in dependents:
                dependent(connection, stored)
            return stored

        try:
            return in_transaction(self._db, change)
        except IntegrityError as error:
            if not is_missing_parent(error):
                raise
            raise InvalidObjectError(f"database {table.database} does not exist") from error
