"""Changes of a table's columns: added at the end, renamed in place, given a wider type (acid-format.md §3.5).

Files stay as they are, readers find columns by their places. An alteration shows at once, also inside of a transaction
that is aborted later. The transaction's lock keeps two alterations apart, which would each undo the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hive_acid.catalog import Column, Table, table_from_wire
from hive_acid.connection import Connection
from hive_acid.errors import ColumnError
from hive_acid.transaction import Transaction
from hive_acid.wire import ttypes

_ALSO_IN_PARTITIONS = ttypes.EnvironmentContext(properties={"CASCADE": "true"})


def add_columns(
    connection: Connection, transaction: Transaction, table: Table, columns: Sequence[Column], *, missing: bool = False
) -> Table:
    """Add columns at the end, null in all rows so far; the table as it is then.

    With `missing`, columns that the table has already are left out. Raises ColumnError for a name that it has.
    """

    def change(fields: list[Any], names: list[str]) -> None:
        for column in columns:
            if column.name.lower() not in names:
                fields.append(ttypes.FieldSchema(name=column.name.lower(), type=column.type, comment=column.comment))
            elif not missing:
                raise ColumnError(f"{table.full_name} has a column '{column.name}' already")

    return _altered(connection, transaction, table, change)


def rename_column(connection: Connection, transaction: Transaction, table: Table, old: str, new: str) -> Table:
    """Give a column another name. Raises ColumnError for a name that is unknown, taken, or a partition column's."""

    def change(fields: list[Any], names: list[str]) -> None:
        found = _found(table, fields, names, old)
        if new.lower() in names:
            raise ColumnError(f"{table.full_name} has a column '{new}' already")
        found.name = new.lower()

    return _altered(connection, transaction, table, change)


def change_column_type(connection: Connection, transaction: Transaction, table: Table, name: str, to: str) -> Table:
    """Give a column a wider type, in Hive's words.

    Raises ColumnError for a column that is unknown, a partition's, or one by which the table is clustered,
    InvalidOperationError for a type that does not hold all values of the present one.
    """

    def change(fields: list[Any], names: list[str]) -> None:
        if name.lower() in table.bucket_columns:
            raise ColumnError(
                f"{table.full_name} is CLUSTERED BY {name}: values of another type would fall into other buckets"
            )
        _found(table, fields, names, name).type = to

    return _altered(connection, transaction, table, change)


def rename(connection: Connection, transaction: Transaction, table: Table, database: str, name: str) -> None:
    """Give a table another name or database; its directory may move, so nobody may read it meanwhile.

    Raises LockTimeoutError if somebody does, AlreadyExistsError if there is such a table.
    """
    transaction.lock(_component(table, ttypes.LockType.EXCLUSIVE))
    wire = connection.wire_table(table.database, table.name)
    wire.dbName, wire.tableName = database, name
    connection.call("alter_table", table.database, table.name, wire)


def set_properties(
    connection: Connection, transaction: Transaction, table: Table, properties: Mapping[str, str | None]
) -> None:
    """Set a table's properties, or remove those whose value is None; what the metastore refuses changes none."""
    transaction.lock(_component(table, ttypes.LockType.EXCL_WRITE))
    wire = connection.wire_table(table.database, table.name)
    kept = {key: value for key, value in (wire.parameters or {}).items() if key not in properties}
    wire.parameters = kept | {key: value for key, value in properties.items() if value is not None}
    connection.call("alter_table", table.database, table.name, wire)


def _component(table: Table, kind: int) -> Any:
    return ttypes.LockComponent(
        type=kind,
        level=ttypes.LockLevel.TABLE,
        dbname=table.database,
        tablename=table.name,
        operationType=ttypes.DataOperationType.NO_TXN,
        isTransactional=table.is_transactional,
    )


def _found(table: Table, fields: Sequence[Any], names: Sequence[str], wanted: str) -> Any:
    at = names.index(wanted.lower()) if wanted.lower() in names else len(fields)
    if at >= len(fields):
        kind = "partition column" if wanted.lower() in names else "unknown column"
        raise ColumnError(f"{kind} '{wanted}' of {table.full_name} cannot be altered")
    return fields[at]


def _altered(
    connection: Connection, transaction: Transaction, table: Table, change: Callable[[list[Any], list[str]], None]
) -> Table:
    """Lock the table, apply `change` to its columns (beside all names, partition keys included), and store it."""
    transaction.lock(_component(table, ttypes.LockType.EXCL_WRITE))
    wire = connection.wire_table(table.database, table.name)
    fields = [ttypes.FieldSchema(name=one.name.lower(), type=one.type, comment=one.comment) for one in wire.sd.cols]
    change(fields, [*(one.name for one in fields), *(key.name.lower() for key in wire.partitionKeys or ())])
    renamed = {before.name.lower(): after.name for before, after in zip(wire.sd.cols, fields, strict=False)}
    wire.sd.bucketCols = [renamed.get(name.lower(), name) for name in wire.sd.bucketCols or ()]
    for order in wire.sd.sortCols or ():
        order.col = renamed.get(order.col.lower(), order.col)
    wire.sd.cols = fields
    connection.call("alter_table_with_environment_context", table.database, table.name, wire, _ALSO_IN_PARTITIONS)
    return table_from_wire(wire)
