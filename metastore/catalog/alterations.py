"""Changes of tables, with renames that move the directory and compare-and-set."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Connection, func, null, select, update
from sqlalchemy.exc import IntegrityError

from hive_acid.errors import InvalidOperationError, MetaError, NoSuchObjectError
from metastore.catalog import records
from metastore.catalog.directories import Directories, qualified
from metastore.catalog.models import Expectation, Table
from metastore.catalog.names import fold
from metastore.catalog.removals import Removals
from metastore.catalog.schema import PARTITION, TBL
from metastore.catalog.tables import Tables, locked
from metastore.catalog.transactions import in_transaction
from metastore.catalog.validation import altered_table, becomes_transactional, lowered
from metastore.store.database import Database


class Alterations:
    """Changes of a table's definition."""

    def __init__(self, db: Database, tables: Tables, directories: Directories, removals: Removals) -> None:
        self._db = db
        self._tables = tables
        self._directories = directories
        self._removals = removals

    def alter(
        self, database: str, name: str, new: Table, expected: Expectation | None = None, cascade: bool = False
    ) -> Table:
        """Replace a table's definition, renaming it if `new` has another name; returns what is stored.

        With `expected` nothing changes unless the parameter still has that value. New columns count for existing
        partitions only with `cascade`. Raises InvalidOperationError for an unknown table, a name that is taken or a
        change that is not allowed; MetaError for a broken transactional rule or expectation.
        """
        new = replace(
            new,
            database=fold(new.database or database),
            name=fold(new.name or name),
            columns=lowered(new.columns),
            partition_keys=lowered(new.partition_keys),
            location=qualified(new.location, self._directories.root) if new.location else None,
        )
        try:
            old = self._tables.get(database, name)
            if (new.database, new.name) != (old.database, old.name):
                return self._rename(old, new, expected, cascade)
            if becomes_transactional(old, altered_table(old, new)):
                self._check_convertible(old)
            with self._db.engine.begin() as connection:
                return _apply(connection, locked(connection, old.database, old.name), new, expected, cascade)
        except NoSuchObjectError as error:  # none of the alter methods declares it
            raise InvalidOperationError(f"table {database}.{name} cannot be altered: {error}") from None

    def _rename(self, old: Table, new: Table, expected: Expectation | None, cascade: bool) -> Table:
        """Move the directory, then change the rows. Killed in between, the same rename can be given again."""
        if becomes_transactional(old, altered_table(old, new)):
            raise InvalidOperationError(f"rename {old.full_name} and make it transactional in two steps")
        if self._tables.find(new.database, new.name) is not None:
            raise InvalidOperationError(f"cannot rename {old.full_name}: table {new.full_name} exists already")
        target = self._target(old, new)
        if target is not None:
            self._removals.wait_for(target)
            self._directories.move(old.location or "", target)
            new = replace(new, location=target)

        def change(connection: Connection) -> Table:
            stands = locked(connection, old.database, old.name)
            if (stands.id, stands.location) != (old.id, old.location):
                raise InvalidOperationError(f"table {old.full_name} was changed by another one: try again")
            altered = _apply(connection, stands, new, expected, cascade)
            for rename in (func.txn_rename_table, func.compaction_rename_table):
                connection.execute(select(rename(old.database, old.name, new.database, new.name)))
            return altered

        try:
            return in_transaction(self._db, change)
        except Exception as error:
            stored = self._tables.find(new.database, new.name)
            if stored is not None and stored.id == old.id:
                return stored  # the connection was lost after the commit
            if target is not None:
                self._directories.move(target, old.location or "")
            if isinstance(error, IntegrityError):
                raise InvalidOperationError(
                    f"cannot rename {old.full_name}: {new.full_name} exists already, or its database does not"
                ) from error
            raise

    def _target(self, old: Table, new: Table) -> str | None:
        """Where a renamed table's directory goes; None if it stays.

        It moves with a managed table in its default place (metastore-wire.md §5), unless the client gave another or
        directories are not ours to move.
        """
        row = self._db.call_one("catalog_database", new.database)
        if row is None:
            raise InvalidOperationError(f"cannot rename {old.full_name}: database {new.database} does not exist")
        if old.is_external or old.is_view or new.location not in (None, old.location) or not self._directories.enabled:
            return None
        home = self._db.call_one("catalog_database", old.database)
        if home is None or old.location != self._directories.of_table(records.database_of(home), old.name):
            return None
        return self._directories.of_table(records.database_of(row), new.name)

    def _check_convertible(self, old: Table) -> None:
        """Plain files have no row ids, and Spark's names are not those that Hive reads as such: convert by a copy."""
        with self._db.engine.connect() as connection:
            query = select(PARTITION.c.id).where(PARTITION.c.table_id == old.id).limit(1)
            partitioned = connection.execute(query).first() is not None
        checkable = self._directories.enabled and old.location is not None
        if partitioned or not checkable or self._directories.has_files(old.location or ""):
            raise MetaError(
                f"{old.full_name} holds data, so it cannot be made transactional:"
                " create a transactional table and insert its rows there"
            )


def _apply(connection: Connection, old: Table, new: Table, expected: Expectation | None, cascade: bool) -> Table:
    """Check and store a change of the locked table `old`."""
    if expected is not None and old.parameters.get(expected.key) != expected.value:
        # Iceberg's clients look for the first sentence (metastore-wire.md §4).
        raise MetaError(
            f"The table has been modified. The parameter value for key '{expected.key}' is"
            f" '{old.parameters.get(expected.key)}'. The expected value was '{expected.value}'"
        )
    altered = altered_table(old, new)
    connection.execute(update(TBL).where(TBL.c.id == old.id).values(records.table_row(altered)))
    own = PARTITION.c.table_id == old.id
    if cascade:
        connection.execute(update(PARTITION).where(own).values(columns=null()))
    elif altered.columns != old.columns:
        # Partitions that had the table's columns keep what they had.
        keep = records.columns_json(old.columns)
        connection.execute(update(PARTITION).where(own, PARTITION.c.columns.is_(None)).values(columns=keep))
    if altered.location != old.location and old.full_name != altered.full_name:
        _move_partitions(connection, old, altered)
    return altered


def _move_partitions(connection: Connection, old: Table, new: Table) -> None:
    """Partitions inside the directory of a renamed table moved with it."""
    place = PARTITION.c.location
    inside = func.starts_with(place, f"{old.location}/")
    moved = func.concat(new.location, func.substr(place, len(old.location or "") + 1))
    connection.execute(update(PARTITION).where(PARTITION.c.table_id == old.id, inside).values(location=moved))
