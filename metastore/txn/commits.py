"""Commits that carry more than a transaction: a table's parameter, a replication's state (transactions.md §1.5), or
the definition of the rows that have replaced a table's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, func, select, text
from sqlalchemy.sql.functions import Function

from hive_acid.errors import MetaError, MetastoreError
from hive_acid.format.progress import PROGRESS_PREFIX, is_batch
from hive_acid.ids import TxnId, WriteId
from metastore.observe.meters import Meters
from metastore.store.database import Database
from metastore.store.hot.connection import Rows
from metastore.txn.calls import Commit, CommitCall, LocksFreed
from metastore.txn.names import stored_name, stored_partition
from metastore.txn.states import CONFLICT_REASON

PARAMETER_PREFIX = "_meta"
"""Only parameters of such names are set by commits."""


@dataclass(frozen=True, slots=True)
class CommitParameter:
    """A new value for a parameter that a table has; streams keep how far they got in one.

    One whose name begins with `PROGRESS_PREFIX` holds the number of a stream's last batch: it is only raised, and made
    with the first batch.
    """

    table_id: int
    key: str
    value: str

    def refuse_unfit(self, txn_id: TxnId) -> None:
        """Raise MetaError if no commit sets it: of `txn_id`, say."""
        if not self.key.startswith(PARAMETER_PREFIX):
            raise MetaError(
                f"transaction {txn_id} is not committed: a commit sets only parameters whose names begin with"
                f" {PARAMETER_PREFIX}, and '{self.key}' does not"
            )
        if self.key.startswith(PROGRESS_PREFIX) and not is_batch(self.value):
            raise MetaError(
                f"transaction {txn_id} is not committed: '{self.key}' holds the number of a batch, and"
                f" '{self.value}' is none"
            )

    def refuse(self, txn_id: TxnId, rows: Rows) -> None:
        """Raise MetaError if the rows of a commit say that it could not be set."""
        outcome = next(row[1] for row in rows if row[0] is not None)
        if outcome == "no_parameter":
            raise MetaError(
                f"transaction {txn_id} is not committed: table id {self.table_id} has no parameter '{self.key}' to be"
                " set; give it one by an ALTER TABLE first"
            )
        if outcome == "not_newer":
            raise MetaError(
                f"transaction {txn_id} is not committed: batch {self.value} of '{self.key}' or a later one is in"
                f" table id {self.table_id} already"
            )


@dataclass(frozen=True, slots=True)
class ReplicationState:
    """Up to which event a database is replicated, and perhaps one table or some of its partitions with it."""

    event_id: int
    db: str
    table: str | None = None
    partitions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplayedWrite:
    """A table or partition that a replayed transaction wrote to."""

    db: str
    table: str
    partition: str | None
    write_id: WriteId


@dataclass(frozen=True, slots=True)
class CommitExtras:
    """What goes with a commit. With a `policy` the transaction is the source's, and `writes` are what it wrote."""

    policy: str | None = None
    parameter: CommitParameter | None = None
    state: ReplicationState | None = None
    writes: tuple[ReplayedWrite, ...] = ()


@dataclass(frozen=True, slots=True)
class AloneCommit:
    """How a commit of a transaction that has overwritten all of a table has ended."""

    txn_id: TxnId
    full_name: str
    rows: Rows

    @property
    def is_done(self) -> bool:
        """Whether it was this call that has committed it."""
        return self._outcome == "committed"

    @property
    def is_refused(self) -> bool:
        """Whether nothing was done, and the transaction is open still."""
        return self._outcome in ("no_write", "others_write")

    @property
    def refusal(self) -> str:
        """Why it `is_refused`."""
        if self._outcome == "no_write":
            return f"transaction {self.txn_id} is not committed: it has no write id of {self.full_name}"
        return (
            f"transaction {self.txn_id} is not committed: others write to {self.full_name} by the definition that it"
            " would replace: run it again when they have ended"
        )

    @property
    def _outcome(self) -> object:
        return next(row[1] for row in self.rows if row[0] is not None)


class ExtendedCommits:
    """Commits with extras: all of it or nothing, in a single round trip to the database."""

    def __init__(
        self, db: Database, locks_freed: LocksFreed = lambda lock_ids: None, meters: Meters | None = None
    ) -> None:
        self._db = db
        self._commit = CommitCall(locks_freed, meters or Meters())

    def commit_txn(self, txn_id: TxnId, extras: CommitExtras, skip_conflict_check: bool = False) -> None:
        """As `TxnService.commit_txn`, and the extras with it.

        Raises what that raises; and MetaError when an extra is not possible: then the transaction is still open.
        A replayed transaction that has ended is fine.
        """
        parameter, state, writes = extras.parameter, extras.state, extras.writes
        if parameter is not None:
            parameter.refuse_unfit(txn_id)
        rows = self._db.call(
            "commit_txn_with",
            txn_id,
            skip_conflict_check,
            CONFLICT_REASON,
            extras.policy,
            *stored_parameter(parameter),
            *_stored_state(state),
            [stored_name(write.db) for write in writes],
            [stored_name(write.table) for write in writes],
            [stored_partition(write.partition) if write.partition else None for write in writes],
            [write.write_id for write in writes],
        )
        target, outcome = next(row[:2] for row in rows if row[0] is not None)
        if parameter is not None:
            parameter.refuse(txn_id, rows)
        if outcome in ("no_database", "no_table") and state is not None:
            missing = f"database {state.db}" if outcome == "no_database" else f"table {state.db}.{state.table}"
            raise MetaError(f"transaction {txn_id} is not committed: {missing} does not exist, so has no repl.last.id")
        answer = self._commit.answers([Commit(target, skip_conflict_check)], rows)[0]
        if isinstance(answer, MetastoreError):
            raise answer

    def commit_alone(self, connection: Connection, txn_id: TxnId, db: str, table: str) -> AloneCommit:
        """Commit what has overwritten all of a table in the caller's database transaction, if nobody else writes to it.

        Once that has ended, `answered` is to be told, and raises what the commit ended in.
        """
        function = func.commit_alone(txn_id, CONFLICT_REASON, stored_name(db), stored_name(table))
        return AloneCommit(txn_id, f"{db}.{table}", list(map(tuple, connection.execute(_rows_of(function)))))

    def answered(self, commit: AloneCommit) -> None:
        """Wake who waited for the locks that were freed. Raises what `commit_txn` raises."""
        if commit.is_refused:
            raise MetaError(commit.refusal)
        answer = self._commit.answers([Commit(commit.txn_id, False)], commit.rows)[0]
        if isinstance(answer, MetastoreError):
            raise answer


def _rows_of(function: Function[Any]) -> Select[Any]:
    """All columns of the rows that a stored function gives."""
    return select(text("*")).select_from(function.alias())


def stored_parameter(parameter: CommitParameter | None) -> tuple[object, ...]:
    """The columns of a parameter: table id, key, value."""
    return (parameter.table_id, parameter.key, parameter.value) if parameter else (None, None, None)


def _stored_state(state: ReplicationState | None) -> tuple[object, ...]:
    """The columns of a replication's state: event id, database, table, partitions."""
    if state is None:
        return None, None, None, []
    table = stored_name(state.table) if state.table else None
    return str(state.event_id), stored_name(state.db), table, [stored_partition(name) for name in state.partitions]
