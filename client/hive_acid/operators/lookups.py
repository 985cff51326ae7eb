"""What the operators' statements mean in one metastore: the tables and partitions of their names, and their answers.

Shared by the forms in which they are shown: in Hive's columns (`operators`) and for people (`show`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from hive_acid.catalog.partition_values import known_text, partition_text
from hive_acid.catalog.table import DEFAULT_DATABASE, Table
from hive_acid.connection import Connection
from hive_acid.errors import ColumnError, NoSuchObjectError, SqlError
from hive_acid.format.partitions import parse_partition_name
from hive_acid.operators.statements import ShowCompactions, ShowLocks, status_letter
from hive_acid.operators.words import Parts
from hive_acid.wire import ttypes


class Names(Protocol):
    """Which table or database a written name means."""

    def table_of(self, parts: Parts) -> Table:
        """The table. Raises NoSuchObjectError."""

    def database_of(self, parts: Parts) -> str:
        """The database's name for the metastore's calls."""


class PlainNames:
    """``table``, ``database.table`` and ``catalog.database.table``; one without a database is of `default`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def table_of(self, parts: Parts) -> Table:
        """See `Names`."""
        database = self.database_of(parts[:-1]) if len(parts) > 1 else DEFAULT_DATABASE
        return self._connection.table(database, parts[-1].lower())

    def database_of(self, parts: Parts) -> str:
        """See `Names`. Raises SqlError for a name of more than two parts."""
        match [part.lower() for part in parts]:
            case [database] | ["hive", database]:
                return database
            case [catalog, database]:
                return f"@{catalog}#{database}"
            case _:
                raise SqlError(f"'{'.'.join(parts)}' is no database's name: give database, or catalog.database")


def compactions(connection: Connection, asked: ShowCompactions, names: Names) -> list[Any]:
    """Compactions as ``ShowCompactResponseElement``. Raises NoSuchObjectError for a table that there is not."""
    request = ttypes.ShowCompactRequest(id=asked.id or 0, poolName=asked.pool, limit=asked.limit)
    request.dbName, request.tbName, some = _place(connection, asked, names)
    if some is not None and len(some) == 1:
        request.partName = some[0]
    if asked.type is not None:
        request.type = getattr(ttypes.CompactionType, asked.type.upper())
    if asked.status is not None:
        request.state = status_letter(asked.status)
    if asked.order:
        request.order = ", ".join(f'"CC_{column}" {"DESC" if descends else "ASC"}' for column, descends in asked.order)
    if some is None or len(some) == 1:
        return list(connection.call("show_compact", request).compacts)
    request.limit = None
    kept = [one for one in connection.call("show_compact", request).compacts if one.partitionname in some]
    return kept[: asked.limit]


def locks(connection: Connection, asked: ShowLocks, names: Names) -> list[Any]:
    """Lock components as ``ShowLocksResponseElement``. Raises NoSuchObjectError for a table that there is not."""
    # A field that only Hive 4 has, as ``id`` above: elder clients are not told of newer kinds.
    request = ttypes.ShowLocksRequest(txnid=0, isExtended=asked.extended)
    request.dbname, request.tablename, some = _place(connection, asked, names)
    found = connection.call("show_locks", request).locks or ()
    return [lock for lock in found if some is None or lock.partname in some]


def _place(
    connection: Connection, asked: ShowCompactions | ShowLocks, names: Names
) -> tuple[str | None, str | None, list[str] | None]:
    """The database, the table and the partitions that a statement is about, each None where it says nothing of it."""
    if asked.database is not None:
        return names.database_of(asked.database), None, None
    if asked.target is None:
        return None, None, None
    table = names.table_of(asked.target.table)
    spec = asked.target.partition
    return table.database, table.name, None if spec is None else covered(connection, table, spec)


def covered(connection: Connection, table: Table, values: Mapping[str, str | None]) -> list[str]:
    """The names of the partitions that have these values, in the metastore's order.

    Raises ColumnError for what is no partition key of the table or no value of one, NoSuchObjectError if no partition
    has the values.
    """
    keys = {key.name: key for key in table.partition_keys}
    for key in values:
        if key not in keys:
            raise ColumnError(f"{key} is no partition key of {table.full_name} ({', '.join(keys) or 'it has none'})")
    wanted = {name: partition_text(table, keys[name], value) for name, value in values.items()}
    found = [
        name
        for name in connection.partition_names(table)
        if wanted.items()
        <= {key: known_text(keys[key].type, value) for key, value in parse_partition_name(name)}.items()
    ]
    if not found:
        given = ", ".join(f"{key}={'NULL' if value is None else value}" for key, value in values.items())
        raise NoSuchObjectError(f"{table.full_name} has no partition ({given})")
    return found
