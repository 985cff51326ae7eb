"""A client that speaks raw Thrift: what one transaction of each kind asks of the metastore, in Hive's order of calls.

The rules are those of transactions.md §3.9: a snapshot, a write id, a lock, the write ids to read by, the writes, the
commit. An exclusive writer that finds commits since its snapshot takes a new snapshot and write id, or, when one of
them is of a later id than its own, begins again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from hive_acid.format.snapshot import NONE_OPEN, ValidTxnList, ValidWriteIdList
from hive_acid.wire import table_name, ttypes
from tests.isolation.clients.attempt import Attempt
from tests.isolation.clients.caller import Caller
from tests.isolation.clients.plans import LINGERING_ROUND_S, Plan
from tests.isolation.judging.comparison import visible_write_ids
from tests.isolation.judging.deltas import DATABASE, Deltas, Keyspace
from tests.isolation.judging.history import Key, Outcome, Transaction

LOCK_PATIENCE_S = 4.0
MAX_SNAPSHOTS = 5
"""How often an exclusive writer begins again (hive.txn.retrysnapshot.max.count)."""


class GivenUpError(Exception):
    """The transaction aborts by its own will."""


class Session:
    """One client: runs transactions one after the other."""

    def __init__(
        self,
        name: str,
        caller: Caller,
        deltas: Deltas,
        keyspace: Keyspace,
        clock: Callable[[], float],
        names_tables: bool = False,
        **habits: bool,
    ) -> None:
        """`names_tables` to the server before reading them (transactions.md §2.4).

        `habits` are bad ones, rules left out, for tests of the checker.
        """
        self.name = name
        self.caller = caller
        self._deltas = deltas
        self._keyspace = keyspace
        self._clock = clock
        self._names_tables = names_tables
        self._habits = habits
        self._begin("")

    def run(self, plan: Plan) -> list[Transaction]:
        """Carry out a plan; all transactions that it took, the last one with the outcome."""
        done: list[Transaction] = []
        for _ in range(MAX_SNAPSHOTS):
            transaction = self._begin(plan.kind)
            done.append(transaction)
            again = False
            try:
                again = self._carry_out(plan)
            except (ttypes.TxnAbortedException, ttypes.NoSuchTxnException) as error:
                self.note(f"ended({error.message})")
                transaction.outcome = Outcome.ABORTED
            except GivenUpError as error:
                self.note(f"given-up({error})")
                self._abort()
            transaction.ended = self._clock()
            if not again:
                break
        return done

    def close(self) -> None:
        """Close the connection."""
        self.caller.close()

    def _begin(self, kind: str) -> Transaction:
        self._attempt = Attempt(Transaction(self.name, kind, self._clock()), self._deltas, self._clock)
        self._snapshot = ValidTxnList.everything()
        self._visible: dict[str, ValidWriteIdList] = {}
        return self._attempt.transaction

    def note(self, words: str) -> None:
        """Something happened to a call of the present transaction."""
        self._attempt.note(words)

    def _call(self, method: str, *args: Any) -> Any:
        self.note(method)
        return self.caller.call(method, *args)

    # --- one transaction ---------------------------------------------------------------------------

    def _carry_out(self, plan: Plan) -> bool:
        """From open to commit; True if it was aborted to begin again."""
        now = self._attempt
        self._open(ttypes.TxnType.READ_ONLY if plan.kind == "reader" else ttypes.TxnType.DEFAULT)
        self._take_snapshot()
        for table in plan.tables:
            self._allocate(table)
        self._lock(plan)
        if plan.kind == "exclusive" and not self._habits.get("ignores_conflicts"):
            latest = self._call("get_latest_txnid_in_conflict", now.transaction.txn_id)
            if latest > now.transaction.txn_id:
                self._abort()
                return True
            if latest:
                self._take_snapshot()
                for table in plan.tables:
                    self._reallocate(table)
        if self._names_tables:
            self._name_tables({key.table for key in (*plan.reads, *plan.writes)})
        if plan.kind != "insert":
            self._read_again((*plan.reads, *plan.writes), with_rows=plan.kind == "reader")
        for _ in range(plan.rounds):
            time.sleep(LINGERING_ROUND_S)
            self._call("heartbeat", ttypes.HeartbeatRequest(txnid=now.transaction.txn_id))
            self._read_again((*plan.reads, *plan.writes))
        if plan.pauses_early:
            self._pause(plan)
        if plan.writes:
            # Who has been aborted meanwhile must not write: the Cleaner may have been there already.
            self._call("heartbeat", ttypes.HeartbeatRequest(txnid=now.transaction.txn_id))
        if plan.kind == "insert":
            for key in plan.writes:
                now.insert(key)
        else:
            for statement in range(2 if plan.twice else 1):
                for key in plan.writes:
                    now.append(key, statement)
        self._read_again((*plan.reads, *(plan.writes if plan.twice else ())), with_rows=plan.kind == "reader")
        if plan.kind == "dynamic":
            self._name_partitions(plan.writes)
        if not plan.pauses_early:
            self._pause(plan)
        if plan.abort:
            raise GivenUpError("planned")
        self._commit(skip_check=plan.kind == "exclusive" or self._habits.get("skips_check", False))
        for key in plan.writes:
            self._keyspace.appended(key)
        return False

    def _pause(self, plan: Plan) -> None:
        if plan.pause_s:
            self.note(f"pauses({plan.pause_s:.2f}s)")
            plan.pause()

    def _open(self, txn_type: int) -> None:
        request = ttypes.OpenTxnRequest(num_txns=1, user="isolation", hostname=self.name, txn_type=txn_type)
        self._attempt.transaction.txn_id = self._call("open_txns", request).txn_ids[0]

    def _take_snapshot(self) -> None:
        answer = self._call("get_open_txns")
        self._snapshot = ValidTxnList.from_open_txns(
            answer.txn_high_water_mark,
            answer.open_txns,
            answer.abortedBits or b"",
            own_txn_id=self._attempt.transaction.txn_id,
        )
        self._visible.clear()
        self._attempt.transaction.snapshot_at = self._clock()

    def _allocate(self, table: str) -> None:
        request = ttypes.AllocateTableWriteIdsRequest(
            dbName=DATABASE, tableName=table, txnIds=[self._attempt.transaction.txn_id]
        )
        self._keep_write_id(table, self._call("allocate_table_write_ids", request))

    def _reallocate(self, table: str) -> None:
        """A new write id in place of the one we have: asked for once, since a repetition gives yet another one."""
        request = ttypes.AllocateTableWriteIdsRequest(
            dbName=DATABASE, tableName=table, txnIds=[self._attempt.transaction.txn_id], reallocate=True
        )
        self.note("reallocate")
        try:
            answer = self.caller.attempt("allocate_table_write_ids", request)
        except (ttypes.TxnAbortedException, ttypes.NoSuchTxnException):
            raise
        except Exception as error:
            raise GivenUpError(f"new write id: {error}") from error
        self._keep_write_id(table, answer)

    def _keep_write_id(self, table: str, answer: Any) -> None:
        self._attempt.keep_write_id(table, answer.txnToWriteIds[0].writeId)

    def _lock(self, plan: Plan) -> None:
        components = [
            _component(key.table, None, ttypes.LockType.SHARED_READ, ttypes.DataOperationType.SELECT)
            for key in {key.table: key for key in plan.reads}.values()
        ]
        update = ttypes.DataOperationType.UPDATE
        if plan.kind == "insert":
            insert = ttypes.DataOperationType.INSERT
            components += [
                _component(key.table, key.partition, ttypes.LockType.SHARED_READ, insert) for key in plan.writes
            ]
        elif plan.kind == "dynamic":
            components.append(_component(plan.writes[0].table, None, ttypes.LockType.SHARED_WRITE, update))
            components[-1].isDynamicPartitionWrite = True
        else:
            kind = ttypes.LockType.EXCL_WRITE if plan.kind == "exclusive" else ttypes.LockType.SHARED_WRITE
            if self._habits.get("ignores_conflicts"):
                kind = ttypes.LockType.SHARED_WRITE
            components += [_component(key.table, key.partition, kind, update) for key in plan.writes]
        txn_id = self._attempt.transaction.txn_id
        request = ttypes.LockRequest(component=components, txnid=txn_id, user="isolation", hostname=self.name)
        answer = self._call("lock", request)
        deadline = self._clock() + LOCK_PATIENCE_S
        while answer.state == ttypes.LockState.WAITING:
            if self._clock() > deadline:
                raise GivenUpError("lock not free")
            time.sleep(0.005)
            try:
                answer = self._call("check_lock", ttypes.CheckLockRequest(lockid=answer.lockid, txnid=txn_id))
            except ttypes.NoSuchLockException:
                raise GivenUpError("lock gone") from None
        if answer.state != ttypes.LockState.ACQUIRED:
            raise GivenUpError(f"lock state {answer.state}")

    def _name_tables(self, tables: set[str]) -> None:
        """Say how far back we may read: the lowest open write id of each table, or the next one to come."""
        lowest: dict[str, int] = {}
        for table in sorted(tables):
            visible = visible_write_ids(self.caller, table, str(self._snapshot))
            lowest[table_name(DATABASE, table)] = min(visible.min_open, visible.high_water_mark + 1)
        self._call("add_write_ids_to_min_history", self._attempt.transaction.txn_id, lowest)

    def _read(self, key: Key) -> None:
        if key.table not in self._visible or self._habits.get("takes_no_snapshot"):
            snapshot = None if self._habits.get("takes_no_snapshot") else str(self._snapshot)
            self.note("get_valid_write_ids")
            self._visible[key.table] = visible_write_ids(self.caller, key.table, snapshot)
        if self._habits.get("reads_everything"):
            self._visible[key.table] = ValidWriteIdList(table_name(DATABASE, key.table), NONE_OPEN)
        self._attempt.read(key, self._visible[key.table], self._snapshot)

    def _read_again(self, keys: tuple[Key, ...], with_rows: bool = False) -> None:
        """Ask for the write ids once more: the same snapshot has to give the same answer for as long as it is used."""
        self._visible.clear()
        for key in keys:
            self._read(key)
            if with_rows:
                self._attempt.read_rows(key, self._visible[key.table], self._snapshot)

    def _name_partitions(self, keys: tuple[Key, ...]) -> None:
        table = keys[0].table
        request = ttypes.AddDynamicPartitions(
            txnid=self._attempt.transaction.txn_id,
            writeid=self._attempt.write_ids[table],
            dbname=DATABASE,
            tablename=table,
            partitionnames=[key.partition for key in keys],
            operationType=ttypes.DataOperationType.UPDATE,
        )
        self._call("add_dynamic_partitions", request)

    def _commit(self, skip_check: bool) -> None:
        transaction = self._attempt.transaction
        transaction.committing = self._clock()
        lost = self.caller.lost
        request = ttypes.CommitTxnRequest(txnid=transaction.txn_id, exclWriteEnabled=skip_check)
        try:
            self._call("commit_txn", request)
        except ttypes.NoSuchTxnException as error:
            if self.caller.lost == lost:
                raise
            self.note(f"unknown({error.message})")
            return
        transaction.outcome = Outcome.COMMITTED

    def _abort(self) -> None:
        transaction = self._attempt.transaction
        transaction.outcome = Outcome.ABORTED
        try:
            self._call("abort_txn", ttypes.AbortTxnRequest(txnid=transaction.txn_id))
        except ttypes.NoSuchTxnException as error:
            self.note(f"gone({error.message})")


def _component(table: str, partition: str | None, kind: int, operation: int) -> Any:
    return ttypes.LockComponent(
        type=kind,
        level=ttypes.LockLevel.PARTITION if partition else ttypes.LockLevel.TABLE,
        dbname=DATABASE,
        tablename=table,
        partitionname=partition,
        operationType=operation,
        isTransactional=True,
    )
