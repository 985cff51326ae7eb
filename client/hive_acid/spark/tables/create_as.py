"""CREATE TABLE AS SELECT: a table and its first rows, in one transaction as far as the metastore has one.

The table is made before its rows are written, since the metastore gives it its place. Until the commit others see it
without rows; if the transaction aborts it goes, unless somebody else has put rows into it. A client that is killed in
between leaves it empty: it bears the number of the transaction that made it, so that the next one of that name can tell
it from a table of somebody else, and takes its place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

from hive_acid.connection import Connection
from hive_acid.errors import LockTimeoutError, NoSuchObjectError, SnapshotInTheWayError
from hive_acid.format.properties import CREATED_BY
from hive_acid.transactions.locks import overwrite_component
from hive_acid.transactions.transaction import Transaction
from hive_acid.wire import ttypes

LOG = logging.getLogger(__name__)

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

    The table goes if the transaction aborts and nobody else uses it. One that was left by a client that died is
    replaced.
    """
    left = _maker(connection, database, name)
    if left.isdigit() and transaction.snapshot.is_aborted(int(left)):
        _drop_unused(connection, database, name, left)
    create({CREATED_BY: str(transaction.id)})
    transaction.after_abort(lambda: _drop_unused(connection, database, name, str(transaction.id)))
    return insert()


def _drop_unused(connection: Connection, database: str, name: str, maker: str) -> None:
    """Drop the table that transaction `maker` has made, if that is it still, unless somebody uses it or has used it.

    A lock against all others comes before the look: whoever asks for his own after it finds no table.
    """
    if _maker(connection, database, name) != maker:
        return
    try:
        with connection.begin(lock_timeout_ms=0) as transaction:
            transaction.lock(overwrite_component(database, name))
            if _maker(connection, database, name) == maker and not _is_used(connection, transaction, database, name):
                connection.drop_table(database, name, if_exists=True)
    except (LockTimeoutError, SnapshotInTheWayError) as error:
        LOG.info("%s.%s stays, since somebody uses it: %s", database, name, error)


def _is_used(connection: Connection, transaction: Transaction, database: str, name: str) -> bool:
    """Whether anybody has written to the table with success, or may yet: a write id has not been aborted."""
    request = ttypes.MaxAllocatedTableWriteIdRequest(dbName=database, tableName=name)
    last = connection.call("get_max_allocated_table_write_id", request).maxWriteId
    seen = transaction.write_ids(database, name)
    return any(not seen.is_aborted(write_id) for write_id in range(1, last + 1))


def _maker(connection: Connection, database: str, name: str) -> str:
    """The transaction in which the table was made with its rows, empty if there is none."""
    try:
        return connection.table(database, name).parameters.get(CREATED_BY, "")
    except NoSuchObjectError:
        return ""
