"""What the database's errors mean: the end of a connection, an unfit value, no room, or a fault of ours."""

from __future__ import annotations

from typing import Any, Final

import psycopg
import psycopg2
import sqlalchemy.exc

from hive_acid.errors import InvalidInputError, MetaError, MetastoreError

DATABASE_ERRORS: Final = (psycopg2.Error, psycopg.Error)
"""What the database says of a call, a cold or a hot one."""
LOST_CODES: Final = ("08", "57P", "25006")
"""SQLSTATE classes by which the server takes leave: connection failures, shutdowns, crashes of a neighbour, and what a
server says that has become the standby of another."""
NO_ROOM: Final = "53100"
_CONNECTION_ERRORS = (psycopg2.DatabaseError, psycopg2.OperationalError, psycopg2.InterfaceError)
_MEANINGS: Final = {
    "22": (InvalidInputError, "a value of the request cannot be stored"),
    "53": (MetaError, "the database is short of resources"),
    "54": (MetaError, "the request is too large for the database"),
    "23514": (InvalidInputError, "a value of the request is out of range"),
    "23503": (MetaError, "what the request belongs to is not there (any more)"),
    "55P03": (MetaError, "the database lets nobody wait for so long (lock_timeout)"),
    "57014": (MetaError, "the database has cancelled the statement"),
    NO_ROOM: (MetaError, "the database has no disk space left, nothing was done"),
}
"""By SQLSTATE, or class of it: the error that a client is told, and the sentence before the database's own words."""


def of_the_driver(error: BaseException) -> BaseException:
    """The driver's own error behind that of SQLAlchemy."""
    if isinstance(error, sqlalchemy.exc.DBAPIError) and error.orig is not None:
        return error.orig
    return error


def code_of(error: BaseException) -> str | None:
    """The SQLSTATE; None if the server has not said any."""
    error = of_the_driver(error)
    if isinstance(error, psycopg2.Error):
        return str(error.pgcode) if error.pgcode else None
    return error.sqlstate if isinstance(error, psycopg.Error) else None


def cause_of(error: BaseException) -> str:
    """The database's own words, of which the first line says it."""
    return first_line(of_the_driver(error))


def first_line(error: BaseException) -> str:
    """The first line of an error's words, or its kind if it has none."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def is_lost(connection: Any, error: psycopg2.Error) -> bool:
    """Whether an error is the end of its connection; psycopg2 notices some ends only at the next use.

    What the server says of a statement has an SQLSTATE; a broken connection has none, or one of its own.
    """
    if error.pgcode is None:
        return bool(connection.closed) or type(error) in _CONNECTION_ERRORS
    return bool(connection.closed) or error.pgcode.startswith(LOST_CODES)


def is_loss(error: BaseException) -> bool:
    """As `is_lost`, of a connection that is not at hand."""
    error = of_the_driver(error)
    if not isinstance(error, psycopg2.Error):
        return False
    return type(error) in _CONNECTION_ERRORS if error.pgcode is None else error.pgcode.startswith(LOST_CODES)


def refusal_of(error: BaseException) -> MetastoreError | None:
    """What a client is told of an error that it can understand; None of one that is a fault of ours."""
    code = code_of(error)
    if code is None:
        return None
    for known in (code, code[:2]):
        if known in _MEANINGS:
            kind, sentence = _MEANINGS[known]
            return kind(f"{sentence}: {cause_of(error)}")
    return None
