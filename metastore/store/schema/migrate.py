"""Brings a database to the schema of this version: Alembic migrations, then the stored functions."""

from __future__ import annotations

import importlib.resources
from functools import cache

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from hive_acid.errors import MetaError
from metastore.store.database import SCHEMA, Database
from metastore.store.schema import functions

_ADVISORY_LOCK = 0x48697665  # one upgrade at a time in a database


def upgrade(db: Database) -> None:
    """Upgrade in one database transaction, one process at a time; nothing to do is no error.

    Raises MetaError, with nothing changed, if the database was upgraded by a newer version.
    """
    with db.engine.begin() as connection:
        # An upgrade takes what it takes, and waits for another one.
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text("SET LOCAL lock_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
        if connection.execute(text("SELECT to_regnamespace(:name)"), {"name": SCHEMA}).scalar() is None:
            # Not IF NOT EXISTS: who was given the schema need not have the right to make one.
            connection.execute(text(f"CREATE SCHEMA {SCHEMA}"))
        config = _alembic_config(connection)
        if not _is_upgraded(connection, config):
            command.upgrade(config, "head")
        functions.install(connection)


def has_schema(db: Database) -> bool:
    """Whether a metastore has used the database."""
    with db.engine.connect() as connection:
        found = connection.execute(text("SELECT to_regclass(:table)"), {"table": f"{SCHEMA}.alembic_version"})
        return found.scalar_one() is not None


def _alembic_config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(importlib.resources.files("metastore.migrations")).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def _is_upgraded(connection: Connection, config: Config) -> bool:
    """Whether there is no migration to run: Alembic itself would read all of them again to find that out."""
    context = MigrationContext.configure(connection, opts={"version_table_schema": SCHEMA})
    known, current = _revisions(config.get_main_option("script_location")), context.get_current_heads()
    for revision in current:
        if revision not in known:
            raise MetaError(
                f"the database is at schema revision {revision}, which this version of hive-acid does not know:"
                " run the newer version it was upgraded by"
            )
    return set(current) == {known[0]}


@cache
def _revisions(place: str) -> tuple[str, ...]:
    """Those that we ship, the newest first: they stay what they are while we run."""
    return tuple(script.revision for script in ScriptDirectory(place).walk_revisions())
