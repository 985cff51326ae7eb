"""Asking a metastore why something does not happen: compaction, cleaning, a lock, a transaction."""

from __future__ import annotations

from dataclasses import dataclass

from hive_acid.connection import Connection
from hive_acid.operators.lookups import PlainNames
from hive_acid.operators.words import Parts
from hive_acid.wire import ttypes


@dataclass(frozen=True, slots=True)
class Answer:
    """One reason: `code` for programs, `message` for people, and what to do about it.

    `since_ms` says since when, in epoch milliseconds; then what is in the way, who owns it, and the directories that
    are kept for it.
    """

    subject: str
    code: str
    message: str
    action: str
    since_ms: int | None = None
    txn_id: int | None = None
    lock_id: int | None = None
    compaction_id: int | None = None
    user: str | None = None
    host: str | None = None
    application: str | None = None
    files: tuple[str, ...] = ()


def why_table(connection: Connection, table: Parts, partition: str | None = None) -> list[Answer]:
    """Why a table or one partition (``k=v/…``) is not compacted, and why not cleaned. Raises NoSuchObjectError."""
    database = PlainNames(connection).database_of(table[:-1] or ("default",))
    return _ask(connection, ttypes.HiveAcidWhyRequest(dbname=database, tablename=table[-1], partname=partition))


def why_transaction(connection: Connection, txn_id: int) -> list[Answer]:
    """How a transaction stands: what it waits for, and what waits for it."""
    return _ask(connection, ttypes.HiveAcidWhyRequest(txnid=txn_id))


def why_lock(connection: Connection, lock_id: int) -> list[Answer]:
    """What is in the way of a lock. Raises NoSuchObjectError if it is not on record."""
    return _ask(connection, ttypes.HiveAcidWhyRequest(lockid=lock_id))


def why_compaction(connection: Connection, compaction_id: int) -> list[Answer]:
    """How a compaction stands. Raises NoSuchObjectError if it is not on record."""
    return _ask(connection, ttypes.HiveAcidWhyRequest(compactionid=compaction_id))


def _ask(connection: Connection, request: object) -> list[Answer]:
    return [
        Answer(
            one.subject,
            one.code,
            one.message,
            one.action,
            one.since,
            one.txnid,
            one.lockid,
            one.compactionid,
            one.user,
            one.hostname,
            one.agentInfo,
            tuple(one.files or ()),
        )
        for one in connection.call("hive_acid_why", request).answers
    ]
