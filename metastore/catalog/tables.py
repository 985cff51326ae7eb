"""Tables: create, get, list and drop. Changes are in `alterations`."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import ColumnElement, Connection, Text, cast, delete, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.exc import IntegrityError

from hive_acid.errors import AlreadyExistsError, InvalidObjectError, NoSuchObjectError
from metastore.catalog import records
from metastore.catalog.directories import Directories, is_below, qualified
from metastore.catalog.models import DatabaseInfo, Table, TableSummary
from metastore.catalog.names import fold, pattern_regex
from metastore.catalog.removals import Removal, Removals
from metastore.catalog.schema import DATABASE, PARTITION, TBL, is_missing_parent
from metastore.catalog.transactions import in_transaction
from metastore.catalog.validation import lowered, new_table
from metastore.store.database import Database

_log = logging.getLogger(__name__)


class Tables:
    """The tables and views of all databases."""

    def __init__(self, db: Database, directories: Directories, removals: Removals) -> None:
        self._db = db
        self._directories = directories
        self._removals = removals

    def find(self, database: str, name: str) -> Table | None:
        """A table by its name, in one round trip; None if there is none."""
        row = self._db.call_one("catalog_table", fold(database), fold(name))
        return None if row is None else records.table_of(row)

    def get(self, database: str, name: str) -> Table:
        """A table by its name. Raises NoSuchObjectError."""
        found = self.find(database, name)
        if found is None:
            raise NoSuchObjectError(f"hive.{database}.{name} table not found")
        return found

    def get_many(self, database: str, names: Sequence[str]) -> list[Table]:
        """The tables of those names that exist, by name."""
        return self._select(TBL.c.database == fold(database), TBL.c.name.in_([fold(name) for name in names]))

    def matching(self, database: str, pattern: str | None = None) -> list[Table]:
        """The tables of a database whose name matches a pattern (None: all), by name."""
        return self._select(TBL.c.database == fold(database), *_matches(TBL.c.name, pattern))

    def names(self, database: str, pattern: str | None = None, table_type: str | None = None) -> list[str]:
        """The names of the tables of a database, by pattern and type (None: all); none if it does not exist."""
        query = select(TBL.c.name).where(TBL.c.database == fold(database), *_matches(TBL.c.name, pattern))
        if table_type:
            query = query.where(TBL.c.table_type == table_type.upper())
        with self._db.engine.connect() as connection:
            return list(connection.execute(query.order_by(TBL.c.name)).scalars())

    def summaries(self, databases: str | None, tables: str | None, types: Sequence[str]) -> list[TableSummary]:
        """What lists show of the tables that match the patterns and, unless empty, the types."""
        columns = TBL.c
        query = select(
            columns.database,
            columns.name,
            columns.table_type,
            columns.parameters["comment"].astext,
            columns.owner,
            columns.owner_type,
        ).where(*_matches(columns.database, databases), *_matches(columns.name, tables))
        if types:
            query = query.where(columns.table_type.in_([table_type.upper() for table_type in types]))
        with self._db.engine.connect() as connection:
            rows = connection.execute(query.order_by(columns.database, columns.name))
            return [TableSummary(*row) for row in rows]

    def create(self, table: Table) -> Table:
        """Create a table or view and its directory.

        Raises AlreadyExistsError, NoSuchObjectError for an unknown database, InvalidObjectError or MetaError for a
        definition that is not acceptable (`validation`), MetaError if the directory cannot be made.
        """
        table = new_table(
            replace(
                table,
                database=fold(table.database),
                name=fold(table.name),
                columns=lowered(table.columns),
                partition_keys=lowered(table.partition_keys),
            )
        )
        row = self._db.call_one("catalog_database", table.database)
        if row is None:
            raise NoSuchObjectError(f"database {table.database} does not exist")
        if self.find(table.database, table.name) is not None:
            raise AlreadyExistsError(f"table {table.full_name} exists already")
        if table.is_view:
            return self._insert(table)
        table = replace(table, location=self._location(table, records.database_of(row)))
        self._check_no_foreign_files(table)
        made = self._directories.make(table.location or "")
        try:
            return self._insert(table)
        except AlreadyExistsError:
            raise  # the directory is the other one's now
        except Exception:
            if made:
                self._directories.remove(table.location or "", only_if_empty=True)
            raise

    def drop(self, database: str, name: str, delete_data: bool) -> Table:
        """Drop a table with its partitions and, with `delete_data`, the files that it owns; returns it as it was.

        Raises NoSuchObjectError.
        """

        def change(connection: Connection) -> tuple[Table, list[Removal]]:
            table = locked(connection, database, name)
            return table, drop_in(connection, self._removals, table, delete_data)

        table, removals = in_transaction(self._db, change)
        self._removals.run(removals)
        return table

    def _select(self, *conditions: ColumnElement[bool]) -> list[Table]:
        with self._db.engine.connect() as connection:
            rows = connection.execute(select(TBL).where(*conditions).order_by(TBL.c.name))
            return [records.table_of(tuple(row)) for row in rows]

    def _location(self, table: Table, database: DatabaseInfo) -> str:
        if table.location:
            return qualified(table.location, self._directories.root)
        return self._directories.of_table(database, table.name)

    def _check_no_foreign_files(self, table: Table) -> None:
        """A new ACID table's write ids begin at 1 again: files of an earlier table would come to life as its own."""
        self._removals.wait_for(table.location or "")
        if not table.is_transactional:
            return
        with self._db.engine.connect() as connection:
            sharing = connection.execute(select(TBL.c.name).where(TBL.c.location == table.location)).first()
        if sharing or (self._directories.enabled and self._directories.has_files(table.location or "")):
            raise InvalidObjectError(
                f"{table.full_name} is transactional, but its location {table.location} is in use:"
                " choose an empty one that no other table has"
            )

    def _insert(self, table: Table) -> Table:
        statement = insert(TBL).values(records.table_row(table)).on_conflict_do_nothing().returning(TBL.c.id)
        try:
            with self._db.engine.begin() as connection:
                created = connection.execute(statement).first()
        except IntegrityError as error:
            if not is_missing_parent(error):
                raise
            raise NoSuchObjectError(f"database {table.database} does not exist") from error
        if created is None:
            raise AlreadyExistsError(f"table {table.full_name} exists already")
        return replace(table, id=created.id)


