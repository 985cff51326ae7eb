"""Functions, roles, constraints, statistics and so on as entries: rows of the catalogue with names in place of ids.

A row of a table names what it belongs to: the table by its place behind that table, ``partition`` by name (null: the
table as a whole), ``parent`` of a foreign key as ``database.table``. Bytes are base64, exact numbers text.
"""

from __future__ import annotations

import base64
import decimal
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy
from sqlalchemy import Connection, func, select, tuple_
from sqlalchemy.dialects.postgresql import insert

from metastore.catalog.column_statistics import StatisticsKind
from metastore.catalog.constraint import Constraint
from metastore.catalog.models import Table
from metastore.catalog.names import fold
from metastore.catalog.registry.privileges import ObjectType
from metastore.catalog.registry.roles import ADMIN, PUBLIC
from metastore.catalog.registry.schema import PRIVILEGE, ROLE, ROLE_GRANT, TABLE_CONSTRAINT, UDF
from metastore.catalog.schema import PARTITION, TBL
from metastore.catalog.statistics.schema import COLUMN_STATISTICS, STATISTICS_BASIS
from metastore.transfer.models import Entry

_IDS = ("id", "table_id", "partition_id", "parent_id")
_IN_MEMORY = 1000
_STATISTICS_KINDS = {
    "boolean": StatisticsKind.BOOLEAN,
    "tinyint": StatisticsKind.LONG,
    "smallint": StatisticsKind.LONG,
    "int": StatisticsKind.LONG,
    "bigint": StatisticsKind.LONG,
    "float": StatisticsKind.DOUBLE,
    "double": StatisticsKind.DOUBLE,
    "decimal": StatisticsKind.DECIMAL,
    "date": StatisticsKind.DATE,
    "timestamp": StatisticsKind.TIMESTAMP,
    "binary": StatisticsKind.BINARY,
}


@dataclass(frozen=True, slots=True)
class EntryKind:
    """Rows of one table of the database; no two have the same `key`."""

    name: str
    rows: sqlalchemy.Table
    key: tuple[str, ...]

    @property
    def belongs_to_tables(self) -> bool:
        return "table_id" in self.rows.c

    def key_of(self, row: Any) -> tuple[Any, ...]:
        return tuple(_or_zero(self.rows.c[name], row[name]) for name in self.key)

    def with_keys(self, keys: Iterable[tuple[Any, ...]]) -> Any:
        """The condition that picks the rows with these keys."""
        columns = [func.coalesce(self.rows.c[name], _or_zero(self.rows.c[name], None)) for name in self.key]
        return tuple_(*columns).in_(list(keys))


KINDS = {
    kind.name: kind
    for kind in (
        EntryKind("function", UDF, ("database", "name")),
        EntryKind("role", ROLE, ("name",)),
        EntryKind("role_grant", ROLE_GRANT, ("principal", "principal_type", "role")),
        EntryKind(
            "privilege",
            PRIVILEGE,
            (
                "table_id", "database", "principal", "principal_type", "object_type", "partition_id", "column_name",
                "privilege", "grantor", "authorizer",
            ),
        ),
        EntryKind("constraint", TABLE_CONSTRAINT, ("table_id", "name")),
        EntryKind("statistics", COLUMN_STATISTICS, ("table_id", "partition_id", "column_name", "engine")),
        EntryKind("statistics_basis", STATISTICS_BASIS, ("table_id", "partition_id")),
    )
}  # fmt: skip


def read(connection: Connection, table: Table | None) -> Iterator[Entry]:
    """The entries of a table, or those that belong to none, in the order of their kinds and keys."""
    for kind in KINDS.values():
        if kind.belongs_to_tables:
            yield from _read_kind(connection, kind, [kind.rows.c.table_id == (None if table is None else table.id)])
        elif table is None:
            yield from _read_kind(connection, kind, [])


def is_built_in(kind: str, value: Mapping[str, Any]) -> bool:
    """Whether every metastore has it from its first day: it does not move."""
    if kind == "role":
        return value["name"] in (ADMIN, PUBLIC)
    if kind == "privilege":
        return (value["object_type"], value["principal"], value["privilege"]) == (ObjectType.GLOBAL, ADMIN, "All")
    return False


def constraint_entry(constraint: Constraint) -> Entry:
    """The entry of a constraint as the catalogue knows it."""
    parent = constraint.parent
    value = {
        "name": fold(constraint.name),
        "kind": int(constraint.kind),
        "columns": [fold(name) for name in constraint.columns],
        "enabled": constraint.enabled,
        "validated": constraint.validated,
        "rely": constraint.rely,
        "expression": constraint.expression,
        "parent": f"{parent.database}.{fold(parent.table)}" if parent else None,
        "parent_columns": [fold(name) for name in parent.columns] if parent else None,
        "parent_key": fold(parent.key) if parent and parent.key else None,
        "update_rule": parent.update_rule if parent else None,
        "delete_rule": parent.delete_rule if parent else None,
    }
    return Entry("constraint", fold(constraint.name), value)


