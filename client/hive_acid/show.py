"""Transactions, locks and compactions as tables of text, with Hive's words; for the terminal and for notebooks."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from hive_acid.connection import Connection
from hive_acid.wire import ttypes


@dataclass(frozen=True)
class Listing:
    """A table of text."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def transactions(connection: Connection) -> Listing:
    """Open and aborted transactions."""
    answer = connection.call("get_open_txns_info")
    states = ttypes.TxnState._VALUES_TO_NAMES
    rows = tuple(
        (str(t.id), states[t.state].lower(), t.user, t.hostname, _age(t.startedTime), _age(t.lastHeartbeatTime))
        for t in answer.open_txns
    )
    return Listing(
        f"Transactions (high-water mark {answer.txn_high_water_mark})",
        ("id", "state", "user", "host", "started", "last heartbeat"),
        rows,
    )


def locks(connection: Connection, database: str | None = None, table: str | None = None) -> Listing:
    """Locks held and waited for."""
    # A field that only Hive 4 has, here as in `compactions`: elder clients are not told of newer kinds.
    answer = connection.call("show_locks", ttypes.ShowLocksRequest(dbname=database, tablename=table, txnid=0))
    states, kinds = ttypes.LockState._VALUES_TO_NAMES, ttypes.LockType._VALUES_TO_NAMES
    rows = tuple(
        (
            f"{lock.lockid}.{lock.lockIdInternal}",
            ".".join(part for part in (lock.dbname, lock.tablename, lock.partname) if part),
            states[lock.state].lower(),
            kinds[lock.type].lower(),
            str(lock.txnid or "-"),
            f"{lock.blockedByExtId}.{lock.blockedByIntId}" if lock.blockedByExtId else "-",
            lock.user,
            _age(lock.acquiredat),
        )
        for lock in answer.locks or ()
    )
    columns = ("lock", "on", "state", "type", "txn", "blocked by", "user", "acquired")
    return Listing("Locks", columns, rows)


def compactions(connection: Connection, database: str | None = None, table: str | None = None) -> Listing:
    """Compactions queued, running, waiting for the Cleaner, and ended."""
    answer = connection.call("show_compact", ttypes.ShowCompactRequest(id=0, dbName=database, tbName=table))
    kinds = ttypes.CompactionType._VALUES_TO_NAMES
    rows = tuple(
        (
            str(c.id),
            ".".join(part for part in (c.dbname, c.tablename, c.partitionname) if part),
            kinds[c.type].lower(),
            c.state,
            str(c.hightestWriteId or "-"),
            str(c.txnId or "-"),
            _seconds(c.start, c.endTime),
            c.errorMessage or "",
        )
        for c in answer.compacts
    )
    columns = ("id", "on", "type", "state", "highest write id", "txn", "duration", "message")
    return Listing("Compactions", columns, rows)


def _age(when_ms: int | None) -> str:
    if not when_ms:
        return "-"
    return f"{max(0.0, time.time() - when_ms / 1000):.0f} s ago"


def _seconds(start_ms: Any, end_ms: Any) -> str:
    return f"{(end_ms - start_ms) / 1000:.1f} s" if start_ms and end_ms else "-"
