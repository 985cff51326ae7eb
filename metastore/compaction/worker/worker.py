"""The Worker: takes one compaction at a time from the queue and carries it out (transactions.md §4.6).

The steps, each safe to be killed after:

1. claim            the row is ours; without a transaction it goes back into the queue after a while
2. open, lock       a COMPACTION transaction; killed from here on, its time-out sends the row back into the queue
3. plan             what a snapshot of the transaction shows, see `metastore.compaction.plan`
4. update state     the transaction stays on record, even aborted, until its files are gone
5. run              Spark merges into a hidden staging directory, and tells how far it is
6. check, publish   the complete directories are renamed into place; nobody sees them before the commit
7. mark compacted   and commit: from now on they are read, and the Cleaner may take what they replace
"""

from __future__ import annotations

import logging
import socket
import threading
import time
import uuid
from collections.abc import Callable
from functools import partial

import hive_acid
from hive_acid.errors import HiveAcidError, MetaError
from hive_acid.format.names import staging_name
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.ids import WriteId
from metastore.compaction.config import CompactionConfig
from metastore.compaction.models import Catalogue, Compaction, TableInfo, Weight
from metastore.compaction.plan import CompactionRefusedError, compaction_input, plan_compaction
from metastore.compaction.queue.service import CompactionService, NotInHandError
from metastore.compaction.snapshots import Snapshots
from metastore.compaction.states import CompactionType
from metastore.compaction.worker import overrides
from metastore.compaction.worker.attempt import Attempt, Watch
from metastore.compaction.worker.back_off import USUAL, BackOff, Patience, WritersInTheWayError
from metastore.compaction.worker.executor import CompactionExecutor
from metastore.compaction.worker.job import BackendLostError, CompactionJobError, compaction_job
from metastore.compaction.worker.output import (
    check_output,
    check_tails,
    mark_compacted_base,
    publish_output,
    remove_output,
)
from metastore.compaction.worker.rounds import Look, next_round
from metastore.filework import files
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.service import LockService
from metastore.lock.states import LockAnswer, LockType
from metastore.settings import SettingError
from metastore.txn.models import Intent, TxnOwner
from metastore.txn.service import TxnService
from metastore.txn.states import TxnType

log = logging.getLogger(__name__)

_ABORTED_BY_COMPACTOR = 50006


