"""Changes of tables, with renames that move the directory and compare-and-set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlalchemy import Connection, func, null, select, update
from sqlalchemy.exc import IntegrityError

from hive_acid.errors import InvalidObjectError, InvalidOperationError, MetaError, NoSuchObjectError
from hive_acid.format.properties import is_successor
from metastore.catalog import changes, records
from metastore.catalog.accuracy import with_statistics
from metastore.catalog.column_statistics import Upkeep
from metastore.catalog.config import CatalogConfig
from metastore.catalog.lookup import TableLookup
from metastore.catalog.models import Expectation, Table
from metastore.catalog.names import split_key
from metastore.catalog.place.directories import Directories
from metastore.catalog.place.neighbours import Neighbours, Own
from metastore.catalog.place.places import is_below
from metastore.catalog.records import locked
from metastore.catalog.registry import constraints, privileges
from metastore.catalog.removal.drops import free_place
from metastore.catalog.removal.moves import DirectoryMoves
from metastore.catalog.removal.removals import Removals
from metastore.catalog.rules.conversion import CONVERTED_WRITE_ID, check_convertible
from metastore.catalog.rules.validation import (
    altered_table,
    becomes_full_acid,
    becomes_transactional,
    with_lowered_names,
)
from metastore.catalog.schema import PARTITION, TBL
from metastore.catalog.statistics import upkeep as statistics_upkeep
from metastore.catalog.transactions import in_transaction, parameters_altered, rename_table
from metastore.store.database import Database


@dataclass(frozen=True, slots=True)
class AlterRequest:
    """How to alter a table.

    With `expected` nothing changes unless the parameter still has that value. New columns count for existing partitions
    only with `cascade`; `upkeep` is what the client says of statistics. `check_types` refuses column types by which the
    files of a plain table could not be read, None if the server's setting says so. `has_new_rows` says that no row of
    before is seen any more: columns may be any then.
    """

    expected: Expectation | None = None
    cascade: bool = False
    upkeep: Upkeep = Upkeep()  # noqa: RUF009 - frozen
    check_types: bool | None = None
    has_new_rows: bool = False


class Alterations:
    """Changes of a table's definition."""

    def __init__(
        self,
        db: Database,
        tables: TableLookup,
        directories: Directories,
        neighbours: Neighbours,
        removals: Removals,
        moves: DirectoryMoves,
        config: CatalogConfig,
    ) -> None:
        self._db = db
        self._tables = tables
        self._directories = directories
        self._neighbours = neighbours
        self._removals = removals
        self._moves = moves
        self._config = config

    def alter(self, database: str, name: str, new: Table, request: AlterRequest) -> Table:
        """Replace a table's definition, renaming it if `new` has another name; returns what is stored.

        Raises InvalidOperationError for an unknown table, a name that is taken or a change that is not allowed;
        MetaError for a broken transactional rule or expectation.
        """
        new = replace(
            with_lowered_names(new),
            location=self._directories.stored(new.location) if new.location else None,
        )
        self._neighbours.learn([new.location])
        try:
            old = self._tables.get(database, name)
            self._directories.check_allowed(new.location, old.location)
            if request.upkeep.is_all:
                new = _with_statistics(old, new)
            if (new.database, new.name) != (old.database, old.name):
                return self._rename(old, new, request)
            altered = self._altered(old, new, request)
            if becomes_transactional(old, altered) or becomes_full_acid(old, altered):
                check_convertible(self._db, self._directories, old, altered)

            def change(connection: Connection) -> Table:
                stands = locked(connection, old.database, old.name)
                return self._apply(connection, stands, new, request)

            return self._removals.beside_others(lambda: in_transaction(self._db, change))
        except (NoSuchObjectError, InvalidObjectError) as error:  # none of the alter methods declares them
            raise InvalidOperationError(f"table {database}.{name} cannot be altered: {error}") from None

    def replace(self, new: Table, table_id: int, commit: Callable[[Connection], bool]) -> None:
        """Give a transactional table the definition of the rows that have replaced all others, with their `commit`.

        `commit` is called in the database transaction of the change, which is made if it says so. Owner, place, kind,
        format and partition columns stay. Raises NoSuchObjectError, InvalidOperationError, MetaError.
        """
        new = replace(with_lowered_names(new), location=None, owner=None, owner_type=None)
        request = AlterRequest(cascade=True, check_types=False, has_new_rows=True)

        def change(connection: Connection) -> None:
            if not commit(connection):
                return
            stands = locked(connection, new.database, new.name)
            if stands.id != table_id:
                raise InvalidOperationError(
                    f"{stands.full_name} is another table now than the one that was overwritten"
                )
            if not stands.is_transactional or _unreplaced(stands) != _unreplaced(self._altered(stands, new, request)):
                raise InvalidOperationError(
                    f"{stands.full_name} can be given other columns, buckets and parameters with its new rows: its"
                    " place, kind and format stay, and it has to be transactional"
                )
            self._apply(connection, stands, new, request)

        in_transaction(self._db, change)

    def _rename(self, old: Table, new: Table, request: AlterRequest) -> Table:
        """Move the directory and change the rows (`moves`)."""
        if split_key(old.database)[0] != split_key(new.database)[0]:
            raise InvalidOperationError(f"{old.full_name} cannot become {new.full_name}: tables stay in their catalog")
        altered = self._altered(old, new, request)
        if becomes_transactional(old, altered) or becomes_full_acid(old, altered):
            raise InvalidOperationError(f"rename {old.full_name} and make it transactional in two steps")
        if self._tables.find(new.database, new.name) is not None:
            raise InvalidOperationError(f"cannot rename {old.full_name}: table {new.full_name} exists already")
        if is_successor(old.name) or is_successor(new.name):
            raise InvalidOperationError(
                f"cannot rename {old.full_name} to {new.full_name}: such names are those of tables that are about to "
                "take another one's place"
            )
        target = self._target(old, new)
        new = replace(new, location=target) if target is not None else new

        def check(connection: Connection) -> None:
            _standing(connection, old)
            what = f"rename {old.full_name}"
            self._neighbours.check_removable(connection, [place for place, _ in moves], Own(old.id), what)
            self._neighbours.claim(connection, [place for _, place in moves], old, Own(old.id))

        def change(connection: Connection) -> Table:
            stands = _standing(connection, old)
            rename_table(connection, stands, new)
            return self._apply(connection, stands, new, request)

        moves = [] if target is None else [(old.location or "", target)]
        try:
            return self._moves.moved(old.full_name, moves, check, change)
        except Exception as error:
            stored = self._tables.find(new.database, new.name)
            if stored is not None and stored.id == old.id:
                return stored  # the connection was lost after the commit
            if isinstance(error, IntegrityError):
                raise InvalidOperationError(
                    f"cannot rename {old.full_name}: {new.full_name} exists already, or its database does not"
                ) from error
            raise

    def _target(self, old: Table, new: Table) -> str | None:
        """Where a renamed table's directory goes; None if it stays.

        It moves with a managed table in its default place (wire.md §5.2), unless the client gave another or
        directories are not ours to move.
        """
        row = self._db.call_one("catalog_database", new.database)
        if row is None:
            raise InvalidOperationError(f"cannot rename {old.full_name}: database {new.database} does not exist")
        if old.is_external or old.is_view or new.location not in (None, old.location) or not self._directories.enabled:
            return None
        home = self._db.call_one("catalog_database", old.database)
        if home is None or not self._directories.is_default_place(old, records.database_of(home)):
            return None
        with self._db.engine.begin() as connection:
            return free_place(
                connection, self._neighbours, self._directories.of_table(records.database_of(row), new.name)
            )

    def _altered(self, old: Table, new: Table, request: AlterRequest) -> Table:
        check_types = self._config.check_column_types if request.check_types is None else request.check_types
        return altered_table(old, new, check_types, has_new_rows=request.has_new_rows)

    def _apply(self, connection: Connection, old: Table, new: Table, request: AlterRequest) -> Table:
        """Check and store a change of the locked table `old`."""
        expected, cascade, upkeep = request.expected, request.cascade, request.upkeep
        if upkeep.is_all:
            new = _with_statistics(old, new)
        if expected is not None and old.parameters.get(expected.key) != expected.value:
            # Iceberg's clients look for the first sentence (wire.md §4.5).
            raise MetaError(
                f"The table has been modified. The parameter value for key '{expected.key}' is"
                f" '{old.parameters.get(expected.key)}'. The expected value was '{expected.value}'"
            )
        altered = self._altered(old, new, request)
        self._claim(connection, old, altered)
        if becomes_transactional(old, altered):
            connection.execute(select(func.seed_write_id(altered.database, altered.name, CONVERTED_WRITE_ID)))
        altered = statistics_upkeep.table_altered(connection, old, altered, cascade, upkeep)
        connection.execute(update(TBL).where(TBL.c.id == old.id).values(records.table_row(altered)))
        own = PARTITION.c.table_id == old.id
        if cascade:
            connection.execute(update(PARTITION).where(own).values(columns=null()))
        elif altered.columns != old.columns:
            # Partitions that had the table's columns keep what they had.
            keep = records.columns_json(old.columns)
            connection.execute(update(PARTITION).where(own, PARTITION.c.columns.is_(None)).values(columns=keep))
        if request.has_new_rows:
            connection.execute(update(PARTITION).where(own).values(storage=null()))
        elif altered.storage != old.storage:
            connection.execute(update(PARTITION).where(own, PARTITION.c.storage.is_(None)).values(storage=old.storage))
        if altered.columns != old.columns:
            constraints.follow_columns(connection, old, altered, by_name=request.has_new_rows)
            privileges.follow_columns(connection, old, altered, by_name=request.has_new_rows)
        if altered.location != old.location and old.full_name != altered.full_name:
            _move_partitions(connection, old, altered)
        parameters_altered(connection, old.parameters, altered.parameters, altered.database, altered.name)
        changes.table_altered(connection, old, altered)
        return altered

    def _claim(self, connection: Connection, old: Table, altered: Table) -> None:
        """Take the place of an altered table if it is another one, or the table now has a right to it alone."""
        if not altered.owns_files:
            return
        has_rights = old.owns_files and (old.is_transactional or not altered.is_transactional)
        places = [altered.location] if altered.location and (altered.location != old.location or not has_rights) else []
        if not has_rights:
            query = select(PARTITION.c.location).where(PARTITION.c.table_id == old.id)
            own = [place for place in connection.execute(query).scalars() if not is_below(place, altered.location)]
            places += sorted(filter(None, own))
        self._neighbours.claim(connection, places, altered, Own(old.id))


def _unreplaced(table: Table) -> tuple[object, ...]:
    """What of a table's definition stays when its rows are replaced, and its columns with them."""
    storage = {key: value for key, value in table.storage.items() if key in ("inputFormat", "outputFormat")}
    return table.location, table.is_transactional, table.is_full_acid, table.table_type, storage


def _standing(connection: Connection, old: Table) -> Table:
    """The table that is renamed, locked. Raises InvalidOperationError if it is another one by now."""
    stands = locked(connection, old.database, old.name)
    if (stands.id, stands.location) != (old.id, old.location):
        raise InvalidOperationError(f"table {old.full_name} was changed by another one: try again")
    return stands


def _with_statistics(table: Table, sent: Table) -> Table:
    return replace(table, parameters=with_statistics(table.parameters, sent.parameters))


def _move_partitions(connection: Connection, old: Table, new: Table) -> None:
    """Partitions inside the directory of a renamed table moved with it."""
    place = PARTITION.c.location
    inside = func.starts_with(place, f"{old.location}/")
    moved = func.concat(new.location, func.substr(place, len(old.location or "") + 1))
    connection.execute(update(PARTITION).where(PARTITION.c.table_id == old.id, inside).values(location=moved))
