"""A client that uses the library, `hive_acid.connect`, as an application does."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from hive_acid import connect
from hive_acid.connection import Connection
from hive_acid.errors import (
    HiveAcidError,
    LockTimeoutError,
    MetastoreError,
    MetastoreInternalError,
    MetastoreUnreachableError,
    TransactionExpiredError,
    WriteConflictError,
)
from hive_acid.transactions.changed_rows import ChangedRows, Since
from hive_acid.transactions.locks import Operation, read_component, write_component
from hive_acid.transactions.states import TransactionKind
from hive_acid.transactions.transaction import Transaction as LibraryTransaction
from hive_acid.wire import ttypes
from tests.isolation.clients.attempt import Attempt
from tests.isolation.clients.caller import Caller
from tests.isolation.clients.plans import LINGERING_ROUND_S, Plan
from tests.isolation.judging.deltas import DATABASE, Deltas, Keyspace
from tests.isolation.judging.history import Key, Outcome, Transaction

LOCK_TIMEOUT_MS = 4_000
CONNECT_PAUSE_S = 0.2
MOST_CONNECTS = 300
NO_ANSWER = (MetastoreUnreachableError, MetastoreError, MetastoreInternalError)


class ChangedLists(ChangedRows):
    """The lists that a transaction has changed, as rows of their table: who has changed others is no conflict."""

    def __init__(self, deltas: Deltas, lists: Sequence[Key], *, looks: bool) -> None:
        super().__init__()
        self._deltas = deltas
        self._lists = lists
        self._is_careful = looks
        for key in lists:
            self.begin(f"{DATABASE}.{key.table}", is_partitioned=False)

    def why_not_apart(self, table: str, since: Since, others: Sequence[Any]) -> str | None:
        """As of files; or without a look, as nobody should."""
        mine = [key for key in self._lists if f"{DATABASE}.{key.table}" == table]
        same = [key for key in mine for of in self._deltas.writes(key) if since.is_others(of, of)]
        return f"both have changed {same[0]}" if same and self._is_careful else None


class LibrarySession:
    """One client: runs transactions one after the other. The outcome of a commit without an answer is asked for."""

    def __init__(
        self,
        name: str,
        uri: str,
        settler: Caller,
        deltas: Deltas,
        keyspace: Keyspace,
        clock: Callable[[], float],
        *,
        looks: bool = True,
    ) -> None:
        """`settler` asks what became of a commit whose answer was lost.

        Whoever does not look says of all others that they have changed other lists than he has.
        """
        self._looks = looks
        self.name = name
        self.caller = settler
        self._uri = uri
        self._deltas = deltas
        self._keyspace = keyspace
        self._clock = clock
        self._connection: Connection | None = None
        self._table_ids: dict[str, int] = {}
        self._number = 0

    def run(self, plan: Plan) -> list[Transaction]:
        """Carry out a plan; the transaction that it took."""
        connection = self._connected()
        attempt = Attempt(Transaction(self.name, f"library {plan.kind}", self._clock()), self._deltas, self._clock)
        attempt.note("begin")
        try:
            kind = TransactionKind.READ if plan.kind == "reader" else TransactionKind.WRITE
            self._number += 1  # every other one as statements do it
            with_lock = self._number % 2 == 0
            transaction = connection.begin(kind, lock_timeout_ms=LOCK_TIMEOUT_MS, with_lock=with_lock)
        except HiveAcidError as error:
            attempt.note(f"given-up({error})")
            attempt.transaction.outcome = Outcome.ABORTED
            time.sleep(CONNECT_PAUSE_S)
        else:
            if not with_lock:
                self._has_snapshot(transaction, attempt)
            self._carry_out(plan, transaction, attempt)
        attempt.transaction.ended = self._clock()
        return [attempt.transaction]

    def close(self) -> None:
        """Stop the heartbeats."""
        if self._connection is not None:
            self._connection.close()

    def _connected(self) -> Connection:
        for _ in range(MOST_CONNECTS):
            if self._connection is not None:
                return self._connection
            try:
                self._connection = connect(self._uri, user="isolation")
            except (MetastoreUnreachableError, MetastoreInternalError):
                time.sleep(CONNECT_PAUSE_S)
        raise RuntimeError(f"no metastore at {self._uri}")

    def _carry_out(self, plan: Plan, transaction: LibraryTransaction, attempt: Attempt) -> None:
        try:
            self._write(plan, transaction, attempt)
            if plan.abort:
                transaction.abort()
                attempt.note("given-up(planned)")
                attempt.transaction.outcome = Outcome.ABORTED
                return
        except (TransactionExpiredError, LockTimeoutError, *NO_ANSWER) as error:
            self._give_up(transaction, attempt, error)
            return
        self._commit(plan, transaction, attempt)

    def _give_up(self, transaction: LibraryTransaction, attempt: Attempt, error: HiveAcidError) -> None:
        attempt.note(f"given-up({error})")
        attempt.transaction.outcome = Outcome.ABORTED
        try:
            transaction.abort()
        except HiveAcidError as failure:
            attempt.note(f"abort({failure})")

    def _has_snapshot(self, transaction: LibraryTransaction, attempt: Attempt) -> None:
        attempt.transaction.txn_id = transaction.id
        attempt.transaction.snapshot_at = self._clock()

    def _number_writes(self, plan: Plan, transaction: LibraryTransaction, attempt: Attempt) -> None:
        for table in plan.tables:
            attempt.note(f"write_id {table}")
            attempt.keep_write_id(table, transaction.write_id(DATABASE, table))

    def _lock(
        self, plan: Plan, transaction: LibraryTransaction, attempt: Attempt, components: Sequence[object]
    ) -> None:
        """Locks behind the snapshot and the write ids, or all of it at once."""
        if transaction.is_opened:
            self._number_writes(plan, transaction, attempt)
            attempt.note("lock")
            transaction.lock(*components)
            return
        attempt.note("begin with locks")
        if components:
            transaction.lock(*components, writes=plan.kind != "reader")
        self._has_snapshot(transaction, attempt)
        for table in sorted({key.table for key in (*plan.reads, *plan.writes)}):
            if table not in self._table_ids:
                self._table_ids[table] = self._connected().table(DATABASE, table).id
            transaction.uses(DATABASE, table, self._table_ids[table])
        self._number_writes(plan, transaction, attempt)

    def _write(self, plan: Plan, transaction: LibraryTransaction, attempt: Attempt) -> None:
        components = [read_component(DATABASE, table) for table in sorted({key.table for key in plan.reads})]
        if plan.kind == "rows":
            transaction.changed = ChangedLists(self._deltas, plan.writes, looks=self._looks)
            components += [write_component(DATABASE, table, Operation.UPDATE) for table in plan.tables]
        elif plan.kind == "dynamic":
            components.append(write_component(DATABASE, plan.tables[0], Operation.UPDATE, dynamic=True))
        else:
            operation = Operation.INSERT if plan.kind == "insert" else Operation.UPDATE
            components += [
                write_component(DATABASE, key.table, operation, partition=key.partition) for key in plan.writes
            ]
        self._lock(plan, transaction, attempt, components)
        for key in (*plan.reads, *plan.writes):
            if plan.kind != "insert":
                attempt.read(key, transaction.write_ids(DATABASE, key.table), transaction.snapshot)
        for _ in range(plan.rounds):
            time.sleep(LINGERING_ROUND_S)
            for key in (*plan.reads, *plan.writes):
                attempt.read(key, transaction.write_ids(DATABASE, key.table), transaction.snapshot)
        if plan.pauses_early:
            plan.pause()
        if plan.writes:
            transaction.check_alive()
        for statement in range(2 if plan.twice else 1):
            for key in plan.writes:
                if plan.kind == "insert":
                    attempt.insert(key)
                else:
                    attempt.append(key, statement)
        for key in plan.reads:
            attempt.read(key, transaction.write_ids(DATABASE, key.table), transaction.snapshot)
            attempt.read_rows(key, transaction.write_ids(DATABASE, key.table), transaction.snapshot)
        if plan.kind == "dynamic":
            attempt.note("add_dynamic_partitions")
            names = [key.partition for key in plan.writes]
            transaction.add_dynamic_partitions(DATABASE, plan.tables[0], names, Operation.UPDATE)
        if not plan.pauses_early:
            plan.pause()

    def _commit(self, plan: Plan, transaction: LibraryTransaction, attempt: Attempt) -> None:
        attempt.transaction.committing = self._clock()
        attempt.note("commit")
        try:
            transaction.commit()
            attempt.transaction.outcome = Outcome.COMMITTED
        except (WriteConflictError, TransactionExpiredError) as error:
            attempt.note(f"ended({error})")
            attempt.transaction.outcome = Outcome.ABORTED
        except NO_ANSWER as error:
            attempt.note(f"unknown({error})")
            self._settle(transaction, attempt)
        if attempt.transaction.outcome is Outcome.COMMITTED:
            for key in plan.writes:
                self._keyspace.appended(key)

    def _settle(self, transaction: LibraryTransaction, attempt: Attempt) -> None:
        request = ttypes.CommitTxnRequest(txnid=transaction.id, exclWriteEnabled=False)
        try:
            self.caller.call("commit_txn", request)
            attempt.transaction.outcome = Outcome.COMMITTED
        except ttypes.TxnAbortedException:
            attempt.transaction.outcome = Outcome.ABORTED
        except ttypes.NoSuchTxnException as error:
            attempt.note(f"unknown({error.message})")
