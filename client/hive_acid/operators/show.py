"""Transactions, locks and compactions as tables of text, for people: in the terminal and in notebooks.

The same with Hive's columns is what `operators` makes of the statements SHOW TRANSACTIONS, LOCKS and COMPACTIONS.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from html import escape
from typing import Any

from hive_acid.connection import Connection
from hive_acid.display.html_table import html_table
from hive_acid.operators import lookups
from hive_acid.operators.statements import NamedTable, ShowCompactions, ShowLocks
from hive_acid.wire import ttypes


@dataclass(frozen=True)
class Listing:
    """A table of text; None is a value that is missing."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        return f"<p>{escape(self.title)}</p>\n{html_table(self.columns, self.rows)}"


def transactions(connection: Connection) -> Listing:
    """Open and aborted transactions."""
    answer = connection.call("get_open_txns_info")
    states = ttypes.TxnState._VALUES_TO_NAMES
    rows = tuple(
        (
            str(t.id),
            states[t.state].lower(),
            t.user,
            t.hostname,
            t.agentInfo,
            _age(t.startedTime),
            _age(t.lastHeartbeatTime),
            t.metaInfo,
        )
        for t in answer.open_txns
    )
    return Listing(
        f"Transactions (high-water mark {answer.txn_high_water_mark})",
        ("id", "state", "user", "host", "application", "started", "last heartbeat", "reason"),
        rows,
    )


def locks(connection: Connection, database: str | None = None, table: str | None = None) -> Listing:
    """Locks held and waited for, all or those in a database or on a table of it."""
    return locks_asked_for(connection, ShowLocks(*_narrowed(database, table)))


def locks_asked_for(connection: Connection, asked: ShowLocks) -> Listing:
    """Locks held and waited for, narrowed as in the statement."""
    states, kinds = ttypes.LockState._VALUES_TO_NAMES, ttypes.LockType._VALUES_TO_NAMES
    rows = tuple(
        (
            f"{lock.lockid}.{lock.lockIdInternal}",
            ".".join(part for part in (lock.dbname, lock.tablename, lock.partname) if part),
            states[lock.state].lower(),
            kinds[lock.type].lower(),
            str(lock.txnid) if lock.txnid else None,
            f"{lock.blockedByExtId}.{lock.blockedByIntId}" if lock.blockedByExtId else None,
            lock.user,
            lock.hostname,
            _age(lock.acquiredat),
        )
        for lock in lookups.locks(connection, asked, lookups.PlainNames(connection))
    )
    columns = ("lock", "on", "state", "type", "txn", "blocked by", "user", "host", "acquired")
    return Listing("Locks", columns, rows)


def compactions(connection: Connection, database: str | None = None, table: str | None = None) -> Listing:
    """Compactions queued, running, waiting for the Cleaner, and ended; all or of a database or table."""
    return compactions_asked_for(connection, ShowCompactions(None, *_narrowed(database, table)))


def compactions_asked_for(connection: Connection, asked: ShowCompactions) -> Listing:
    """Compactions narrowed, ordered and cut as in the statement."""
    kinds = ttypes.CompactionType._VALUES_TO_NAMES
    rows = tuple(
        (
            str(c.id),
            ".".join(part for part in (c.dbname, c.tablename, c.partitionname) if part),
            kinds[c.type].lower(),
            c.state,
            _number(c.hightestWriteId),
            _number(c.txnId),
            _duration(c),
            progress(c),
            _bytes(c),
            c.errorMessage or c.reason,
        )
        for c in lookups.compactions(connection, asked, lookups.PlainNames(connection))
    )
    columns = ("id", "on", "type", "state", "highest write id", "txn", "duration", "progress", "bytes", "message")
    return Listing("Compactions", columns, rows)


def progress(compaction: Any) -> str | None:
    """How far a compaction is, None if nothing was reported: its phase, then rows, files and bytes written so far."""
    if compaction.progressPhase is None:
        return None
    figures = compaction.progressRows or 0, compaction.progressFiles or 0, compaction.progressBytes or 0
    return "{}: {} rows, {} files, {} bytes".format(compaction.progressPhase, *figures)


def _narrowed(database: str | None, table: str | None) -> tuple[tuple[str] | None, NamedTable | None]:
    if table is not None:
        return None, NamedTable((table,) if database is None else (database, table))
    return None if database is None else (database,), None


def _number(value: int | None) -> str | None:
    return str(value) if value else None


def _age(when_ms: int | None) -> str | None:
    return f"{max(0.0, time.time() - when_ms / 1000):.0f} s ago" if when_ms else None


def _duration(compaction: Any) -> str | None:
    if not compaction.start:
        return None
    if compaction.endTime:
        return f"{(compaction.endTime - compaction.start) / 1000:.1f} s"
    return f"{max(0.0, time.time() - compaction.start / 1000):.0f} s so far"


def _bytes(compaction: Any) -> str | None:
    if compaction.bytesBefore is None:
        return None
    after = "" if compaction.bytesAfter is None else f"{compaction.bytesAfter:,} in {compaction.filesAfter or 0} files"
    return f"{compaction.bytesBefore:,} in {compaction.filesBefore or 0} files → {after}"