def locked(connection: Connection, database: str, name: str) -> Table:
    """A table whose row stays locked to the end of the caller's transaction. Raises NoSuchObjectError."""
    query = select(TBL).where(TBL.c.database == fold(database), TBL.c.name == fold(name)).with_for_update()
    row = connection.execute(query).first()
    if row is None:
        raise NoSuchObjectError(f"hive.{database}.{name} table not found")
    return records.table_of(tuple(row))


def drop_in(connection: Connection, removals: Removals, table: Table, delete_data: bool) -> list[Removal]:
    """Delete a table's rows, here and in the other slices; returns the removals to run after the commit."""
    planned: list[Removal] = []
    if delete_data and table.owns_files:
        query = select(PARTITION.c.location).where(PARTITION.c.table_id == table.id)
        elsewhere = [place for place in connection.execute(query).scalars() if not is_below(place, table.location)]
        places = [place for place in [table.location, *sorted(set(elsewhere))] if place]
        planned = removals.plan(connection, _without_others(connection, table, places))
    connection.execute(delete(TBL).where(TBL.c.id == table.id))  # takes the partitions along
    if delete_data or not table.is_transactional:
        # Files that stay keep their write ids: a table made over them must not give those out again.
        connection.execute(select(func.txn_forget_table(table.database, table.name)))
    connection.execute(select(func.compaction_forget_table(table.database, table.name)))
    return planned


def _without_others(connection: Connection, table: Table, places: list[str]) -> list[str]:
    """Those of a table's places at and below which nothing else of the catalogue lies, such as the warehouse's root."""
    place = func.unnest(cast(places, ARRAY(Text))).column_valued("place")
    inside = [
        select(rows.name).where(or_(rows.location == place, func.starts_with(rows.location, place + "/")), *others)
        for rows, others in ((TBL.c, [TBL.c.id != table.id]), (DATABASE.c, []))
    ]
    shared = set(connection.execute(select(place).where(or_(*(query.exists() for query in inside)))).scalars())
    if shared:
        _log.warning("%s is dropped, but files of others lie in %s: they stay", table.full_name, sorted(shared))
    return [place for place in places if place not in shared]


def _matches(column: ColumnElement[str], pattern: str | None) -> list[ColumnElement[bool]]:
    return [] if pattern is None or pattern == "*" else [column.regexp_match(pattern_regex(pattern))]
