"""What a change of the catalogue does to write ids, written components, locks and compactions (transactions.md §2.4).

All of it happens in the database transaction of the change, which reaches into other slices' tables by their functions
and so can deadlock with a commit under way: `in_transaction` repeats it then.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import psycopg2.errors
from sqlalchemy import Connection, func, select
from sqlalchemy.exc import DBAPIError

from hive_acid.errors import InvalidOperationError, MetaError
from metastore.catalog.models import Partition, Table
from metastore.store.database import Database

_ATTEMPTS = 8
_DECIDING = ("no_auto_compaction", "hive.repl.first.inc.pending")
_DECIDING_PREFIXES = ("compactorthreshold.", "compactor.")
_CONFLICTS = (psycopg2.errors.DeadlockDetected, psycopg2.errors.SerializationFailure)

T = TypeVar("T")


def in_transaction(db: Database, work: Callable[[Connection], T]) -> T:
    """The result of `work`, committed; repeated, with a limit, if Postgres rolled it back for a conflict.

    Raises MetaError when the conflicts do not end.
    """
    for attempt in range(_ATTEMPTS):
        try:
            with db.engine.begin() as connection:
                return work(connection)
        except DBAPIError as error:
            if not isinstance(error.orig, _CONFLICTS):
                raise
        time.sleep(random.uniform(0, 0.005 * 2**attempt))
    raise MetaError(f"the change met {_ATTEMPTS} conflicts in the database: try again")


def forget_table(connection: Connection, table: Table, keep_write_ids: bool) -> None:
    """A table is gone. Its write ids stay as long as there are files that have them."""
    if not keep_write_ids:
        connection.execute(select(func.txn_forget_table(table.database, table.name)))
    connection.execute(select(func.compaction_forget_table(table.database, table.name)))


def rename_table(connection: Connection, old: Table, new: Table) -> None:
    """A table has another name. Raises InvalidOperationError while readers of a dropped one may need that name."""
    if connection.execute(select(func.compaction_holds_table(new.database, new.name))).scalar():
        raise InvalidOperationError(
            f"cannot rename {old.full_name}: transactions under way still read a dropped table {new.full_name}, or have"
            " until now and its files wait for the Cleaner; try again when they have ended and it has run"
        )
    forget_table(connection, new, keep_write_ids=False)
    names = (old.database, old.name, new.database, new.name)
    connection.execute(select(func.txn_rename_table(*names)))
    connection.execute(select(func.compaction_rename_table(*names)))


def parameters_altered(
    connection: Connection, before: Mapping[str, str], after: Mapping[str, str], database: str, table: str = ""
) -> None:
    """A database, or a table of it, has other parameters: if compactions are decided by them, that is noted."""
    if _deciding(before) != _deciding(after):
        connection.execute(select(func.compaction_settings_changed(database, table)))


def _deciding(parameters: Mapping[str, str]) -> dict[str, str]:
    """The parameters by which the Initiator decides; it does not mind the case of their names."""
    folded = {key.lower(): value for key, value in parameters.items()}
    return {key: value for key, value in folded.items() if key in _DECIDING or key.startswith(_DECIDING_PREFIXES)}


def forget_partitions(connection: Connection, table: Table, names: Sequence[str], keep_writes: bool = False) -> None:
    """Partitions are gone; call it also for plain tables, it costs nothing there.

    With `keep_writes`, for files that stay, aborted writes stay on record: a partition made over them must not show
    them.
    """
    if table.is_transactional and names:
        if not keep_writes:
            connection.execute(select(func.txn_forget_partitions(table.database, table.name, list(names))))
        connection.execute(select(func.compaction_forget_partitions(table.database, table.name, list(names))))


def rename_partition(connection: Connection, table: Table, old: Partition, new: str) -> None:
    """A partition has another name, and its directory maybe another place."""
    if table.is_transactional and old.name != new:
        names = (table.database, table.name, old.name, new)
        connection.execute(select(func.compaction_forget_partitions(table.database, table.name, [new])))
        connection.execute(select(func.txn_rename_partition(*names)))
        connection.execute(select(func.compaction_rename_partition(*names, old.location)))