class CompactionWorker:
    """Carries out compactions, one per `run_once`."""

    def __init__(
        self,
        service: CompactionService,
        txns: TxnService,
        snapshots: Snapshots,
        locks: LockService,
        catalogue: Catalogue,
        executor: CompactionExecutor,
        config: CompactionConfig,
        name: str,
        heartbeat_ms: int,
        pool: str | None = None,
        queue: CompactionService | None = None,
        patience: Patience = USUAL,
    ) -> None:
        """`name` tells this worker from all others; a heartbeat is due every `heartbeat_ms`, well below the timeout.

        `queue`, fenced by the lease on services, is where compactions are claimed; by default `service`. From then on
        the claim and the transaction stand for themselves: a long compaction outlives a change of the leader.
        """
        self._service = service
        self._queue = queue or service
        self._txns = txns
        self._snapshots = snapshots
        self._locks = locks
        self._catalogue = catalogue
        self._executor = executor
        self._config = config
        self._name = name
        self._heartbeat_s = heartbeat_ms / 1000
        self._pool = pool
        self._patience = patience
        self._stopping = threading.Event()
        self._current: Attempt | None = None

    def stop(self) -> None:
        """Give up what is being done and put it back into the queue; `run_once` returns soon, and does nothing more."""
        self._stopping.set()
        attempt = self._current
        if attempt is not None:
            attempt.cancel("the server stops")

    def run_once(self) -> bool:
        """Carry out the next compaction; False if there was none. How it ended is in the history.

        Raises BackendLostError if Spark is not there or died: the compaction is back in the queue.
        """
        if self._stopping.is_set():
            return False
        compaction = self._queue.find_next(self._name, hive_acid.__version__, self._pool)
        if compaction is None:
            return False
        deadline = time.monotonic() + self._config.worker_timeout_ms / 1000
        attempt = self._current = Attempt(compaction, self._name, deadline)
        if self._stopping.is_set():
            attempt.cancel("the server stops")
        log.info("compaction %d: %s of %s", compaction.id, compaction.type.name.lower(), compaction.target)
        try:
            self._compact(attempt)
        except (CompactionRefusedError, SettingError) as error:
            self._undo(attempt, partial(self._service.mark_refused, compaction.id, str(error), self._name))
        except Exception as error:
            self._fail(attempt, error)
            if isinstance(error, BackendLostError) and not attempt.cancelled.is_set():
                raise
        finally:
            self._current = None
        return True

    def _fail(self, attempt: Attempt, error: Exception) -> None:
        """Undo what was done, and decide whether the compaction is worth another attempt."""
        compaction, message = attempt.compaction, _message(error, attempt)
        record: Callable[[], object] = partial(self._service.mark_failed, compaction.id, message, self._name)
        if self._stopping.is_set() and isinstance(error, CompactionJobError):
            record = partial(self._service.release, compaction.id, self._name)
        elif isinstance(error, WritersInTheWayError) or (
            isinstance(error, BackendLostError) and not attempt.cancelled.is_set()
        ):
            record = partial(self._service.retry, compaction.id, self._name, message)
        log.warning("compaction %d of %s failed: %s", compaction.id, compaction.target, message)
        self._undo(attempt, record)

    def _compact(self, attempt: Attempt) -> None:
        compaction = attempt.compaction
        _, attempt.location = self._target(compaction)
        owner = TxnOwner(compaction.run_as or self._config.run_as_user or "hive-acid", self._name, "compactor")
        if compaction.type is CompactionType.REBALANCE:
            self._rebalance(attempt, owner)
            return
        (attempt.txn_id,) = self._txns.open_txns(1, owner, TxnType.COMPACTION)
        with Watch(attempt, self._txns, self._service, self._heartbeat_s):
            self._lock(attempt, owner)
            self._merge(attempt)
        self._mark_compacted(compaction)
        self._txns.commit_txn(attempt.txn_id)

    def _rebalance(self, attempt: Attempt, owner: TxnOwner) -> None:
        """A compaction after which rows have other ids: see `metastore.compaction.worker.back_off`."""
        others = BackOff(attempt, self._txns, self._locks, self._patience)
        others.wait()
        intent = Intent(((attempt.compaction.db, attempt.compaction.table),))  # it may wait for long for its lock
        (attempt.txn_id,) = self._txns.open_txns(1, owner, TxnType.REBALANCE_COMPACTION, intent)
        with Watch(attempt, self._txns, self._service, self._heartbeat_s, others.look):
            others.lock(owner)
            try:
                self._merge(attempt, others.finish)
            except CompactionJobError:
                others.check()
                raise
        self._mark_compacted(attempt.compaction)
        others.commit()

    def _mark_compacted(self, compaction: Compaction) -> None:
        """Once more if the answer is lost: that is no reason to undo all the work."""
        try:
            self._service.mark_compacted(compaction.id, self._name)
        except NotInHandError:
            raise
        except MetaError as error:
            log.warning("compaction %d: mark_compacted is repeated, %s", compaction.id, error)
            self._service.mark_compacted(compaction.id, self._name)

    def _target(self, compaction: Compaction) -> tuple[TableInfo, str]:
        table = self._catalogue.table(compaction.db, compaction.table)
        if table is None:
            raise CompactionRefusedError(f"table {compaction.db}.{compaction.table} does not exist any more")
        if not table.is_transactional:
            raise CompactionRefusedError(f"{compaction.db}.{compaction.table} is not a transactional table")
        if compaction.partition is None:
            is_rebalance = compaction.type is CompactionType.REBALANCE
            if table.partition_keys and (
                is_rebalance or not self._service.has_unnamed_aborts(compaction.db, compaction.table)
            ):
                raise CompactionRefusedError(
                    f"{compaction.db}.{compaction.table} is partitioned: name the partition to compact"
                )
            return table, table.location
        location = self._catalogue.partition(compaction.db, compaction.table, compaction.partition)
        if location is None:
            raise CompactionRefusedError(f"partition {compaction.target} does not exist any more")
        return table, location

    def _definition(self, attempt: Attempt) -> TableInfo:
        """The table, asked for behind the snapshot: what that sees may have columns that were added a moment before.

        An older definition would leave their values out, for good.
        """
        table, location = self._target(attempt.compaction)
        if location != attempt.location:
            raise CompactionRefusedError(f"{attempt.compaction.target} was moved to {location} meanwhile")
        return table

    def _lock(self, attempt: Attempt, owner: TxnOwner) -> None:
        """Keep the table from being dropped or overwritten meanwhile; who does so now has the right of way."""
        compaction = attempt.compaction
        component = LockComponent(LockType.SHARED_READ, compaction.db, compaction.table, compaction.partition)
        result = self._locks.lock(LockRequest((component,), owner, attempt.txn_id, reader_waits=False))
        if result.answer is not LockAnswer.ACQUIRED:
            raise MetaError(result.message or f"{compaction.target} is locked")

    def _merge(self, attempt: Attempt, done: Callable[[], None] = lambda: None) -> None:
        """Merge what there is to merge; with nothing to merge there may still be something for the Cleaner.

        `done` is called when all is written, and nothing in place yet.
        """
        compaction, txn_id = attempt.compaction, attempt.txn_id
        assert txn_id is not None
        txns = self._snapshots.txns(txn_id)
        write_ids = self._snapshots.write_ids(compaction.db, compaction.table, txns)
        table = self._definition(attempt)
        if compaction.partition is None and table.partition_keys:
            # Nothing to merge: the Cleaner looks through all partitions for what aborted transactions have left.
            limit = write_ids.for_compactor().high_water_mark
            self._service.update_state(compaction.id, self._name, txn_id, WriteId(limit))
            return
        this = next_round(
            self._looking(attempt.location, write_ids, txns),
            compaction.type,
            table.kind,
            after=compaction.after_write_id or WriteId(0),
            at_most=overrides.max_deltas(table.parameters, compaction.properties, self._config.max_deltas),
        )
        found = this.found
        plan = plan_compaction(found, this.kind, txn_id, table.kind, buckets=compaction.buckets)
        if plan is None and not found.state.obsolete and not found.state.aborted:
            raise CompactionRefusedError(
                f"nothing to do: {len(found.deltas)} deltas up to write id {found.highest_write_id} of "
                f"{compaction.target} are as compact as a {compaction.type.name.lower()} compaction makes them"
            )
        self._service.update_state(compaction.id, self._name, txn_id, found.highest_write_id, has_more=this.has_more)
        if plan is None:
            return
        attempt.staging = files.join(attempt.location, staging_name(txn_id, uuid.uuid4().hex[:12]))
        attempt.outputs = plan.outputs
        job = compaction_job(
            compaction,
            table,
            attempt.location,
            attempt.staging,
            found,
            plan,
            self._config.compression,
            name=_job_name(compaction),
            queue=overrides.job_queue(table.parameters, compaction.properties) or self._config.job_queue,
            key=self._catalogue.primary_key(compaction.db, compaction.table) if plan.exclusive_write else (),
        )
        result = self._executor.run(job, attempt.cancelled, attempt.report)
        check_output(attempt.staging, plan.outputs, insert_only=plan.insert_only)
        if result.files and not plan.insert_only:
            check_tails(attempt.staging, plan.outputs, result.rows + result.deletes, job.compression)
        if table.is_for_hive_3:
            self._prepare_for_all(attempt, txns)
        done()
        # The last moment to learn that the transaction is lost: later the Cleaner may have forgotten it already.
        self._txns.heartbeat(txn_id)
        if table.is_for_hive_3:
            # Visible to everybody at once, whatever becomes of the transaction: from here on nothing is undone.
            attempt.outputs = ()
        publish_output(attempt.staging, attempt.location, plan.outputs)
        self._service.set_progress(
            compaction.id,
            self._name,
            job_id=attempt.job_id,
            progress={
                "rows": result.rows + result.deletes,
                "files": result.files,
                "bytes_written": result.size_bytes,
                "phase": "done",
            },
            before=Weight(plan.input_files, result.input_bytes),
            after=Weight(result.files, result.size_bytes),
        )
        log.info(
            "compaction %d made %s: %d rows, %d deletes, %d bytes in %.1f s",
            *(
                compaction.id,
                " and ".join(plan.outputs),
                result.rows,
                result.deletes,
                result.size_bytes,
                result.seconds,
            ),
        )

    def _prepare_for_all(self, attempt: Attempt, txns: ValidTxnList) -> None:
        """Make ready a base that every reader will see: wait until nobody has an older snapshot than it shows.

        Such a reader would find the history gone that it needs (acid-format.md §6.6). Raises MetaError if transactions
        that were open when `txns` was taken do not end in time.
        """
        for name in attempt.outputs:
            mark_compacted_base(files.join(attempt.staging, name))
        deadline = time.monotonic() + self._patience.older_snapshots_s
        while older := set(txns.open_ids).intersection(self._snapshots.txns().open_ids):
            if time.monotonic() > deadline or attempt.cancelled.wait(self._patience.pause_s):
                raise MetaError(
                    f"transaction {min(older)} and {len(older) - 1} others are open since before the compaction of "
                    f"{attempt.compaction.target}, which Hive 3.1 reads: it waits until they have ended"
                )

    def _looking(self, location: str, write_ids: ValidWriteIdList, txns: ValidTxnList) -> Look:
        """What the directory holds now, up to any write id."""
        entries = files.list_tree(location)
        return partial(compaction_input, entries, write_ids, txns, lambda path: files.read(files.join(location, path)))

    def _undo(self, attempt: Attempt, record: Callable[[], object]) -> None:
        """Abort, remove what was made, and put the outcome on record; what fails here is made up for by time-outs.

        The abort comes first: if it turns out that the commit, whose answer was lost, has taken effect, the files are
        part of the table.
        """
        try:
            if attempt.txn_id is not None:
                self._txns.abort_txn(attempt.txn_id, _ABORTED_BY_COMPACTOR)
            if attempt.staging and attempt.txn_id is not None:
                remove_output(attempt.staging, attempt.location, attempt.outputs)
                compaction = attempt.compaction
                self._service.aborts_cleaned(
                    compaction.db, compaction.table, compaction.partition, [attempt.txn_id], ()
                )
            record()
        except (HiveAcidError, OSError) as error:
            log.warning("compaction %d: left to its time-out, %s", attempt.compaction.id, error)


def _message(error: Exception, attempt: Attempt) -> str:
    """What the history says of a failure."""
    if attempt.why and isinstance(error, CompactionJobError):
        return attempt.why
    if isinstance(error, (HiveAcidError, CompactionJobError, WritersInTheWayError)):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _job_name(compaction: Compaction) -> str:
    """What the job is called where it runs: ``<host>-compactor-<db>.<table>.<partition>`` (transactions.md §4.6)."""
    place = ".".join(filter(None, (compaction.db, compaction.table, compaction.partition)))
    return f"{socket.gethostname()}-compactor-{place}"
