"""Why a table is not compacted or cleaned, and what is in the way of a lock or transaction; every answer has an action.

Reasons are those that the services have put down (decisions, reasons and errors of the queue) and what is open now:
nothing is worked out anew that a service has decided. What is in the way of the Cleaner and of locks is found by the
same functions of the database by which they find it.
"""

from __future__ import annotations

from hive_acid.errors import NoSuchCompactionError, NoSuchObjectError
from hive_acid.ids import CompactionId, LockId, TxnId
from metastore.catalog.removal.removals import Removals, WaitingRemoval
from metastore.compaction.config import CompactionConfig
from metastore.compaction.models import Catalogue, Compaction, target_name
from metastore.compaction.queue.decisions import Decider, Decision
from metastore.compaction.queue.service import CompactionService
from metastore.compaction.states import CompactionState
from metastore.store.database import Database
from metastore.txn.config import TxnConfig
from metastore.txn.names import stored_name, stored_partition
from metastore.why.cleaning import CleaningAnswers
from metastore.why.locks import LockAnswers
from metastore.why.models import Answer
from metastore.why.transactions import TransactionAnswers
from metastore.why.words import ago, lasting, ms_of

_LIVE = (CompactionState.INITIATED, CompactionState.WORKING, CompactionState.READY_FOR_CLEANING)
_FAILURES = (CompactionState.FAILED, CompactionState.REFUSED, CompactionState.DID_NOT_INITIATE)
_MOST_SHOWN = 100
"""Compactions of one table that are told of."""


