"""Whether a database is one that we can keep our tables in, said before anything is made in it."""

from __future__ import annotations

import contextlib
import logging
import re
from typing import Any

import psycopg2

from hive_acid.errors import MetaError
from metastore.observe.log import event
from metastore.store.config import StoreConfig
from metastore.store.connections.failures import cause_of, code_of
from metastore.store.database import SCHEMA, Database

LOG = logging.getLogger("metastore.store")
OLDEST = 140_000
"""Postgres 14: what is older is not tested, and its maintainers have given it up."""
_POOLER = (
    "a connection pooler stands before the database, such as PgBouncer, that drops the settings of a session or gives "
    "each transaction another connection (pool_mode=transaction); prepared statements and LISTEN do not work there: "
    "give the address of Postgres itself, the server has a pool of its own (metastore.database.connections.max)"
)
_POOLERS_WORDS = ("unsupported startup parameter", "statement pooling mode")
"""How PgBouncer refuses us."""
_NO_PASSWORD = "no password supplied"
_NO_CONNECT = re.compile(r'permission denied for database (".*")')
_RIGHTS = """
    SELECT quote_ident(current_database()), quote_ident(current_user),
           has_database_privilege(current_database(), 'CREATE'), quote_ident(pg_get_userbyid(n.nspowner)),
           has_schema_privilege(n.oid, 'USAGE') AND has_schema_privilege(n.oid, 'CREATE'),
           (SELECT quote_ident(pg_get_userbyid(o.owner))
              FROM (SELECT c.relowner FROM pg_class c WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'S')
                    UNION SELECT p.proowner FROM pg_proc p WHERE p.pronamespace = n.oid) AS o (owner)
             WHERE NOT pg_has_role(o.owner, 'USAGE') LIMIT 1)
      FROM (VALUES (1)) AS one LEFT JOIN pg_namespace n ON n.nspname = %(schema)s
"""
"""The database, the user and what it lacks; the owner of the schema, null if there is none; another one in it."""
_MARK = "hive_acid.mark"
_TRIES = 3


def examine(db: Database, config: StoreConfig, makes: bool = True) -> None:
    """Raises MetaError with the reason if the database does not answer or will not do.

    With `makes` our schema is about to be made if it is not there.
    """
    try:
        with contextlib.closing(db.dedicated_connection(greets=False)) as connection, connection.cursor() as cursor:
            _examine_server(cursor, config)
            _examine_rights(cursor, makes)
            cursor.execute("DO $$ BEGIN END $$")  # the language of our functions
            # A pooler has keys of its own; without one there is nothing to find out.
            has_pooler = connection.info.backend_pid != _ask(cursor, "SELECT pg_backend_pid()")
            if _ask(cursor, "SHOW search_path") != SCHEMA or (has_pooler and _is_shared(db, cursor)):
                raise MetaError(_POOLER)
    except psycopg2.Error as error:
        if any(words in str(error) for words in _POOLERS_WORDS):
            raise MetaError(_POOLER) from error
        raise MetaError(_refusal(error)) from error


def examine_owner(db: Database) -> None:
    """Raises MetaError if what is in our schema belongs to another user, so that an upgrade cannot change it."""
    with contextlib.closing(db.dedicated_connection(greets=False)) as connection, connection.cursor() as cursor:
        _examine_rights(cursor, makes=True, changes=True)


def _refusal(error: psycopg2.Error) -> str:
    """The sentence for an error of the database at the start, or of who was to connect us to it."""
    cause = cause_of(error)
    if code_of(error) is not None:
        return f"the database refuses what is asked at the start: {cause}"
    _, is_told, words = cause.partition("FATAL: ")
    if _NO_PASSWORD in cause:
        return (
            "it wants a password, and none was given: name a file of it by --database-password-file, or put it into "
            "PGPASSWORD or .pgpass"
        )
    if not is_told:
        return f"the database does not answer: {cause}"
    if denied := _NO_CONNECT.search(words):
        return f"the user may not connect to it: let its owner run GRANT CONNECT ON DATABASE {denied[1]} TO that user"
    return f"the database lets nobody in by this address: {words.strip()}"


