"""Carries out the operators' statements; what they show has Hive 4's columns, names and order as there.

A value that is missing is None, times are epoch milliseconds and durations milliseconds, as Hive has them. Behind the
columns that Hive has for SHOW COMPACTIONS come ours: how far it is, files and bytes before and after, and why it is so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hive_acid.catalog.table import Table
from hive_acid.connection import Connection
from hive_acid.errors import NoSuchObjectError
from hive_acid.operators import lookups
from hive_acid.operators.compactions import wait
from hive_acid.operators.lookups import Names, PlainNames
from hive_acid.operators.show import Listing, progress
from hive_acid.operators.statements import (
    AbortCompactions,
    AbortTransactions,
    Compact,
    OperatorStatement,
    ShowCompactions,
    ShowLocks,
    ShowTransactions,
    parse,
)
from hive_acid.operators.thresholds import Thresholds, partitions_in_need
from hive_acid.wire import ttypes

WAIT_TIMEOUT_MS = 300_000
"""How long AND WAIT waits, as Hive's ``hive.compactor.wait.timeout``."""

TRANSACTION_COLUMNS = ("txnid", "state", "startedtime", "lastheartbeattime", "user", "host")
LOCK_COLUMNS = (
    *("lockid", "database", "table", "partition", "lock_state", "blocked_by", "lock_type", "transaction_id"),
    *("last_heartbeat", "acquired_at", "user", "hostname", "agent_info"),
)
COMPACTION_COLUMNS = (
    *("compactionid", "dbname", "tabname", "partname", "type", "state", "workerhost", "workerid", "enqueuetime"),
    *("starttime", "duration", "hadoopjobid", "errormessage", "initiatorhost", "initiatorid", "poolname", "txnid"),
    *("nexttxnid", "committime", "hightestwriteid"),
)
OWN_COMPACTION_COLUMNS = ("progress", "filesbefore", "bytesbefore", "filesafter", "bytesafter", "reason")
REQUEST_COLUMNS = ("compactionid", "partname", "state", "errormessage")
_ABORT_COLUMNS = ("compactionid", "status", "message")

_SKIPPED = "not needed"


def run_text(connection: Connection, text: str) -> Listing:
    """Run the one statement that `text` is; its rows. Raises SqlError, and what the statement's verb raises."""
    return run(connection, parse(text), PlainNames(connection))


def run(connection: Connection, statement: OperatorStatement, names: Names) -> Listing:
    """Run a statement, the names in it being those of `names`; a statement without a result has no columns."""
    match statement:
        case ShowTransactions():
            return _transactions(connection)
        case ShowLocks():
            return _locks(lookups.locks(connection, statement, names))
        case ShowCompactions():
            return _compactions(lookups.compactions(connection, statement, names))
        case AbortTransactions(ids):
            connection.abort_transactions(ids)
            return Listing("Transactions aborted", (), ())
        case AbortCompactions(ids):
            return _abort_compactions(connection, ids)
        case Compact():
            return _compact(connection, statement, names)


# --- what is shown -------------------------------------------------------------------------------


def _transactions(connection: Connection) -> Listing:
    states = ttypes.TxnState._VALUES_TO_NAMES
    rows = tuple(
        (str(t.id), states[t.state], _text(t.startedTime), _text(t.lastHeartbeatTime), t.user, t.hostname)
        for t in connection.call("get_open_txns_info").open_txns
    )
    return Listing("Transactions", TRANSACTION_COLUMNS, rows)


def _locks(found: Sequence[Any]) -> Listing:
    states, kinds = ttypes.LockState._VALUES_TO_NAMES, ttypes.LockType._VALUES_TO_NAMES
    rows = tuple(
        (
            f"{lock.lockid}.{lock.lockIdInternal}",
            lock.dbname,
            lock.tablename,
            lock.partname,
            states[lock.state],
            f"{lock.blockedByExtId}.{lock.blockedByIntId}" if lock.blockedByExtId else None,
            kinds[lock.type],
            _text(lock.txnid or None),
            str(lock.lastheartbeat),
            _text(lock.acquiredat or None),
            lock.user,
            lock.hostname,
            lock.agentInfo,
        )
        for lock in found
    )
    return Listing("Locks", LOCK_COLUMNS, rows)


