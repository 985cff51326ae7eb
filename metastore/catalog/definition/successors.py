"""Tables that take the place of others: what cannot be altered in place, such as partition columns.

A client makes one under the name that tells its transaction (`successor_name`), fills it, and has the commit drop the
table that is there and give its name to the new one: both or neither. Until then no list and no event tells of it, and
it goes when its transaction has ended in another way.

The write ids are those of the name, so they go on: rows of the new table are of the one that its transaction has of
the old one. So an older snapshot knows that it does not see them, and who has an older write id conflicts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from sqlalchemy import Connection, func, select, update

from hive_acid.errors import InvalidOperationError, NoSuchObjectError
from hive_acid.format.properties import SESSION_DATABASE, SUCCEEDS, successor_name
from hive_acid.ids import TxnId
from metastore.catalog import changes, records
from metastore.catalog.definition.tables import Tables
from metastore.catalog.models import Table
from metastore.catalog.place.neighbours import Neighbours
from metastore.catalog.records import locked
from metastore.catalog.registry import constraints, privileges
from metastore.catalog.removal.drops import DropRequest, drop_in
from metastore.catalog.removal.removals import Removal, Removals
from metastore.catalog.rules.validation import altered_table
from metastore.catalog.schema import TBL
from metastore.catalog.transactions import forget_table, in_transaction
from metastore.store.database import Database

_STAYS = "kind, format, columns and place are those that it was made with"


class Successors:
    """Has tables take the place of others, and drops those that never will."""

    def __init__(self, db: Database, tables: Tables, neighbours: Neighbours, removals: Removals) -> None:
        self._db = db
        self._tables = tables
        self._neighbours = neighbours
        self._removals = removals

    def take_place(
        self, wanted: Table, table_id: int, successor_id: int, txn_id: TxnId, commit: Callable[[Connection], bool]
    ) -> list[Removal]:
        """Drop a transactional table, and give its name to the successor of a transaction, with its `commit`.

        `wanted` has the name, and the parameters that the successor is to have. Owner and privileges are those of the
        table that goes, constraints those of the successor. `commit` is called in the database transaction of it all,
        which is done if it says so. Returns the directories to be removed then.

        Raises NoSuchObjectError, InvalidOperationError, MetaError.
        """

        def change(connection: Connection) -> list[Removal]:
            if not commit(connection):
                return []
            old = locked(connection, wanted.database, wanted.name)
            if old.id != table_id:
                raise InvalidOperationError(f"{old.full_name} is another table now than the one that is to go")
            made = locked(connection, old.database, successor_name(txn_id))
            if made.id != successor_id or made.parameters.get(SUCCEEDS) != old.name:
                raise InvalidOperationError(f"{made.full_name} was not made to take the place of {old.full_name}")
            return self._follow(connection, old, made, wanted)

        return self._removals.beside_others(lambda: in_transaction(self._db, change))

    def _follow(self, connection: Connection, old: Table, made: Table, wanted: Table) -> list[Removal]:
        if not (old.is_transactional and made.is_transactional):
            raise InvalidOperationError(f"{old.full_name} and what takes its place have to be transactional")
        parameters = {key: value for key, value in wanted.parameters.items() if key != SUCCEEDS}
        owned = replace(made, owner=old.owner, owner_type=old.owner_type, parameters=parameters)
        new = replace(altered_table(made, owned, has_new_rows=True), name=old.name)
        if (new.is_full_acid, new.table_type) != (made.is_full_acid, made.table_type):
            raise InvalidOperationError(f"{made.full_name} cannot become another one as it gets its name: {_STAYS}")
        privileges.pass_on(connection, old, new)
        request = DropRequest(True, purge=old.database.startswith(SESSION_DATABASE), is_succeeded=True)
        removals = drop_in(connection, self._neighbours, self._removals, old, request)
        forget_table(connection, made, keep_write_ids=False)
        connection.execute(update(TBL).where(TBL.c.id == made.id).values(records.table_row(new)))
        changes.table_appeared(connection, new)
        changes.constraints_added(connection, constraints.stored_with(connection, new))
        return removals

    def drop_abandoned(self) -> int:
        """Drop those whose transactions have ended without them; returns how many went."""
        with self._db.engine.begin() as connection:
            found = connection.execute(select(func.abandoned_successors().table_valued("database", "name"))).all()
        for database, name in found:
            with suppress(NoSuchObjectError):  # its client has dropped it only now
                self._tables.drop(database, name, DropRequest(True, purge=True))
        return len(found)