def _examine_rights(cursor: Any, makes: bool, changes: bool = False) -> None:
    cursor.execute(_RIGHTS, {"schema": SCHEMA})
    name, user, may_make, owner, may_use, other = cursor.fetchone()
    if owner is None and makes and not may_make:
        raise MetaError(
            f"the user {user} may not make the schema {SCHEMA} in the database {name}: let its owner run "
            f"GRANT CREATE ON DATABASE {name} TO {user}"
        )
    if owner is not None and not may_use:
        raise MetaError(
            f"the user {user} may not use the schema {SCHEMA} of the database {name}, which {owner} has made: give the "
            f"address with that user, or let it run GRANT {owner} TO {user}"
        )
    if other is not None and changes:
        raise MetaError(
            f"the schema {SCHEMA} of the database {name} has tables or functions that belong to {other}, and the user "
            f"{user} may not change them: give the address with that user, or let it run GRANT {other} TO {user}"
        )


def _examine_server(cursor: Any, config: StoreConfig) -> None:
    cursor.execute(
        "SELECT current_database(), current_setting('server_encoding'), current_setting('server_version_num')::integer,"
        " current_setting('server_version'), pg_is_in_recovery(), current_setting('max_connections')::integer,"
        " current_setting('transaction_read_only')::boolean, current_setting('synchronous_commit'),"
        " (SELECT setting::integer FROM pg_settings WHERE name = 'statement_timeout')"
    )
    name, encoding, number, version, is_standby, most, is_read_only, durability, longest_ms = cursor.fetchone()
    if encoding != "UTF8":
        raise MetaError(
            f"the database {name} keeps text as {encoding}, which has no room for most names: make another one by "
            f"CREATE DATABASE {name}_utf8 ENCODING 'UTF8' TEMPLATE template0"
        )
    if number < OLDEST:
        raise MetaError(f"the database is a Postgres {version}: hive-acid needs 14 or newer")
    if is_standby:
        raise MetaError(f"the database {name} is a standby, which takes no changes: give the address of its primary")
    if is_read_only:
        raise MetaError(
            f"the database {name} takes no changes, as default_transaction_read_only is on for it or its user; some "
            "providers set it when the disk is nearly full"
        )
    if durability == "off":
        event(
            LOG,
            logging.WARNING,
            "database forgets answered commits when it crashes",
            synchronous_commit=durability,
            hint="set it on for the database, or for its user",
        )
    if 0 < longest_ms < config.patience_s * 1000:
        event(
            LOG,
            logging.WARNING,
            "database cancels statements soon",
            statement_timeout=f"{longest_ms} ms",
            hint="a call that takes longer fails: set it higher for the database, or for its user",
        )
    if most < config.max_connections:
        event(
            LOG,
            logging.WARNING,
            "database allows few connections",
            max_connections=most,
            wanted=config.max_connections,
            hint="raise it there, or lower metastore.database.connections.max",
        )


def _ask(cursor: Any, question: str) -> Any:
    cursor.execute(question)
    return cursor.fetchone()[0]


def _is_shared(db: Database, cursor: Any) -> bool:
    """Whether what belongs to a session is found in another one, or is not where it was left."""
    for _ in range(_TRIES):
        _ask(cursor, f"SELECT set_config('{_MARK}', 'here', false)")
        question = f"SELECT current_setting('{_MARK}', true)"
        with contextlib.closing(db.dedicated_connection()) as other:
            other.autocommit = False
            with other.cursor() as reader:
                if _ask(reader, question) == "here" or _ask(cursor, question) != "here":  # `other` keeps what it got
                    return True
            other.rollback()
    return False
