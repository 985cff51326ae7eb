"""Database transactions that reach into other slices' tables, and so can deadlock with a commit under way."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

import psycopg2.errors
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from hive_acid.errors import MetaError
from metastore.store.database import Database

_ATTEMPTS = 8
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