def statistics_entry(row: Mapping[str, Any], partition: str | None) -> Entry:
    """The entry of a row of statistics, of a partition or of the table as a whole."""
    value = {"partition": partition, **{name: _plain(one) for name, one in row.items() if name not in _IDS}}
    return Entry("statistics", _words(KINDS["statistics"], value), value)


def statistics_kind(column_type: str) -> str:
    """The kind of statistics that a column of this type has."""
    name = column_type.lower().partition("(")[0]
    return str(_STATISTICS_KINDS.get(name, StatisticsKind.STRING))


def _read_kind(connection: Connection, kind: EntryKind, conditions: list[Any]) -> Iterator[Entry]:
    columns: list[Any] = [column for column in kind.rows.c if column.name not in _IDS]
    source: Any = kind.rows
    order: list[Any] = []
    if "partition_id" in kind.rows.c:
        columns.append(PARTITION.c.name.label("partition"))
        source = source.outerjoin(PARTITION, PARTITION.c.id == kind.rows.c.partition_id)
        order.append(PARTITION.c.name.nulls_first())
    if "parent_id" in kind.rows.c:
        parent = TBL.alias("parent")
        columns.append((parent.c.database + "." + parent.c.name).label("parent"))
        source = source.outerjoin(parent, parent.c.id == kind.rows.c.parent_id)
    order += [kind.rows.c[name].nulls_first() for name in kind.key if name not in _IDS]
    query = select(*columns).select_from(source).where(*conditions).order_by(*order)
    streamed = connection.execute(query.execution_options(yield_per=_IN_MEMORY))
    for row in streamed.mappings():
        value = {name: _plain(one) for name, one in row.items()}
        if not is_built_in(kind.name, value):
            yield Entry(kind.name, _words(kind, value), value)


def rows_of(
    connection: Connection, kind: EntryKind, table: Table | None, entries: Iterable[Entry]
) -> list[tuple[Entry, dict[str, Any] | None]]:
    """Each entry with its row; without one if the partition or table that it names is not here."""
    partitions = _partition_ids(connection, kind, table, entries)
    found: list[tuple[Entry, dict[str, Any] | None]] = []
    for entry in entries:
        row: dict[str, Any] = {
            column.name: _value(column, entry.value[column.name])
            for column in kind.rows.c
            if column.name in entry.value
        }
        missing = False
        if kind.belongs_to_tables:
            row["table_id"] = None if table is None else table.id
        if "partition_id" in kind.rows.c:
            name = entry.value.get("partition")
            row["partition_id"] = partitions.get(name) if name else None
            missing = bool(name) and row["partition_id"] is None
        if "parent_id" in kind.rows.c:
            parent = entry.value.get("parent")
            row["parent_id"] = _table_id(connection, parent) if parent else None
            missing = bool(parent) and row["parent_id"] is None
        found.append((entry, None if missing else row))
    return found


def store(connection: Connection, kind: EntryKind, rows: list[dict[str, Any]]) -> None:
    """Insert rows; one that has come meanwhile stays as it is."""
    if rows:
        # With RETURNING many rows are one statement.
        statement = insert(kind.rows).on_conflict_do_nothing().returning(kind.rows.c[kind.key[-1]])
        connection.execute(statement, rows)


def _partition_ids(
    connection: Connection, kind: EntryKind, table: Table | None, entries: Iterable[Entry]
) -> dict[str, int]:
    names = {entry.value.get("partition") for entry in entries} - {None}
    if "partition_id" not in kind.rows.c or table is None or not names:
        return {}
    query = select(PARTITION.c.name, PARTITION.c.id).where(
        PARTITION.c.table_id == table.id, PARTITION.c.name.in_([str(name) for name in names])
    )
    return {row.name: row.id for row in connection.execute(query)}


def _table_id(connection: Connection, full_name: str) -> int | None:
    database, _, name = full_name.rpartition(".")
    return connection.execute(select(TBL.c.id).where(TBL.c.database == database, TBL.c.name == name)).scalar()


def _words(kind: EntryKind, value: Mapping[str, Any]) -> str:
    named = [value.get("partition"), *(value.get(name) for name in kind.key if name not in _IDS)]
    return " ".join(str(one) for one in named if one is not None)


def _or_zero(column: Any, value: Any) -> Any:
    if value is not None:
        return value
    return "" if isinstance(column.type, sqlalchemy.Text) else 0


def _plain(value: Any) -> Any:
    if isinstance(value, memoryview | bytes):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, decimal.Decimal):
        return str(value)
    return value


def _value(column: Any, plain: Any) -> Any:
    if plain is None:
        return None
    if isinstance(column.type, sqlalchemy.LargeBinary):
        return base64.b64decode(plain)
    if isinstance(column.type, sqlalchemy.Numeric) and not isinstance(column.type, sqlalchemy.Double):
        return decimal.Decimal(plain)
    return plain
