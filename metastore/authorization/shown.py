"""What lists show: the elements of a reply that its reader has a right on.

A list is not looked at for who may see all of it. Else each element says what it is of, and what there is to see in one
database is asked for once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from metastore.authorization.models import SERVER, Thing, Who, database_thing, table_thing
from metastore.authorization.rights import RightsBook
from metastore.catalog.names import DEFAULT_CATALOG, DEFAULT_DATABASE, database_key, database_name, decoded
from metastore.txn.names import stored_name

Sees = Callable[[Any], bool]


class Eyes:
    """What one reader sees, for one reply."""

    def __init__(self, book: RightsBook, who: Who, may: Callable[[Thing], bool | None]) -> None:
        """`may` is what an outside policy says of seeing something; None if it says nothing."""
        self._book = book
        self._who = who
        self._may = may
        self._databases: set[str] | None = None
        self._sees_all = False
        self._tables: dict[str, set[str] | None] = {}

    def table(self, database: str, name: str) -> bool:
        """Whether it sees a table of the database with this key."""
        said = self._may(table_thing(database, name))
        if said is not None:
            return said
        if database not in self._tables:
            rights = self._book.read(self._who, database_thing(database))
            self._tables[database] = None if rights.shows_all else self._book.visible_tables(self._who, database)
        visible = self._tables[database]
        return visible is None or name in visible

    def database(self, key: str) -> bool:
        """Whether it sees the database with this key."""
        said = self._may(database_thing(key))
        if said is not None:
            return said
        if self._databases is None:
            self._databases = self._book.visible_databases(self._who) | {DEFAULT_DATABASE}
            self._sees_all = self._book.read(self._who, SERVER).shows_all
        return self._sees_all or key in self._databases

    def roles(self) -> set[str]:
        """The roles that it has."""
        return set(self._book.roles(self._who))

    @property
    def user(self) -> str | None:
        """Who it is."""
        return self._who.user


Looks = Callable[[Eyes, Sequence[Any]], Sees]
"""By the arguments of a call: what says of an element whether it is seen."""


def _names_in(argument: int, *fields: str) -> Looks:
    """Names of tables in the database that an argument names, or fields of it do."""

    def look(eyes: Eyes, arguments: Sequence[Any]) -> Sees:
        value = arguments[argument]
        key: str = database_name(*(getattr(value, field) for field in fields)) if fields else database_name(value)
        return lambda element: eyes.table(key, element if isinstance(element, str) else element.tblName)

    return look


def _tables(eyes: Eyes, arguments: Sequence[Any]) -> Sees:
    return lambda one: eyes.table(database_name(one.dbName, one.catName), one.tableName)


def _databases_of(arguments: Sequence[Any]) -> str:
    return decoded(*arguments[:1])[0] if arguments else DEFAULT_CATALOG


def _databases(eyes: Eyes, arguments: Sequence[Any]) -> Sees:
    catalog = _databases_of(arguments)
    return lambda name: eyes.database(database_key(catalog, name))


def _database_structs(eyes: Eyes, arguments: Sequence[Any]) -> Sees:
    return lambda one: eyes.database(database_name(one.name, one.catalogName))


def _functions(eyes: Eyes, arguments: Sequence[Any]) -> Sees:
    return lambda one: eyes.database(database_name(one.dbName, one.catName))


def _stored(table: str) -> Looks:
    """Locks and compactions: of a table that is seen, or of one's own."""

    def look(eyes: Eyes, arguments: Sequence[Any]) -> Sees:
        def sees(one: Any) -> bool:
            database, name = stored_name(one.dbname or ""), getattr(one, table)
            if getattr(one, "user", None) == eyes.user:
                return True
            return eyes.table(database, stored_name(name)) if name else eyes.database(database)

        return sees

    return look


def _own_txns(eyes: Eyes, arguments: Sequence[Any]) -> Sees:
    return lambda one: one.user == eyes.user


def _roles(eyes: Eyes, arguments: Sequence[Any]) -> Sees:
    held = eyes.roles()
    return lambda name: name in held


SHOWN: dict[str, tuple[Looks, str | None]] = {
    "get_all_databases": (_databases, None),
    "get_databases": (_databases, None),
    "get_databases_req": (_database_structs, "databases"),
    "get_all_functions": (_functions, "functions"),
    "get_all_materialized_view_objects_for_rewriting": (_tables, None),
    "get_materialized_views_for_rewriting": (_names_in(0), None),
    "get_all_tables": (_names_in(0), None),
    "get_tables": (_names_in(0), None),
    "get_tables_by_type": (_names_in(0), None),
    "get_table_names_by_filter": (_names_in(0), None),
    "get_tables_ext": (_names_in(0, "database", "catalog"), None),
    "get_table_meta": (_tables, None),
    "get_table_objects_by_name": (_tables, None),
    "get_table_objects_by_name_req": (_tables, "tables"),
    "get_open_txns_info": (_own_txns, "open_txns"),
    "get_role_names": (_roles, None),
    "show_locks": (_stored("tablename"), "locks"),
    "show_compact": (_stored("tablename"), "compacts"),
}
"""The methods whose replies have lists of what one may see, how that is told, and the field of the reply with it."""
