"""Functions that users have written: create, get, list, alter and drop (wire.md §4.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from hive_acid.errors import AlreadyExistsError, MetaError, NoSuchObjectError
from metastore.catalog import changes
from metastore.catalog.function import Function
from metastore.catalog.names import MAX_DATABASE_NAME, check_object_name, fold, pattern_regex, table_text
from metastore.catalog.registry.schema import UDF
from metastore.catalog.schema import is_missing_parent
from metastore.catalog.transactions import in_transaction
from metastore.store.database import Database


class Functions:
    """The functions of all databases. They go with their database."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def get(self, database: str, name: str) -> Function:
        """A function by its name. Raises NoSuchObjectError."""
        found = self._select(UDF.c.database == database, UDF.c.name == fold(name))
        if not found:
            raise NoSuchObjectError(f"function {table_text(database, name)} does not exist")
        return found[0]

    def matching(self, database: str, pattern: str | None = None) -> list[Function]:
        """The functions of a database whose name matches a pattern (None: all), by name."""
        matches = [] if pattern is None else [UDF.c.name.regexp_match(pattern_regex(pattern))]
        return self._select(UDF.c.database == database, *matches)

    def all(self, databases: str) -> list[Function]:
        """The functions of the databases whose key matches a regular expression, by database and name."""
        return self._select(UDF.c.database.regexp_match(databases))

    def create(self, function: Function) -> Function:
        """Store a new function; returns it as it is stored.

        Raises AlreadyExistsError, NoSuchObjectError for an unknown database, InvalidObjectError for an impossible name.
        """
        function = replace(function, name=_checked(function.name))

        def change(connection: Connection) -> Function:
            values = {name: value for name, value in _row(function).items() if name != "created_s"}
            created = _function(connection.execute(insert(UDF).values(values).returning(*UDF.c)).one())
            changes.function_created(connection, created)
            return created

        try:
            return in_transaction(self._db, change)
        except IntegrityError as error:
            raise _refusal(error, function) from None

    def alter(self, database: str, name: str, new: Function) -> Function:
        """Replace everything of a function but the time of its creation and its resources, as Hive does.

        Raises MetaError for an unknown function, for a name that is taken or a database that does not exist, as Hive's
        clients expect; InvalidObjectError for an impossible name.
        """
        new = replace(new, name=_checked(new.name))
        values = {key: value for key, value in _row(new).items() if key not in ("created_s", "resources")}

        def change(connection: Connection) -> Function:
            statement = update(UDF).where(UDF.c.database == database, UDF.c.name == fold(name)).values(values)
            altered = connection.execute(statement.returning(*UDF.c)).first()
            if altered is None:
                raise MetaError(f"function {table_text(database, name)} does not exist")
            return _function(altered)

        try:
            return in_transaction(self._db, change)
        except IntegrityError as error:
            raise MetaError(str(_refusal(error, new))) from None

    def drop(self, database: str, name: str) -> Function:
        """Drop a function; returns it as it was. Raises NoSuchObjectError."""

        def change(connection: Connection) -> Function:
            statement = delete(UDF).where(UDF.c.database == database, UDF.c.name == fold(name))
            dropped = connection.execute(statement.returning(*UDF.c)).first()
            if dropped is None:
                raise NoSuchObjectError(f"function {table_text(database, name)} does not exist")
            changes.function_dropped(connection, _function(dropped))
            return _function(dropped)

        return in_transaction(self._db, change)

    def _select(self, *conditions: Any) -> list[Function]:
        with self._db.engine.connect() as connection:
            rows = connection.execute(select(UDF).where(*conditions).order_by(UDF.c.database, UDF.c.name))
            return [_function(row) for row in rows]


def has_functions(connection: Connection, database: str) -> bool:
    """Whether a database has functions, which only a cascading drop takes along."""
    return connection.execute(select(UDF.c.name).where(UDF.c.database == database).limit(1)).first() is not None


def _checked(name: str) -> str:
    name = fold(name)
    check_object_name("function", name, MAX_DATABASE_NAME)
    return name


def _refusal(error: IntegrityError, function: Function) -> AlreadyExistsError | NoSuchObjectError:
    if is_missing_parent(error):
        return NoSuchObjectError(f"database {function.database} does not exist")
    return AlreadyExistsError(f"function {function.full_name} exists already")


def _row(function: Function) -> dict[str, Any]:
    row = {name: getattr(function, name) for name in UDF.columns.keys()}  # noqa: SIM118 - not a dict
    row["resources"] = [list(resource) for resource in function.resources]
    return row


def _function(row: Row[Any]) -> Function:
    found = dict(row._mapping)
    found["resources"] = [(kind, uri) for kind, uri in found["resources"]]
    return Function(**found)
