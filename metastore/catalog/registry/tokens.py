"""Delegation tokens and their keys, as clients that share a metastore keep them here. Plain stores of bounded size.

This server checks none of them; those that it issues are in `issued_tokens.py`.
"""

from __future__ import annotations

from sqlalchemy import Connection, Table, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from hive_acid.errors import MetaError, NoSuchObjectError
from metastore.catalog.registry.schema import DELEGATION_TOKEN, MASTER_KEY
from metastore.catalog.transactions import in_transaction
from metastore.store.database import Database

MAX_LENGTH = 767
"""Of an identifier, a token and a key, in characters; as in Hive's own tables."""
MAX_TOKENS = 10_000
MAX_KEYS = 1_000


class Tokens:
    """The tokens by identifier, and the keys by number."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, identifier: str, token: str) -> bool:
        """Keep a token; False, and nothing is changed, if there is one of this identifier.

        Raises MetaError for a text that is too long and when there are too many.
        """
        _check_length("token identifier", identifier)
        _check_length("token", token)

        def change(connection: Connection) -> bool:
            _check_room(connection, DELEGATION_TOKEN, MAX_TOKENS, "tokens")
            statement = insert(DELEGATION_TOKEN).values(identifier=identifier, token=token).on_conflict_do_nothing()
            return connection.execute(statement.returning(DELEGATION_TOKEN.c.identifier)).first() is not None

        return in_transaction(self._db, change)

    def remove(self, identifier: str) -> bool:
        """Forget a token; False if there is none of this identifier."""
        statement = delete(DELEGATION_TOKEN).where(DELEGATION_TOKEN.c.identifier == identifier)
        return in_transaction(self._db, lambda connection: connection.execute(statement).rowcount > 0)

    def get(self, identifier: str) -> str | None:
        """The token of an identifier; None if there is none."""
        query = select(DELEGATION_TOKEN.c.token).where(DELEGATION_TOKEN.c.identifier == identifier)
        with self._db.engine.connect() as connection:
            return connection.execute(query).scalar()

    def identifiers(self) -> list[str]:
        """The identifiers of all tokens."""
        column = DELEGATION_TOKEN.c.identifier
        with self._db.engine.connect() as connection:
            return list(connection.execute(select(column).order_by(column)).scalars())

    def add_key(self, key: str) -> int:
        """Keep a key; returns its number. Raises MetaError for a text that is too long and when there are too many."""
        _check_length("key", key)

        def change(connection: Connection) -> int:
            _check_room(connection, MASTER_KEY, MAX_KEYS, "keys")
            return int(connection.execute(insert(MASTER_KEY).values(key=key).returning(MASTER_KEY.c.id)).scalar_one())

        return in_transaction(self._db, change)

    def update_key(self, number: int, key: str) -> None:
        """Replace a key. Raises NoSuchObjectError for an unknown number, MetaError for a text that is too long."""
        _check_length("key", key)
        statement = update(MASTER_KEY).where(MASTER_KEY.c.id == number).values(key=key)
        if in_transaction(self._db, lambda connection: connection.execute(statement).rowcount) == 0:
            raise NoSuchObjectError(f"there is no key with number {number}")

    def remove_key(self, number: int) -> bool:
        """Forget a key; False if there is none of this number."""
        statement = delete(MASTER_KEY).where(MASTER_KEY.c.id == number)
        return in_transaction(self._db, lambda connection: connection.execute(statement).rowcount > 0)

    def keys(self) -> list[str]:
        """All keys, by number."""
        with self._db.engine.connect() as connection:
            return list(connection.execute(select(MASTER_KEY.c.key).order_by(MASTER_KEY.c.id)).scalars())


def _check_length(what: str, value: str) -> None:
    if not value or len(value) > MAX_LENGTH:
        raise MetaError(f"a {what} has 1 to {MAX_LENGTH} characters, not {len(value or '')}")


def _check_room(connection: Connection, table: Table, most: int, what: str) -> None:
    """Many callers at once may go over the limit by their number, which is bounded too."""
    if connection.execute(select(func.count()).select_from(table)).scalar_one() >= most:
        raise MetaError(f"there are {most} {what} already: remove those that have expired")
