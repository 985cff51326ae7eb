"""Who asks, for what, and with which right."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from metastore.catalog.names import split_key

ADMIN = "ADMIN"
"""Everything with an object, its privileges too; on the server: everything."""
ALL = "ALL"
"""As a privilege: all of `VERBS`."""
ANY = "ANY"
"""As a need: whatever right there is."""
SEE = "SEE"
VERBS = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER"})
WRITING = frozenset({"INSERT", "UPDATE", "DELETE"})


class Who(NamedTuple):
    """A user, None for nobody, and the groups that count."""

    user: str | None
    groups: tuple[str, ...] = ()


class Thing(NamedTuple):
    """What is asked for: the server (nothing is said), a catalog, a database by its key, or a table."""

    catalog: str | None = None
    database: str | None = None
    table: str | None = None

    def __str__(self) -> str:
        if self.database is not None:
            catalog, name = split_key(self.database)
            return f"table {catalog}.{name}.{self.table}" if self.table is not None else f"database {catalog}.{name}"
        return "the server" if self.catalog is None else f"catalog {self.catalog}"


SERVER = Thing()


@lru_cache(maxsize=4096)
def database_thing(key: str) -> Thing:
    """The database with a key."""
    return Thing(split_key(key)[0], key)


@lru_cache(maxsize=16_384)
def table_thing(key: str, table: str) -> Thing:
    """A table of the database with a key."""
    return Thing(split_key(key)[0], key, table)