class WhyService:
    """Answers of all kinds; each asks the database a few times and reads directories, so it is not for hot paths."""

    def __init__(
        self,
        db: Database,
        compactions: CompactionService,
        cleaning: CleaningAnswers,
        catalogue: Catalogue,
        removals: Removals,
        config: CompactionConfig,
        txn_config: TxnConfig,
    ) -> None:
        self._db = db
        self._compactions = compactions
        self._cleaning = cleaning
        self._catalogue = catalogue
        self._removals = removals
        self._config = config
        self._locks = LockAnswers(db)
        self._transactions = TransactionAnswers(db, self._locks, cleaning, txn_config)

    def lock(self, lock_id: LockId) -> list[Answer]:
        """What is in the way of a lock. Raises NoSuchObjectError if it is not on record."""
        return self._locks.lock(lock_id)

    def transaction(self, txn_id: TxnId) -> list[Answer]:
        """How a transaction stands: what it waits for, and what waits for it."""
        return self._transactions.transaction(txn_id)

    def compaction(self, compaction_id: CompactionId) -> list[Answer]:
        """How a compaction stands. Raises NoSuchObjectError if it is not on record."""
        try:
            found = self._compactions.get(compaction_id)
        except NoSuchCompactionError as error:
            raise NoSuchObjectError(f"{error}, or the history has forgotten it") from None
        return [*self._of_compaction(found), *_next_round(found)]

    def table(self, db: str, table: str, partition: str | None = None) -> list[Answer]:
        """Why a table, or one partition of it, is not compacted, and why it is not cleaned.

        Of a dropped one, which directories could not be removed yet. Raises NoSuchObjectError for a table or partition
        that there is not.
        """
        db, table = stored_name(db), stored_name(table)
        partition = stored_partition(partition) if partition else None
        info = self._catalogue.table(db, table)
        target = target_name(db, table, partition)
        left = [_of_removal(one) for one in self._removals.waiting(f"{db}.{table}")]
        if info is None and left:
            return left
        if info is None:
            raise NoSuchObjectError(f"there is no table {db}.{table}")
        if partition is not None and self._catalogue.partition(db, table, partition) is None:
            raise NoSuchObjectError(f"{db}.{table} has no partition {partition}")
        if not info.is_transactional:
            convert = f"ALTER TABLE {db}.{table} SET TBLPROPERTIES ('transactional'='true') makes it so"
            plain = Answer(target, "not_transactional", "the table is not transactional: nothing compacts it", convert)
            return [plain, *left]
        found = self._compactions.show(db=db, table=table, partition=partition, limit=_MOST_SHOWN)
        answers = [one for compaction in found if compaction.state in _LIVE for one in self._of_compaction(compaction)]
        answers += self._failures(found)
        decisions = self._compactions.decisions(db, table, partition)
        waiting = {one.partition for one in found if one.state is CompactionState.READY_FOR_CLEANING}
        answers += [
            self._of_decision(db, table, decision)
            for decision in decisions
            # What is in the way of the Cleaner was looked up above, as it is now.
            if not (decision.service is Decider.CLEANER and decision.partition in waiting)
        ]
        answers += self._changed(db, table, target)
        answers += self._switched_off(target)
        answers += left
        return answers or [self._nothing_known(target)]

    # --- compactions -------------------------------------------------------------------------------

    def _of_compaction(self, compaction: Compaction) -> list[Answer]:
        match compaction.state:
            case CompactionState.INITIATED:
                return [self._waiting(compaction)]
            case CompactionState.WORKING:
                return [_working(compaction)]
            case CompactionState.READY_FOR_CLEANING:
                return self._cleaning.of(compaction)
            case _:
                return [_ended(compaction)]

    def _waiting(self, compaction: Compaction) -> Answer:
        row = self._db.call_one("queue_lengths", compaction.pool)
        assert row is not None
        waiting, working, last_taken_ms = row
        pool = f"pool {compaction.pool}" if compaction.pool else "the queue"
        message = (
            f"{compaction.label} waits in {pool} {lasting(ms_of(compaction.enqueued_at))}, with "
            f"{waiting - 1} others; {working} are worked on, the last one was taken up {ago(last_taken_ms)}"
        )
        if last_taken_ms is None:
            message = message.rpartition(",")[0] + ", none was ever taken up"
        if compaction.reason:
            message += f". It was queued because {compaction.reason}"
        if working or (not compaction.pool and self._config.worker_threads):
            code, action = (
                "waiting",
                (
                    "wait, or start more workers: "
                    f"metastore.compactor.worker.threads is {self._config.worker_threads} here"
                ),
            )
        else:
            where = f"of pool {compaction.pool}" if compaction.pool else "without a pool"
            code, action = (
                "no_worker",
                (
                    f"start a worker {where} (metastore.compactor.worker.threads, and "
                    f"hive.compactor.worker.<pool>.threads for pools), or ABORT COMPACTIONS {compaction.id}"
                ),
            )
        return Answer(
            compaction.target, code, message, action, ms_of(compaction.enqueued_at), None, None, compaction.id
        )

    def _failures(self, found: list[Compaction]) -> list[Answer]:
        """The latest failure of each target, unless something better has happened to it since."""
        latest: dict[str | None, Compaction] = {}
        for compaction in found:
            before = latest.get(compaction.partition)
            if before is None or compaction.id > before.id:
                latest[compaction.partition] = compaction
        return [_ended(compaction) for compaction in latest.values() if compaction.state in _FAILURES]

    # --- decisions and settings ---------------------------------------------------------------------

    def _of_decision(self, db: str, table: str, decision: Decision) -> Answer:
        message, semicolon, action = decision.message.rpartition("; ")
        if not semicolon:
            message, action = decision.message, "wait for the next run, or ask for it: ALTER TABLE ... COMPACT"
        if decision.blocker is not None:
            action = f"{action}; `metastore why --txn {decision.blocker}` says more"
        return Answer(
            target_name(db, table, decision.partition),
            decision.code,
            f"the {decision.service.value.capitalize()} says: {message}",
            action,
            decision.at_ms,
            decision.blocker,
        )

    def _changed(self, db: str, table: str, target: str) -> list[Answer]:
        """That settings have changed since the Initiator may have looked."""
        (changed_ms,) = self._db.call_one("settings_changed", db, table, self._config.check_interval_ms) or (None,)
        if changed_ms is None or not self._config.initiator_on:
            return []
        every_s = self._config.check_interval_ms // 1000
        return [
            Answer(
                target,
                "settings_changed",
                f"parameters by which compactions are decided have changed {ago(changed_ms)}: the Initiator may not "
                "have seen that yet",
                f"wait for its next run, which looks at all of it again; it runs every {every_s} s",
                changed_ms,
            )
        ]

    def _switched_off(self, target: str) -> list[Answer]:
        found = []
        if not self._config.initiator_on:
            found.append(("initiator_off", "compactions", "metastore.compactor.initiator.on"))
        if not self._config.cleaner_on:
            found.append(("cleaner_off", "files to remove", "metastore.compactor.cleaner.on"))
        return [
            Answer(target, code, f"this server looks for no {what}", f"set {key}=true, here or on another server")
            for code, what, key in found
        ]

    def _nothing_known(self, target: str) -> Answer:
        every_s = self._config.check_interval_ms // 1000
        return Answer(
            target,
            "not_looked_at",
            "nothing is queued or has failed, and the Initiator has decided nothing about it yet",
            f"wait for the Initiator, which looks every {every_s} s at what was written, or ask for it: "
            "ALTER TABLE ... COMPACT",
        )


