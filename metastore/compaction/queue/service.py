"""The queue and the history of compactions; each verb a single round trip to the database (transactions.md §4)."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from hive_acid.errors import MetaError, NoSuchCompactionError
from hive_acid.format.snapshot import ValidWriteIdList
from hive_acid.ids import CompactionId, TxnId, WriteId
from hive_acid.wire import table_name
from metastore.compaction.config import CompactionConfig
from metastore.compaction.models import (
    AbortedCompaction,
    Compaction,
    CompactionAnswer,
    CompactionRequest,
    Weight,
)
from metastore.compaction.queue.decisions import Decider, Decision, Decisions, Look
from metastore.compaction.queue.looks import Looks
from metastore.compaction.queue.order import parse_order
from metastore.compaction.queue.waiting import Waiting
from metastore.compaction.states import CompactionState, CompactionType
from metastore.store.leases import Calls
from metastore.txn.names import stored_name, stored_partition
from metastore.txn.service import refuse

_MOST_SHOWN = 10_000
_MOST_PURGES = 1000
"""Batches in which the history is shortened in one run."""


class NotInHandError(MetaError):
    """The compaction is not in the state that a verb needs, or not with the worker that asks."""


class CompactionService:
    """Compactions waiting, under way, waiting for the Cleaner, and ended."""

    def __init__(self, db: Calls, config: CompactionConfig, queued: Callable[[], None] = lambda: None) -> None:
        """`db` is fenced by the lease for what background services do, and plain for what clients ask for. `queued` is
        called when there is something new for workers; it must not take long.
        """
        self._db = db
        self._queued = queued
        self._config = config
        self._decisions = Decisions(db)
        self.looks = Looks(db, config)
        """What the Initiator finds to look at, and counts."""

    # --- asking for compactions --------------------------------------------------------------------

    def compact(self, request: CompactionRequest) -> CompactionAnswer:
        """Queue a compaction, unless one of the same table or partition is in its way (transactions.md §4.2)."""
        row = self._db.call_one(
            "compact",
            request.type.value,
            stored_name(request.db),
            stored_name(request.table),
            stored_partition(request.partition) if request.partition else None,
            request.pool or None,
            json.dumps(dict(request.properties)),
            request.order_by,
            request.buckets,
            request.run_as,
            request.initiator,
            request.initiator_version,
            request.head_start_s,
            request.after or None,
            request.reason,
        )
        assert row is not None
        answer = CompactionAnswer(CompactionId(row[0]), CompactionState(row[1]), row[2])
        if answer.accepted:
            self._queued()
        return answer

    def abort(self, ids: Sequence[CompactionId]) -> list[AbortedCompaction]:
        """Take compactions that still wait out of the queue. Raises NoSuchCompactionError for an empty list."""
        if not ids:
            raise NoSuchCompactionError("the list of compactions to abort is empty")
        rows = self._db.call("abort_compactions", list(ids))
        return [AbortedCompaction(row[0], CompactionState(row[1]) if row[1] else None, row[2]) for row in rows]

    def show(
        self,
        *,
        compaction_id: CompactionId | None = None,
        db: str | None = None,
        table: str | None = None,
        partition: str | None = None,
        state: CompactionState | None = None,
        type: CompactionType | None = None,  # noqa: A002 - the field's own word
        pool: str | None = None,
        order: str | None = None,
        limit: int | None = None,
    ) -> list[Compaction]:
        """Queue and history, waiting ones first and then the latest, at most 10,000.

        `order` are columns in the words of the wire with commas between, each with ``desc`` behind it if wanted. Raises
        MetaError for others. The pool ``default`` is that of those without one.
        """
        return self._compactions(
            "show_compact",
            compaction_id,
            stored_name(db) if db else None,
            stored_name(table) if table else None,
            stored_partition(partition) if partition else None,
            state.value if state else None,
            type.value if type else None,
            pool,
            parse_order(order) if order else None,
            min(limit, _MOST_SHOWN) if limit and limit > 0 else _MOST_SHOWN,
        )

    def get(self, compaction_id: CompactionId) -> Compaction:
        """One compaction. Raises NoSuchCompactionError."""
        found = self.show(compaction_id=compaction_id)
        if not found:
            raise NoSuchCompactionError(f"there is no compaction {compaction_id}")
        return found[0]

    def latest_committed(
        self, db: str, table: str, partitions: Collection[str] | None = None, after: CompactionId | None = None
    ) -> list[Compaction]:
        """The newest finished compaction of a table, or of each of its partitions."""
        names = [stored_partition(name) for name in partitions] if partitions else None
        return self._compactions("latest_committed_compactions", stored_name(db), stored_name(table), names, after)

    def decisions(self, db: str, table: str, partition: str | None = None) -> list[Decision]:
        """What the services last decided of a table and its partitions, and why; see `Decisions`."""
        return self._decisions.of(db, table, partition)

    def set_decisions(self, looks: Collection[Look], service: Decider) -> int:
        """Put down what a service decided, in one round trip; how many decisions had changed."""
        return self._decisions.set(looks, service)

    # --- the Initiator's verbs ---------------------------------------------------------------------

    def did_not_initiate(
        self, request: CompactionRequest, message: str, last_id: CompactionId | None = None
    ) -> CompactionId:
        """Put on record why a compaction was not queued; with the newest entry of the history that is known (0 if there
        is none) only once, however often it is said.
        """
        row = self._db.call_one(
            "did_not_initiate",
            request.type.value,
            stored_name(request.db),
            stored_name(request.table),
            stored_partition(request.partition) if request.partition else None,
            request.initiator,
            message,
            last_id,
        )
        assert row is not None
        return CompactionId(row[0])

    # --- a worker's verbs --------------------------------------------------------------------------

    def find_next(self, worker: str, version: str | None = None, pool: str | None = None) -> Compaction | None:
        """Give the oldest waiting compaction to a worker; None if there is nothing to do."""
        found = self._compactions(
            "find_next_compact", worker, version, pool or None, self._config.worker_pool_timeout_ms
        )
        return found[0] if found else None

    def has_unnamed_aborts(self, db: str, table: str) -> bool:
        """Whether aborted transactions are on record that have written to a table without naming its partitions."""
        return self._db.call_one("has_unnamed_aborts", db, table) == (True,)

    def update_state(
        self,
        compaction_id: CompactionId,
        worker: str | None,
        txn_id: TxnId,
        highest_write_id: WriteId,
        run_as: str | None = None,
        *,
        has_more: bool = False,
    ) -> None:
        """Say in which transaction a compaction runs, before its first file is written.

        With `has_more` the commit of that transaction queues another round, for what lies beyond the write id.

        Raises MetaError if it is not the worker's any more, as the other verbs of a worker do; TxnAbortedError, or
        NoSuchTxnError for a transaction that is committed or unknown.
        """
        row = self._db.call_one(
            "update_compactor_state", compaction_id, worker, txn_id, highest_write_id, run_as, has_more
        )
        assert row is not None
        refuse(row[0], txn_id)
        if row[0] == "lost":
            raise self._not_in_hand("update_compactor_state", compaction_id)

    def set_job_id(self, compaction_id: CompactionId, job_id: str) -> None:
        """Note the job that does the work."""
        self._verb("set_hadoop_jobid", compaction_id, job_id)

    def set_progress(
        self,
        compaction_id: CompactionId,
        worker: str,
        *,
        job_id: str | None = None,
        progress: Mapping[str, Any] | None = None,
        before: Weight | None = None,
        after: Weight | None = None,
    ) -> None:
        """Note how far the work is: what it replaces, and what it has made; what is None stays as it was."""
        told = json.dumps(dict(progress)) if progress is not None else None
        self._verb(
            "set_progress", compaction_id, worker, job_id, told, *(before or (None,) * 2), *(after or (None,) * 2)
        )

    def mark_compacted(self, compaction_id: CompactionId, worker: str | None = None) -> None:
        """The output is in place; the commit of the transaction is to follow. May be repeated."""
        self._verb("mark_compacted", compaction_id, worker)

    def mark_failed(self, compaction_id: CompactionId, message: str, worker: str | None = None) -> None:
        """It failed, and left nothing that counts."""
        self._verb("mark_failed", compaction_id, worker, message)

    def mark_refused(self, compaction_id: CompactionId, message: str, worker: str | None = None) -> None:
        """It is not possible, or there is nothing to do."""
        self._verb("mark_refused", compaction_id, worker, message)

    def release(self, compaction_id: CompactionId, worker: str) -> None:
        """Put it back into the queue: the worker stops."""
        self._verb("release_compaction", compaction_id, worker)

    def retry(self, compaction_id: CompactionId, worker: str, message: str) -> CompactionState:
        """Put it back into the queue, since the attempt failed through no fault of its own; FAILED if it was the last.

        Raises MetaError if it is not the worker's any more.
        """
        row = self._db.call_one("retry_compaction", compaction_id, worker, message, self._config.max_attempts)
        if row is None:
            raise self._not_in_hand("retry_compaction", compaction_id)
        return CompactionState(row[0])

    def requeue(self) -> list[tuple[CompactionId, CompactionState]]:
        """Take compactions away from workers that are gone; what became of each."""
        rows = self._db.call(
            "requeue_compactions",
            self._config.worker_timeout_ms,
            self._config.claim_timeout_ms,
            self._config.max_attempts,
        )
        found = [(CompactionId(compaction_id), CompactionState(state)) for compaction_id, state in rows]
        if any(state is CompactionState.INITIATED for _, state in found):
            self._queued()
        return found

    # --- the Cleaner's verbs -----------------------------------------------------------------------

    def submit_for_cleanup(self, request: CompactionRequest, highest_write_id: WriteId, txn_id: TxnId) -> None:
        """Let the Cleaner remove what a transaction makes superfluous, once it has committed.

        With a property ``location`` that is the directory, of a dropped table or partition; without one, what a
        compaction up to the write id would replace. Raises TxnAbortedError, NoSuchTxnError if the transaction is
        committed or unknown, MetaError if it is of another type than SOFT_DELETE or the compactions'.
        """
        row = self._db.call_one(
            "submit_for_cleanup",
            request.type.value,
            stored_name(request.db),
            stored_name(request.table),
            stored_partition(request.partition) if request.partition else None,
            json.dumps(dict(request.properties)),
            request.run_as,
            request.initiator,
            request.initiator_version,
            highest_write_id,
            txn_id,
        )
        assert row is not None
        refuse(row[0], txn_id)
        if row[0] == "wrong_type":
            raise MetaError(f"transaction {txn_id} cannot hand anything to the Cleaner: open it as SOFT_DELETE")

    def to_clean(self) -> list[Compaction]:
        """Compactions whose replaced files nobody needs any more."""
        return self._compactions("clean_candidates", self._retention_ms, self._config.fetch_size)

    def waiting_to_be_cleaned(self) -> list[Waiting]:
        """Tables and partitions in which something waits for the Cleaner, and what is in its way."""
        rows = self._db.call("clean_waiting", self._retention_ms, self._config.fetch_size)
        return [Waiting(*row) for row in rows]

    def note_obstacles(self, reasons: Mapping[CompactionId, str]) -> None:
        """Note with compactions that wait for the Cleaner why they do."""
        if reasons:
            self._db.call("note_clean_obstacles", list(reasons), list(reasons.values()))

    def writes(self, db: str, table: str, horizon: TxnId) -> ValidWriteIdList:
        """All write ids of a table, of transactions up to `horizon`; the aborted ones are complete.

        A reader's list is not good enough for the Cleaner: it may end at the first aborted write.
        """
        row = self._db.call_one("table_writes", db, table, horizon)
        assert row is not None
        return ValidWriteIdList(table_name(db, table), row[0], tuple(row[1]), tuple(row[2]))

    def clean_started(self, compaction_id: CompactionId) -> None:
        """The Cleaner takes it up."""
        self._verb("clean_started", compaction_id)

    def mark_cleaned(self, compaction_id: CompactionId, kept_write_ids: Collection[int] = ()) -> None:
        """The replaced files are gone, and so is the record of the aborted writes but for those that files hold."""
        self._verb("mark_cleaned", compaction_id, list(kept_write_ids))

    def clean_failed(self, compaction: Compaction, message: str) -> CompactionState | None:
        """Cleaning failed and is tried again later; FAILED if this was the last time, None if it is gone.

        It counts once, however often it is said of the same `compaction`, as it was before.
        """
        row = self._db.call_one(
            "clean_failed",
            compaction.id,
            message,
            compaction.cleaner_failures,
            self._config.cleaner_retry_ms,
            self._config.cleaner_max_attempts,
        )
        return CompactionState(row[0]) if row and row[0] else None

    def aborts_to_clean(self) -> list[tuple[str, str, str | None]]:
        """(database, table, partition) that hold files of enough aborted transactions."""
        rows = self._db.call(
            "abort_clean_candidates",
            self._config.aborted_threshold,
            self._config.aborted_age_ms,
            self._config.fetch_size,
        )
        return [(db, table, partition) for db, table, partition in rows]

    def aborts_cleaned(
        self, db: str, table: str, partition: str | None, txn_ids: Collection[int], kept_write_ids: Collection[int]
    ) -> int:
        """The files of these aborted transactions are gone; how many records went with them."""
        row = self._db.call_one("aborts_cleaned", db, table, partition, list(txn_ids), list(kept_write_ids))
        assert row is not None
        return int(row[0])

    def abort_clean_failed(self, db: str, table: str, partition: str | None, message: str) -> None:
        """Cleaning up after aborted transactions failed; the next attempt is later."""
        self._db.call("abort_clean_failed", db, table, partition, message, self._config.cleaner_retry_ms)

    @property
    def history_timeout_ms(self) -> int:
        """How long what came to nothing is remembered at least."""
        return self._config.history_timeout_ms

    def purge_history(self, batch: int = 5000) -> int:
        """Shorten the history, by `batch` entries at a time; how many went."""
        config = self._config
        total = 0
        for _ in range(_MOST_PURGES):
            row = self._db.call_one(
                "purge_compactions",
                config.keep_succeeded,
                # The Initiator judges by the last failures, so as many must stay.
                max(config.keep_failed, config.failed_threshold),
                config.keep_not_initiated,
                config.keep_refused,
                config.history_timeout_ms,
                batch,
            )
            assert row is not None
            total += int(row[0])
            if row[0] < batch:
                break
        return total

    @property
    def _retention_ms(self) -> int:
        return self._config.cleaner_retention_ms if self._config.delayed_cleanup else 0

    def _compactions(self, function: str, *args: object) -> list[Compaction]:
        return [Compaction.from_row(row) for row in self._db.call(function, *args)]

    def _verb(self, function: str, compaction_id: CompactionId, *args: Any) -> None:
        row = self._db.call_one(function, compaction_id, *args)
        if row is None or not row[0]:
            raise self._not_in_hand(function, compaction_id)

    def _not_in_hand(self, function: str, compaction_id: CompactionId) -> NotInHandError:
        found = self.show(compaction_id=compaction_id)
        state = f"is {found[0].state.words}" if found else "is unknown"
        whose = f" with worker {found[0].worker}" if found and found[0].worker else ""
        return NotInHandError(f"{function}: compaction {compaction_id} {state}{whose}")
