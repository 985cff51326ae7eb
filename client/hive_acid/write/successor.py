"""A table that takes the place of another one with the commit of the transaction that fills it.

The metastore drops the one and gives its name to the other in one step; until then nobody is told of the latter. It
goes if the transaction aborts. That of a client that was killed the metastore drops once its transaction is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hive_acid.catalog.table import Table
from hive_acid.connection import Connection
from hive_acid.format.evolution import RENAMED
from hive_acid.format.properties import OF_ROWS, REPLACED, SUCCEEDS, replaced_mark, successor_name
from hive_acid.transactions.transaction import Transaction

_STAYS_BEHIND = OF_ROWS | {RENAMED, "numFilesErasureCoded", "numPartitions"}
"""What the metastore and we say of a table's rows and files, which are not those of its successor."""


def inherited(properties: Mapping[str, str]) -> dict[str, str]:
    """Those of a table's properties that hold for the one that takes its place, too."""
    return {key: value for key, value in properties.items() if key not in _STAYS_BEHIND}


def make_successor(connection: Connection, transaction: Transaction, table: Table, wanted: Table) -> Table:
    """Make the table that is `wanted` in the place of another one, without rows; it goes if the transaction aborts.

    Its files are written under the write id that the transaction has of `table`.
    """
    name = successor_name(transaction.id)
    parameters = {**wanted.parameters, SUCCEEDS: table.name}
    transaction.after_abort(lambda: connection.drop_table(table.database, name, purge=True, if_exists=True))
    connection.create_table(replace(wanted, database=table.database, name=name, parameters=parameters))
    transaction.lend_write_id(table.database, table.name, name)
    return connection.table(table.database, name)


def take_place(transaction: Transaction, table: Table, successor: Table, owner: str) -> None:
    """Have the successor, which is filled, take the place of `table` with the commit.

    A snapshot that does not see its rows is told so (`REPLACED`), since what it sees went with the table.
    """
    mark = replaced_mark(successor.id, transaction.write_id(table.database, table.name))
    parameters = {key: value for key, value in successor.parameters.items() if key != SUCCEEDS}
    named = replace(successor, name=table.name, parameters={**parameters, REPLACED: mark})
    transaction.replace_with_commit(table.id, named.to_wire(owner), successor.id)
