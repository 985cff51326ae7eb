"""Between rows of the database and the catalogue's models."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, Text, any_, cast, literal, select
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from hive_acid.errors import NoSuchObjectError
from metastore.catalog.models import CatalogInfo, Column, DatabaseInfo, Partition, Table
from metastore.catalog.names import fold, table_text
from metastore.catalog.schema import CATALOG, DATABASE, PARTITION, TBL


def columns_json(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Columns as they are stored; a comment that is not there takes no room."""
    return [{key: value for key, value in column._asdict().items() if value is not None} for column in columns]


def columns_of(stored: Sequence[Mapping[str, Any]]) -> list[Column]:
    return [Column(column["name"], column["type"], column.get("comment")) for column in stored]


def catalog_row(catalog: CatalogInfo) -> dict[str, Any]:
    return {name: getattr(catalog, name) for name in CATALOG.columns.keys()}  # noqa: SIM118 - not a dict


def catalog_of(row: Sequence[Any]) -> CatalogInfo:
    """A catalog from all columns of its row."""
    return CatalogInfo(**dict(zip(CATALOG.columns.keys(), row, strict=True)))


def database_row(database: DatabaseInfo) -> dict[str, Any]:
    return {name: getattr(database, name) for name in DATABASE.columns.keys()}  # noqa: SIM118 - not a dict


def database_of(row: Sequence[Any]) -> DatabaseInfo:
    """A database from all columns of its row."""
    return DatabaseInfo(**dict(zip(DATABASE.columns.keys(), row, strict=True)))


def table_row(table: Table) -> dict[str, Any]:
    """The columns of a table's row, without the id that the database gives."""
    row = {name: getattr(table, name) for name in TBL.columns.keys() if name != "id"}  # noqa: SIM118
    row["columns"] = columns_json(table.columns)
    row["partition_keys"] = columns_json(table.partition_keys)
    return row


def table_of(row: Sequence[Any]) -> Table:
    """A table from all columns of its row."""
    stored = dict(zip(TBL.columns.keys(), row, strict=True))
    stored["columns"] = columns_of(stored["columns"])
    stored["partition_keys"] = columns_of(stored["partition_keys"])
    return Table(**stored)


_TEXTS = tuple(number for number, column in enumerate(TBL.columns) if isinstance(column.type, JSONB))


def table_of_texts(row: Sequence[Any]) -> Table:
    """As `table_of`, of a row whose JSON is text, with what is told of its constraints behind it."""
    values, constraints = list(row[:-1]), row[-1]
    for number in _TEXTS:
        if values[number] is not None:
            values[number] = json.loads(values[number])
    table = table_of(values)
    return replace(table, constraints=constraints) if constraints else table


def length_of_texts(row: Sequence[Any]) -> int:
    """How long the JSON of a row is that `table_of_texts` reads, in characters."""
    return sum(len(row[number] or "") for number in (*_TEXTS, -1))


def missing_table(database: str, name: str) -> NoSuchObjectError:
    """What is said of a table that is not there."""
    return NoSuchObjectError(f"{table_text(database, name)} table not found")


def locked(connection: Connection, database: str, name: str) -> Table:
    """A table whose row stays locked to the end of the caller's transaction. Raises NoSuchObjectError."""
    query = select(TBL).where(TBL.c.database == fold(database), TBL.c.name == fold(name)).with_for_update()
    row = connection.execute(query).first()
    if row is None:
        raise missing_table(database, name)
    return table_of(tuple(row))


PARTITION_COLUMNS = tuple(
    PARTITION.c[name]
    for name in ("name", "values", "location", "created_s", "columns", "parameters", "storage", "details")
)
"""What `partition_reader` reads, in this order."""


def partition_row(table: Table, partition: Partition) -> dict[str, Any]:
    """The columns of a partition's row; columns and storage that are the table's are not stored."""
    own_columns = partition.columns is not None and partition.columns != table.columns
    own_storage = partition.storage is not None and partition.storage != table.storage
    return {
        "table_id": table.id,
        "name": partition.name,
        "values": partition.values,
        "location": partition.location,
        "created_s": partition.created_s,
        "columns": columns_json(partition.columns or []) if own_columns else None,
        "parameters": partition.parameters,
        "storage": partition.storage if own_storage else None,
        "details": partition.details,
    }


def partition_of(table: Table, row: Mapping[str, Any]) -> Partition:
    """A partition from its row, with what it has from its table."""
    return partition_reader(table)([row[column.name] for column in PARTITION_COLUMNS])


def partition_reader(table: Table) -> Callable[[Sequence[Any]], Partition]:
    """Makes partitions of rows of `PARTITION_COLUMNS`. What they have from the table they share with it."""

    def read(row: Sequence[Any]) -> Partition:
        name, values, location, created_s, columns, parameters, storage, details = row
        return Partition(
            values=values,
            location=location,
            created_s=created_s,
            columns=table.columns if columns is None else columns_of(columns),
            parameters=parameters,
            storage=table.storage if storage is None else storage,
            details=details,
            name=name,
        )

    return read


def is_named(names: Collection[str]) -> ColumnElement[bool]:
    """The condition that a partition has one of the names."""
    return PARTITION.c.name == any_(cast(literal(list(names), ARRAY(Text)), ARRAY(Text)))
