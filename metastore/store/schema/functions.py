"""Installs the stored functions: one ``<slice>/sql/<function>.sql`` each, replaced whenever its text changes."""

from __future__ import annotations

import hashlib
import importlib.resources
import re
from contextlib import closing
from functools import cache

from sqlalchemy import Connection, text

from metastore.store.database import SCHEMA

SLICES = ("store", "events", "txn", "catalog", "lock", "compaction", "housekeeping", "why", "transfer", "authorization")
"""The slices that may have functions, in the order of their dependence."""

_CREATE = re.compile(r"^CREATE OR REPLACE FUNCTION (\w+)\s*\(", re.MULTILINE)


@cache
def sources() -> dict[str, str]:
    """Function name to SQL text of every function we ship; read once, since they stay what they are while we run.

    Raises ValueError if a file does not define exactly the function it is named after.
    """
    found: dict[str, str] = {}
    for slice_name in SLICES:
        directory = importlib.resources.files("metastore") / slice_name / "sql"
        if not directory.is_dir():
            continue
        for file in sorted(directory.iterdir(), key=lambda entry: entry.name):
            if not file.name.endswith(".sql"):
                continue
            name, source = file.name.removesuffix(".sql"), file.read_text("utf-8")
            if _CREATE.findall(source) != [name] or name in found:
                raise ValueError(f"{slice_name}/sql/{file.name} must define the one function {name}")
            found[name] = source
    return found


def install(connection: Connection) -> list[str]:
    """Bring the database's functions to the shipped ones, inside the caller's transaction; returns what changed."""
    connection.execute(
        text(f"CREATE TABLE IF NOT EXISTS {SCHEMA}.stored_function ( name text PRIMARY KEY, source_hash text NOT NULL)")
    )
    query = text(f"SELECT name, source_hash FROM {SCHEMA}.stored_function")
    installed: dict[str, str] = {row.name: row.source_hash for row in connection.execute(query)}
    shipped = sources()
    hashes = {name: hashlib.sha256(source.encode()).hexdigest() for name, source in shipped.items()}
    changed = sorted(name for name in installed.keys() | hashes.keys() if installed.get(name) != hashes.get(name))
    # Bodies may call functions that come later in the order.
    connection.execute(text("SET LOCAL check_function_bodies = off"))
    for name in changed:
        _drop(connection, name)
        connection.execute(text(f"DELETE FROM {SCHEMA}.stored_function WHERE name = :name"), {"name": name})
    for name, source in shipped.items():
        if name in changed:
            with closing(
                connection.connection.cursor()
            ) as cursor:  # of the driver: a per cent sign is no parameter to it
                cursor.execute(source)
            insert = text(f"INSERT INTO {SCHEMA}.stored_function (name, source_hash) VALUES (:name, :hash)")
            connection.execute(insert, {"name": name, "hash": hashes[name]})
    return changed


def _drop(connection: Connection, name: str) -> None:
    """Drop every function of that name: a changed signature would leave the former one beside it."""
    query = text(
        "SELECT p.oid::regprocedure::text FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
        " WHERE p.proname = :name AND n.nspname = :schema"
    )
    for (signature,) in connection.execute(query, {"name": name, "schema": SCHEMA}):
        connection.exec_driver_sql(f"DROP FUNCTION {signature}")
