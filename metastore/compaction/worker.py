"""The Worker: takes one compaction at a time from the queue and carries it out (transactions.md §4.6).

The steps, each safe to be killed after:

1. claim            the row is ours; without a transaction it goes back into the queue after a while
2. open, lock       a COMPACTION transaction; killed from here on, its time-out sends the row back into the queue
3. plan             what a snapshot of the transaction shows, see `metastore.compaction.plan`
4. update state     the transaction stays on record, even aborted, until its files are gone
5. run              Spark merges into a hidden staging directory
6. check, publish   the complete directories are renamed into place; nobody sees them before the commit
7. mark compacted   and commit: from now on they are read, and the Cleaner may take what they replace
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import hive_acid
from hive_acid import files
from hive_acid.errors import HiveAcidError, MetaError
from hive_acid.format.names import staging_name
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.ids import TxnId
from metastore.compaction.config import CompactionConfig
from metastore.compaction.executor import CompactionExecutor
from metastore.compaction.job import CompactionCancelledError, CompactionJobError, compaction_job
from metastore.compaction.models import Catalogue, Compaction, TableInfo
from metastore.compaction.output import check_output, mark_compacted_base, publish_output, remove_output
from metastore.compaction.plan import CompactionInput, CompactionRefusedError, compaction_input, plan_compaction
from metastore.compaction.service import CompactionService
from metastore.compaction.snapshots import Snapshots
from metastore.lock.models import LockComponent, LockRequest
from metastore.lock.service import LockService
from metastore.lock.states import LockAnswer, LockType
from metastore.txn.models import TxnOwner
from metastore.txn.service import TxnService
from metastore.txn.states import TxnType

log = logging.getLogger(__name__)

_ABORTED_BY_COMPACTOR = 50006
_OLDER_SNAPSHOTS_S = 600.0
"""How long the compaction of a table that Hive 3.1 reads waits for readers with older snapshots."""
_PAUSE_S = 0.2


@dataclass
class _Attempt:
    """What has been done so far for a compaction, to be undone if it fails."""

    compaction: Compaction
    location: str = ""
    staging: str = ""
    outputs: tuple[str, ...] = ()
    txn_id: TxnId | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when the transaction is lost or the server stops: nobody wants the result any more."""


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
        self._stopping = threading.Event()
        self._current: _Attempt | None = None

    def stop(self) -> None:
        """Give up what is being done and put it back into the queue; `run_once` returns soon, and does nothing more."""
        self._stopping.set()
        attempt = self._current
        if attempt is not None:
            attempt.cancelled.set()

    def run_once(self) -> bool:
        """Carry out the next compaction; False if there was none. How it ended is in the history."""
        if self._stopping.is_set():
            return False
        compaction = self._queue.find_next(self._name, hive_acid.__version__, self._pool)
        if compaction is None:
            return False
        attempt = self._current = _Attempt(compaction)
        if self._stopping.is_set():
            attempt.cancelled.set()
        log.info("compaction %d: %s of %s", compaction.id, compaction.type.name.lower(), compaction.target)
        try:
            self._compact(attempt)
        except CompactionRefusedError as error:
            self._undo(attempt, partial(self._service.mark_refused, compaction.id, str(error), self._name))
        except Exception as error:
            if self._stopping.is_set() and isinstance(error, CompactionCancelledError):
                self._undo(attempt, partial(self._service.release, compaction.id, self._name))
            else:
                message = _message(error)
                log.warning("compaction %d of %s failed: %s", compaction.id, compaction.target, message)
                self._undo(attempt, partial(self._service.mark_failed, compaction.id, message, self._name))
        finally:
            self._current = None
        return True

    def _compact(self, attempt: _Attempt) -> None:
        compaction = attempt.compaction
        table, attempt.location = self._target(compaction)
        owner = TxnOwner(compaction.run_as or self._config.run_as_user or "hive-acid", self._name, "compactor")
        (attempt.txn_id,) = self._txns.open_txns(1, owner, TxnType.COMPACTION)
        ended = threading.Event()
        heart = threading.Thread(
            target=self._keep_alive, args=(attempt, ended), name="compaction-heartbeat", daemon=True
        )
        heart.start()
        try:
            self._lock(attempt, owner)
            self._merge(attempt, table)
        finally:
            ended.set()
            heart.join()
        self._service.mark_compacted(compaction.id, self._name)
        self._txns.commit_txn(attempt.txn_id)

    def _target(self, compaction: Compaction) -> tuple[TableInfo, str]:
        table = self._catalogue.table(compaction.db, compaction.table)
        if table is None:
            raise CompactionRefusedError(f"table {compaction.db}.{compaction.table} does not exist any more")
        if not table.is_full_acid:
            raise CompactionRefusedError(f"{compaction.db}.{compaction.table} is not a full-ACID table")
        if compaction.partition is None:
            if table.partition_keys:
                raise CompactionRefusedError(
                    f"{compaction.db}.{compaction.table} is partitioned: name the partition to compact"
                )
            return table, table.location
        location = self._catalogue.partition(compaction.db, compaction.table, compaction.partition)
        if location is None:
            raise CompactionRefusedError(f"partition {compaction.target} does not exist any more")
        return table, location

    def _lock(self, attempt: _Attempt, owner: TxnOwner) -> None:
        """Keep the table from being dropped or overwritten meanwhile; who does so now has the right of way."""
        compaction = attempt.compaction
        component = LockComponent(LockType.SHARED_READ, compaction.db, compaction.table, compaction.partition)
        result = self._locks.lock(LockRequest((component,), owner, attempt.txn_id, reader_waits=False))
        if result.answer is not LockAnswer.ACQUIRED:
            raise MetaError(result.message or f"{compaction.target} is locked")

    def _keep_alive(self, attempt: _Attempt, ended: threading.Event) -> None:
        """Heartbeat until the work has ended; one that is refused cancels the work, a lost connection does not."""
        while not ended.wait(self._heartbeat_s):
            try:
                self._txns.heartbeat(attempt.txn_id)
            except MetaError as error:
                log.warning("compaction %d: no heartbeat, %s", attempt.compaction.id, error)
            except HiveAcidError as error:
                log.warning("compaction %d lost its transaction: %s", attempt.compaction.id, error)
                attempt.cancelled.set()
                return

    def _merge(self, attempt: _Attempt, table: TableInfo) -> None:
        """Merge what there is to merge; with nothing to merge there may still be something for the Cleaner."""
        compaction, txn_id = attempt.compaction, attempt.txn_id
        assert txn_id is not None
        txns = self._snapshots.txns(txn_id)
        write_ids = self._snapshots.write_ids(compaction.db, compaction.table, txns)
        found = self._look(attempt.location, write_ids, txns)
        plan = plan_compaction(found, compaction.type, txn_id, hive_3=table.is_for_hive_3)
        if plan is None and not found.state.obsolete and not found.state.aborted:
            raise CompactionRefusedError(
                f"nothing to do: {len(found.deltas)} deltas up to write id {found.highest_write_id} of "
                f"{compaction.target} are as compact as a {compaction.type.name.lower()} compaction makes them"
            )
        self._service.update_state(compaction.id, self._name, txn_id, found.highest_write_id)
        if plan is None:
            return
        attempt.staging = files.join(attempt.location, staging_name(txn_id, uuid.uuid4().hex[:12]))
        attempt.outputs = plan.outputs
        job = compaction_job(
            compaction.id,
            plan.kind,
            attempt.location,
            attempt.staging,
            table.columns,
            found,
            plan,
            self._config.compression,
            table.parameters,
        )
        result = self._executor.run(job, attempt.cancelled)
        check_output(attempt.staging, plan.outputs)
        if table.is_for_hive_3:
            self._prepare_for_all(attempt, txns)
        # The last moment to learn that the transaction is lost: later the Cleaner may have forgotten it already.
        self._txns.heartbeat(txn_id)
        if table.is_for_hive_3:
            # Visible to everybody at once, whatever becomes of the transaction: from here on nothing is undone.
            attempt.outputs = ()
        publish_output(attempt.staging, attempt.location, plan.outputs)
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

    def _prepare_for_all(self, attempt: _Attempt, txns: ValidTxnList) -> None:
        """Make ready a base that every reader will see: wait until nobody has an older snapshot than it shows.

        Such a reader would find the history gone that it needs (acid-format.md §6.6). Raises MetaError if transactions
        that were open when `txns` was taken do not end in time.
        """
        for name in attempt.outputs:
            mark_compacted_base(files.join(attempt.staging, name))
        deadline = time.monotonic() + _OLDER_SNAPSHOTS_S
        while older := set(txns.open_ids).intersection(self._snapshots.txns().open_ids):
            if time.monotonic() > deadline or attempt.cancelled.wait(_PAUSE_S):
                raise MetaError(
                    f"transaction {min(older)} and {len(older) - 1} others are open since before the compaction of "
                    f"{attempt.compaction.target}, which Hive 3.1 reads: it waits until they have ended"
                )

    def _look(self, location: str, write_ids: ValidWriteIdList, txns: ValidTxnList) -> CompactionInput:
        return compaction_input(
            files.list_tree(location), write_ids, txns, lambda path: files.read(files.join(location, path))
        )

    def _undo(self, attempt: _Attempt, record: Callable[[], None]) -> None:
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
            log.warning("compaction %d: left to its time-out, %s", attempt.compaction.id, _message(error))


def _message(error: Exception) -> str:
    """What the history says of a failure."""
    if isinstance(error, CompactionCancelledError):
        return "its transaction was aborted, or timed out"
    if isinstance(error, (HiveAcidError, CompactionJobError)):
        return str(error)
    return f"{type(error).__name__}: {error}"
