"""Between rows of the database and the catalogue's models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import RowMapping

from metastore.catalog.models import Column, DatabaseInfo, Partition, Table
from metastore.catalog.schema import DATABASE, TBL


def columns_json(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Columns as they are stored; a comment that is not there takes no room."""
    return [{key: value for key, value in column._asdict().items() if value is not None} for column in columns]


def columns_of(stored: Sequence[Mapping[str, Any]]) -> list[Column]:
    return [Column(column["name"], column["type"], column.get("comment")) for column in stored]


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


def partition_row(table: Table, partition: Partition) -> dict[str, Any]:
    """The columns of a partition's row; columns equal to the table's are not stored."""
    own = partition.columns is not None and partition.columns != table.columns
    return {
        "table_id": table.id,
        "name": partition.name,
        "values": partition.values,
        "location": partition.location,
        "created_s": partition.created_s,
        "columns": columns_json(partition.columns or []) if own else None,
        "parameters": partition.parameters,
        "storage": partition.storage if partition.storage is not None else table.storage,
        "details": partition.details,
    }


def partition_of(table: Table, row: RowMapping) -> Partition:
    """A partition with its columns filled in."""
    return Partition(
        values=list(row["values"]),
        location=row["location"],
        created_s=row["created_s"],
        columns=table.columns if row["columns"] is None else columns_of(row["columns"]),
        parameters=row["parameters"],
        storage=row["storage"],
        details=row["details"],
        name=row["name"],
    )
