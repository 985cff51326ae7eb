"""CREATE TABLE AS SELECT: a table and its first rows, in one transaction as far as the metastore has one.

The table is made before its rows are written, since the metastore gives it its place. Until the commit others see it
without rows; if the transaction aborts it goes. A client that is killed in between leaves it empty: it bears the number
of the transaction that made it, so that the next one of that name can tell it from a table of somebody else, and takes
its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from hive_acid.connection import Connection
from hive_acid.errors import NoSuchObjectError
from hive_acid.transaction import Transaction
from hive_acid.wire import ttypes

CREATED_BY = "hive_acid.created_by_txn"
"""The table parameter that names the transaction in which the table was made with its first rows."""

Result = TypeVar("Result")


def create_with_rows(
    connection: Connection,
    transaction: Transaction,
    database: str,
    name: str,
    create: Callable[[Mapping[str, str]], None],
    insert: Callable[[], Result],
) -> Result:
    """Make a table by `create`, which is given a parameter to add, and its rows by `insert`; what that returns.

    The table goes if the transaction aborts. One that was left by a client that died is replaced.
    """
    _remove_leftover(connection, transaction, database, name)
    create({CREATED_BY: str(transaction.id)})
    transaction.on_abort(lambda: _drop_own(connection, transaction, database, name))
    return insert()


def _remove_leftover(connection: Connection, transaction: Transaction, database: str, name: str) -> None:
    """Drop the table of this name if its rows were never committed, and none have been written since."""
    maker = _maker(connection, database, name)
    if not maker.isdigit() or not transaction.snapshot.is_aborted(int(maker)):
        return
    request = ttypes.MaxAllocatedTableWriteIdRequest(dbName=database, tableName=name)
    if connection.call("get_max_allocated_table_write_id", request).maxWriteId <= 1:
        connection.drop_table(database, name, if_exists=True)


def _drop_own(connection: Connection, transaction: Transaction, database: str, name: str) -> None:
    if _maker(connection, database, name) == str(transaction.id):
        connection.drop_table(database, name, if_exists=True)


def _maker(connection: Connection, database: str, name: str) -> str:
    """The transaction in which the table was made with its rows, empty if there is none."""
    try:
        return connection.table(database, name).parameters.get(CREATED_BY, "")
    except NoSuchObjectError:
        return ""
