"""Tables: create, get and drop. Changes are in `alterations`, lists in `listings`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError

from hive_acid.errors import AlreadyExistsError, InvalidObjectError
from hive_acid.format.properties import SUCCEEDS, SUCCESSOR, is_successor
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

_DIGITS = 19
"""Fewer has the number of a transaction."""

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
        if is_successor(table.name):
            self._check_successor(given, table)
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
        called = table.parameters.get(SUCCEEDS, table.name) if is_successor(table.name) else table.name
        return replace(table, location=self._directories.of_table(database, called, table.is_external))

    def _check_successor(self, given: Table, table: Table) -> None:
        """Raises InvalidObjectError for what is named as one that is to take a table's place, and is none.

        Its name tells the transaction that is to give it the other one's, without which it would be dropped.
        """
        number = table.name.removeprefix(SUCCESSOR)
        is_number = number.isascii() and number.isdecimal() and len(number) < _DIGITS
        is_open = is_number and (self._db.call_one("txn_states", [int(number)]) or ("", ""))[1] == "o"
        old = self.find(table.database, table.parameters.get(SUCCEEDS, ""))
        if not is_open or old is None or not (table.is_transactional and old.is_transactional):
            raise InvalidObjectError(
                f"table {table.full_name} cannot be created: names that begin with {SUCCESSOR} are those of ACID tables"
                f" that take another one's place ({SUCCEEDS}) with the commit of an open transaction"
            )
        row = self._db.call_one("catalog_database", table.database)
        if not given.location and row and not self._directories.is_default_place(old, records.database_of(row)):
            raise InvalidObjectError(
                f"{old.full_name} lies at {old.location}, which was chosen for it: a table that is to take its place"
                " needs a location of its own, so name one"
            )

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
            if may_move and is_successor(table.name):
                place = beside(connection, place)
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