def _working(compaction: Compaction) -> Answer:
    done = compaction.progress or {}
    progress = (
        f"{done.get('phase', '?')}, {done.get('rows', 0)} rows, {done.get('files', 0)} files and "
        f"{done.get('bytes_written', 0)} bytes so far"
        if done
        else "nothing reported yet"
    )
    job = f", job {compaction.job_id}" if compaction.job_id else ""
    return Answer(
        compaction.target,
        "compacting",
        f"{compaction.label} is worked on by {compaction.worker} "
        f"{lasting(ms_of(compaction.started_at))} (attempt {compaction.attempts}{job}): {progress}",
        "wait for its end" + (f", or end it: ABORT TRANSACTIONS {compaction.txn_id}" if compaction.txn_id else ""),
        ms_of(compaction.started_at),
        compaction.txn_id,
        None,
        compaction.id,
    )


def _next_round(compaction: Compaction) -> list[Answer]:
    """What goes on where a round has ended."""
    if compaction.next_id is None:
        return []
    return [
        Answer(
            compaction.target,
            "next_round",
            f"{compaction.label} has not merged all deltas (hive.compactor.max.num.delta): compaction "
            f"{compaction.next_id} goes on behind write id {compaction.highest_write_id}",
            f"`metastore why --compaction {compaction.next_id}` says how that stands",
            ms_of(compaction.committed_at),
            compaction_id=compaction.next_id,
        )
    ]


def _ended(compaction: Compaction) -> Answer:
    kind = compaction.label
    why = compaction.error_message or compaction.reason or "no reason was given"
    message, action = {
        CompactionState.FAILED: (f"{kind} failed", "mend what failed and ask again: ALTER TABLE ... COMPACT"),
        CompactionState.REFUSED: (f"{kind} was refused", "nothing, unless the reason is to be mended"),
        CompactionState.DID_NOT_INITIATE: (
            "the Initiator did not queue a compaction",
            "mend the reason, or ask for it all the same: ALTER TABLE ... COMPACT",
        ),
        CompactionState.ABORTED: (f"{kind} was aborted", "ask again: ALTER TABLE ... COMPACT"),
        CompactionState.SUCCEEDED: (f"{kind} has succeeded and is cleaned up", "nothing"),
    }[compaction.state]
    ended_ms = ms_of(compaction.ended_at)
    if compaction.state is not CompactionState.SUCCEEDED:
        message = f"{message} {ago(ended_ms)}: {why}"
    code = compaction.state.name.lower()
    return Answer(compaction.target, code, message, action, ended_ms, None, None, compaction.id)


def _of_removal(removal: WaitingRemoval) -> Answer:
    """What became of the directory of something that was dropped."""
    if removal.takes_back and removal.error is None:
        message = f"a change moves it from {removal.trash} {lasting(removal.noted_ms)}; it goes back if that fails"
        return Answer(removal.location, "removal_waits", message, "nothing, it ends by itself", removal.noted_ms)
    what = "moved back" if removal.takes_back else "moved to the trash" if removal.trash else "removed"
    if removal.error is None:
        message = f"its directory is being {what} {lasting(removal.noted_ms)}"
        return Answer(removal.location, "removal_waits", message, "nothing, it goes by itself", removal.noted_ms)
    message = f"its directory cannot be {what} after {removal.attempts} attempts: {removal.error}"
    action = f"mend that: it is tried again by itself, or metastore removals --forget {removal.id} leaves the directory"
    return Answer(removal.location, "removal_fails", message, action, removal.noted_ms)
