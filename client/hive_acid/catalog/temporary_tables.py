"""Temporary tables of a session: each is a stored table, in a database that nobody else is told of.

The database names a transaction, the lease, which the session keeps open. It goes with the session; of a session that
has died, the metastore removes it once the lease is over.
"""

from __future__ import annotations

import atexit
import threading
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from hive_acid.catalog.table import table_parts
from hive_acid.errors import AlreadyExistsError, HiveAcidError, NoSuchObjectError, TransactionExpiredError
from hive_acid.forks import renew_in_children
from hive_acid.format.properties import SESSION_DATABASE, SESSION_TRANSACTION
from hive_acid.transactions.states import TransactionKind
from hive_acid.transactions.transaction import Transaction


class Leasing(Protocol):
    """What it takes of a connection."""

    def call(self, method: str, *args: Any) -> Any: ...

    def begin(self, kind: TransactionKind, *, tables: Iterable[str]) -> Transaction: ...

    def create_database(self, name: str, *, properties: Mapping[str, str]) -> None: ...

    def drop_database(self, name: str, *, cascade: bool, if_exists: bool) -> None: ...

    def drop_table(self, database: str, name: str, *, purge: bool, if_exists: bool) -> None: ...


class TemporaryTables:
    """What a session calls its temporary tables (``db.t``), and their places: the names that they are stored under.

    Safe to share between threads. A child that was forked knows its parent's, and leaves them to it.
    """

    def __init__(self, connection: Leasing) -> None:
        self._connection = connection
        self._places: dict[str, str] = {}
        self.renew_in_child()
        renew_in_children(self)

    def renew_in_child(self) -> None:
        """Have no database that would go with this process."""
        self._guard = threading.RLock()
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._token = uuid.uuid4().hex[:12]
        self._databases: dict[str, str] = {}
        self._made: set[str] = set()
        self._lease: Transaction | None = None

    # --- names ---------------------------------------------------------------------------------

    def place(self, full_name: str) -> str | None:
        """The place of the temporary table of that name; None if there is none."""
        return self._places.get(full_name)

    def called(self, place: str) -> str | None:
        """What the session calls the temporary table at a place; None if there is none."""
        return next((name for name, at in list(self._places.items()) if at == place), None)

    def names(self, database: str) -> list[str]:
        """The names of those that hide a table of a database, or stand beside its tables."""
        named = (table_parts(name) for name in list(self._places))
        return [name for of, name in named if of == database]

    def place_of_new(self, full_name: str) -> str:
        """Where a temporary table of that name would be; nothing is made."""
        database, name = table_parts(full_name)
        with self._guard:
            self._refresh()
            if database in self._databases.values():
                return f"{database}.{name}"
            number = len(self._databases)
            return f"{self._databases.setdefault(database, f'{SESSION_DATABASE}{self._token}_{number}')}.{name}"

    def refuse_hidden(self, full_name: str) -> None:
        """Raise AlreadyExistsError for a stored table to be made that one of these would hide."""
        if full_name in self._places:
            raise AlreadyExistsError(
                f"the session has a temporary table {full_name}, which would hide a stored one of that name: drop it, "
                "or take another name"
            )

    def gone(self, place: str) -> NoSuchObjectError:
        """What to say of one that the metastore does not have any more."""
        return NoSuchObjectError(
            f"the temporary table {self.called(place) or place} is gone: the metastore has not heard of this session "
            "for longer than hive.txn.timeout, or somebody has removed it. DROP TABLE lets its name mean a stored "
            "table again"
        )

    # --- their life ----------------------------------------------------------------------------

    def prepared(self, full_name: str) -> str:
        """As `place_of_new`, in a database that is there. Raises AlreadyExistsError."""
        with self._guard:
            self.refuse_hidden(full_name)
            place = self.place_of_new(full_name)
            database, _, _ = place.partition(".")
            if database not in self._made:
                if self._lease is None:
                    self._lease = self._connection.begin(TransactionKind.READ, tables=[place])
                    atexit.register(self.end)
                self._connection.create_database(database, properties={SESSION_TRANSACTION: str(self._lease.id)})
                self._made.add(database)
            return place

    def _refresh(self) -> None:
        """Begin anew if the metastore has taken the session for dead."""
        if self._lease is not None:
            try:
                self._lease.check_alive()
            except TransactionExpiredError:
                self._begin_anew()

    def add(self, full_name: str, place: str) -> None:
        """From now on the name means the table at `place`."""
        with self._guard:
            self._places[full_name] = place

    def moved(self, old: str, new: str) -> None:
        """What is stored at `old` has been given another place; does nothing for other tables."""
        with self._guard:
            if (name := self.called(old)) is not None:
                del self._places[name]
                self._places[self._called_at(new)] = new

    def _called_at(self, place: str) -> str:
        """What is called as it should be that is stored at a place."""
        database, name = table_parts(place)
        return f"{next(of for of, at in self._databases.items() if at == database)}.{name}"

    def forget(self, place: str) -> None:
        """What was called by a name is dropped; does nothing for other tables."""
        with self._guard:
            if (name := self.called(place)) is not None:
                del self._places[name]

    def end(self) -> None:
        """Drop all. What the metastore does not drop now it removes later, since the lease is over."""
        with self._guard:
            made, lease = sorted(self._made), self._lease
            self._places.clear()
            self._begin_anew()
        if lease is None:
            return
        atexit.unregister(self.end)
        with suppress(HiveAcidError):
            lease.commit()  # first: files stay for transactions that are open at a drop
        with suppress(HiveAcidError):
            for database in made:
                for name in self._connection.call("get_all_tables", database):
                    self._connection.drop_table(database, name, purge=True, if_exists=True)
                self._connection.drop_database(database, cascade=True, if_exists=True)
