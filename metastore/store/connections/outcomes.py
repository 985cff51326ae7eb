"""What became of a commit whose connection was lost: Postgres remembers how its transactions have ended.

After a crash of Postgres a transaction id that was not flushed is given out again: to whoever comes first, which mostly
is `recover_from_crash`. So what is found to be committed then may be another one; what is found not to be is not.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple, Protocol

import psycopg2

from hive_acid.errors import MetaError
from metastore.store.connections.failures import is_lost

_POLL_S = 0.05


class Life(NamedTuple):
    """Of the database, between two crashes or fail-overs."""

    since: str
    first_transaction: int
    """The lower 32 bits of the id of the transaction that noted its beginning."""

    def has_begun_before(self, transaction: int) -> bool:
        """Whether a transaction of such an id is of this life, and so another one than that of an earlier life."""
        return (transaction - self.first_transaction) % 2**32 < 2**31


class Lender(Protocol):
    """Who lends connections."""

    def take(self, *, autocommit: bool) -> Any:
        """A connection until its `close`. Raises MetaError when there is none."""


def transaction_id(connection: Any) -> str | None:
    """The id of a connection's open transaction; None if it has changed nothing."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id_if_assigned()::text")
        found: str | None = cursor.fetchone()[0]
    return found


def life_of(connection: Any) -> Life | None:
    """In which life of the database a connection is; None before there are tables."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT since::text, xmin::text::bigint FROM uncrashed")
            row = cursor.fetchone()
    except psycopg2.errors.UndefinedTable:
        return None
    return Life(*row) if row else None


def was_committed(lender: Lender, transaction: str, life: Life | None, until: float) -> bool | None:
    """Whether a transaction was committed that began in a life of the database; None if that cannot be known.

    Waits for the database, and for the transaction's end, `until` then (monotonic clock).
    """
    while life is not None and time.monotonic() < until:
        try:
            connection = lender.take(autocommit=True)
        except MetaError:
            return None
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_xact_status(%s::xid8)", [transaction])
                status = cursor.fetchone()[0]
            new_life = connection.life
        except psycopg2.Error as error:
            if not is_lost(connection, error):  # the id is in the future of a database that has lost it
                return None if connection.life == life else False
            connection.end()
            continue
        finally:
            connection.close()
        if new_life != life:
            if status not in ("committed", None) or (new_life and new_life.has_begun_before(int(transaction))):
                return False
            return None
        if status != "in progress":
            return {"committed": True, "aborted": False}.get(status)
        time.sleep(_POLL_S)
    return None