def _compactions(found: Sequence[Any]) -> Listing:
    kinds = ttypes.CompactionType._VALUES_TO_NAMES
    rows = tuple(
        (
            str(one.id),
            one.dbname,
            one.tablename,
            one.partitionname,
            kinds[one.type],
            one.state,
            *_host_and_thread(one.workerid),
            _text(one.enqueueTime),
            _text(one.start),
            str(one.endTime - one.start) if one.endTime and one.start else None,
            one.hadoopJobId,
            one.errorMessage,
            *_host_and_thread(one.initiatorId),
            one.poolName,
            _text(one.txnId),
            _text(one.nextTxnId),
            _text(one.commitTime),
            _text(one.hightestWriteId),
            progress(one),
            _text(one.filesBefore),
            _text(one.bytesBefore),
            _text(one.filesAfter),
            _text(one.bytesAfter),
            one.reason,
        )
        for one in found
    )
    return Listing("Compactions", (*COMPACTION_COLUMNS, *OWN_COMPACTION_COLUMNS), rows)


def _host_and_thread(worker: str | None) -> tuple[str | None, str | None]:
    """The two columns that Hive makes of the id of a worker or Initiator: it is cut at its last hyphen."""
    if worker is None:
        return None, None
    host, hyphen, thread = worker.rpartition("-")
    return (host, thread) if hyphen else (worker, worker)


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)


# --- what is done --------------------------------------------------------------------------------


def _abort_compactions(connection: Connection, ids: Sequence[int]) -> Listing:
    request = ttypes.AbortCompactionRequest(compactionIds=list(ids))
    answers = connection.call("abort_Compactions", request).abortedcompacts
    rows = tuple((str(one.compactionId), one.status, one.message) for _, one in sorted(answers.items()))
    return Listing("Compactions aborted", _ABORT_COLUMNS, rows)


def _compact(connection: Connection, asked: Compact, names: Names) -> Listing:
    table = names.table_of(asked.target.table)
    rows: list[tuple[str | None, ...]] = []
    queued: list[int] = []
    for partition, why_not in _chosen(connection, table, asked):
        if why_not is not None:
            rows.append((None, partition, _SKIPPED, why_not))
            continue
        answer = connection.request_compaction(
            table.database,
            table.name,
            asked.kind,
            partition,
            pool=asked.pool,
            buckets=asked.buckets,
            order_by=asked.order_by,
            properties=asked.properties,
        )
        if answer.accepted:
            queued.append(answer.id)
        rows.append((str(answer.id) if answer.accepted else None, partition, answer.state, answer.errormessage))
    if asked.wait:
        wait(connection, queued, WAIT_TIMEOUT_MS)
    return Listing(f"Compactions of {table.full_name}", REQUEST_COLUMNS, tuple(rows))


def _chosen(connection: Connection, table: Table, asked: Compact) -> list[tuple[str | None, str | None]]:
    """The partitions that a statement is about (None for an unpartitioned table), each with why not, if not.

    A partition that is named is compacted; of a whole partitioned table those that have passed the Initiator's
    thresholds (transactions.md §4.2).
    """
    if asked.target.partition is not None:
        return [(name, None) for name in lookups.covered(connection, table, asked.target.partition)]
    if not table.partition_keys:
        return [(None, None)]
    locations = connection.partitions(table)
    if not locations:
        raise NoSuchObjectError(f"{table.full_name} has no partitions: there is nothing to compact")
    needs = partitions_in_need(connection, table, locations, Thresholds.of(connection, table))
    return [(name, needs[name]) for name in locations]
