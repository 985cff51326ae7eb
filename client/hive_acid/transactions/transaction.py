"""A transaction as its client lives it: snapshot, locks, write ids, and one end on every path.

Order matters (transactions.md §3.9): the snapshot is taken before a write id is allocated, so the write id is larger
than that of every row the transaction can see, and its deletes apply to them in every reader.

Its life is in `life`, what it reads in `reads`, what it writes in `writes`; here are the locks for which it waits.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from hive_acid.errors import (
    AccessDeniedError,
    HiveAcidError,
    LockTimeoutError,
    NoSuchTxnError,
    SnapshotOutdatedError,
    TxnAbortedError,
    UnknownMethodError,
    WriteConflictError,
)
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.ids import WriteId
from hive_acid.protocol import Question
from hive_acid.transactions import own_thread
from hive_acid.transactions.beginning import begin, denied, valid_write_ids
from hive_acid.transactions.changed_rows import Since
from hive_acid.transactions.locks import alone_with_rows, holder_of, holders_of, users_of
from hive_acid.transactions.states import Isolation, TransactionState
from hive_acid.transactions.writes import WritingTransaction
from hive_acid.wire import table_name, ttypes

LOG = logging.getLogger(__name__)
CHECK_LOCK_PAUSE_S = 0.05
_FIRST_WORD_S = 1.0
"""So long a lock is waited for before the log says for whom; then after twice the time each."""
_LOOKS_FOR_OWN_EVERY_S = 1.0
"""So often who waits for a lock looks whether a block of its own thread is in the way."""
_LONGEST_PAUSE_S = 0.5
_MOST_CHECKS = 20
"""So often a commit looks whether others have changed other rows, before it is a conflict."""
_CHANGES = (ttypes.DataOperationType.UPDATE, ttypes.DataOperationType.DELETE)
_WRITES = (*_CHANGES, ttypes.DataOperationType.INSERT)
AGENT_INFO = "hive-acid"
"""How the name begins by which the metastore knows us, where the user has given no name; then comes the program."""


class _Answers(NamedTuple):
    """What a first look at locks has brought."""

    lock: Any
    behind: Any = None
    outdated: Any = None
    """The answer for `_refuse_outdated`; None if it is to ask."""
    has_begun: bool = False
    """Whether the transaction was opened by it: its snapshot is then of behind locks that it has got."""


class Transaction(WritingTransaction):
    """An open transaction; make one with `Connection.begin`, use it as a context manager.

    Leaving the ``with`` block commits, or aborts when an error leaves it. Its methods raise TransactionClosedError
    after its end, TransactionExpiredError when the metastore gave it up for want of heartbeats, and OtherProcessError
    in a child that was forked after its beginning: there it neither commits nor aborts.
    """

    def lock(self, *components: Any, behind: Question | None = None, writes: bool = False) -> Any:
        """Take locks, all or none; waits while others hold them.

        What is asked `behind` the lock shares its round trip. Returns the answer, which may be an error of ours; None
        if the lock was waited for, so that it was given before. Who `writes` to the tables is going to ask for its
        write ids, which may come along.

        Raises LockTimeoutError after the transaction's ``lock_timeout_ms``, with nothing left waiting;
        SnapshotInTheWayError at once if a lock against readers would wait for a snapshot of this thread, and
        TransactionInTheWayError if any would for a block of it;
        TableNotNamedError as `write_ids` does, and SnapshotOutdatedError if `may_begin_again` and what is to be changed
        has been changed since the snapshot, be it by who held the lock.
        """
        self.check_open()
        if self.isolation is Isolation.READ_COMMITTED:
            components = tuple(map(alone_with_rows, components))
        for component in components:
            self._check_named(table_name(component.dbname, component.tablename))
        wanted = sorted({table_name(component.dbname, component.tablename) for component in components})
        if any(component.type == ttypes.LockType.EXCLUSIVE for component in components):
            own_thread.refuse_snapshots(self._connection.heartbeats, wanted)
        deadline = time.monotonic() + self._opening.lock_timeout_ms / 1000
        changes = any(component.operationType in _CHANGES for component in components)
        brings_keys = any(component.bringsKeys for component in components)
        asks_outdated = changes and self.may_begin_again
        answers = self._begin(components, behind, writes) or self._first_lock(components, behind, asks_outdated)
        answer, told, outdated, has_begun = answers
        pauses = not has_begun  # the metastore has waited by itself, but where it began a transaction
        begun_at = time.monotonic()
        next_look, next_word = 0.0, begun_at + _FIRST_WORD_S
        while answer.state == ttypes.LockState.WAITING:
            told = outdated = None
            has_begun = False
            if time.monotonic() >= next_look:
                self._refuse_own_blocks(components, wanted, answer.lockid)
                next_look = time.monotonic() + _LOOKS_FOR_OWN_EVERY_S
            if time.monotonic() >= next_word:
                self._tell_of_wait(components[0], answer.lockid, time.monotonic() - begun_at)
                next_word = time.monotonic() + (time.monotonic() - begun_at)
            if time.monotonic() >= deadline:
                holder = holder_of(self._connection, components[0], answer.lockid)
                self._call("unlock", ttypes.UnlockRequest(lockid=answer.lockid))
                raise LockTimeoutError(
                    f"the lock on {', '.join(wanted)} was not free within {self._opening.lock_timeout_ms} ms: {holder} "
                    "(SHOW LOCKS, or `metastore locks`, tells more)"
                )
            if pauses:
                time.sleep(CHECK_LOCK_PAUSE_S)
            pauses = True
            answer = self._call("check_lock", ttypes.CheckLockRequest(lockid=answer.lockid, txnid=self.id))
        if answer.state != ttypes.LockState.ACQUIRED:
            raise LockTimeoutError(answer.errorMessage or "the lock was refused")
        self.locked.update(wanted)
        self.changes_rows |= changes or brings_keys
        if changes and self.may_begin_again:
            self._refuse_outdated(outdated)
        if changes and self.isolation is Isolation.READ_COMMITTED:
            self._see_behind(components, is_behind=has_begun)
        return told

    def _tell_of_wait(self, component: Any, lock_id: int, waited_s: float) -> None:
        holder = holder_of(self._connection, component, lock_id)
        name = table_name(component.dbname, component.tablename)
        LOG.info("transaction %d has waited %.0f s for a lock on %s: %s", self.id, waited_s, name, holder)

    def _see_behind(self, components: Sequence[Any], *, is_behind: bool) -> None:
        """Have the statement see the rows that it has locked as they are now, and will be until the transaction ends.

        Its snapshot may be of behind the lock already.

        Raises SnapshotOutdatedError if it has read some before its lock, and they have changed since: it is to be run
        again, and finds its lock there. Raises WriteConflictError where that is of no use, since the transaction has
        written to the table before others changed it.
        """
        changed = [component for component in components if component.operationType in _CHANGES]
        wanted = {(table_name(one.dbname, one.tablename), one.partitionname) for one in changed}
        new = sorted({name for name, _ in wanted - self._held})
        self._held |= wanted
        if not new or is_behind:
            return
        now = self._committed_by_now()
        for name in new:
            if name in self._kept:
                if self._seen_by(now, name).has_more_than(self.write_ids(*name.split("."))) and (
                    other := self._in_conflict()
                ):
                    raise WriteConflictError(
                        f"{self._conflict_told(other)}. The transaction had written to {name} before that, under a "
                        "smaller write id than the rows have now: change rows first, then add some, or commit between"
                    )
            elif self._read.keys() - self._kept.keys():
                seen = self._seen_by(self.snapshot, name)
                if self._seen_by(now, name).has_more_than(seen):
                    raise SnapshotOutdatedError(
                        f"{name} was changed after transaction {self.id} had read it, and before it had its lock: run "
                        "the statement again"
                    )
        if not self._read.keys() - self._kept.keys():
            self._see(now)

    def _begin(self, components: Sequence[Any], behind: Question | None, writes: bool) -> _Answers | None:
        """Be opened by the call that asks for the first locks; None if it is open, or the metastore has none such."""
        if self.is_opened:
            return None
        self._check_process()
        # What a transaction of READ COMMITTED sees of a table is fixed by its write id.
        may_get = writes and self.isolation is Isolation.SNAPSHOT
        written = {
            table_name(one.dbname, one.tablename) for one in components if may_get and one.operationType in _WRITES
        }
        seen = {table_name(one.dbname, one.tablename) for one in components if not self._opening.only_adds}
        begun = begin(self._connection, self._opening, components, behind, seen=sorted(seen), written=sorted(written))
        if begun is None:
            return None
        self._has_begun(begun)
        return _Answers(begun.lock, begun.behind, None if begun.is_outdated else 0, has_begun=True)

    def _first_lock(self, components: Sequence[Any], behind: Question | None, asks_outdated: bool) -> _Answers:
        """The answers to a lock, and to what is asked with it."""
        request = ttypes.LockRequest(
            component=list(components),
            txnid=self.id,
            user=self._connection.user,
            hostname=socket.gethostname(),
            agentInfo=self._opening.agent_info,
        )
        self._check_process()
        asked = {"behind": behind, "outdated": self._outdated_question() if asks_outdated else None}
        questions = {name: question for name, question in asked.items() if question is not None}
        answer, *answers = self._connection.ask(Question("lock", (request,)), *questions.values())
        if isinstance(answer, (TxnAbortedError, NoSuchTxnError)):
            raise self._ended(answer)
        if isinstance(answer, AccessDeniedError):
            raise denied(answer, answers)
        if isinstance(answer, HiveAcidError):
            raise answer
        return _Answers(answer, **dict(zip(questions, answers, strict=True)))

    def _refuse_own_blocks(self, components: Sequence[Any], tables: Sequence[str], lock_id: int) -> None:
        """Give up a lock that another block of this thread is in the way of."""
        if own := own_thread.other_blocks(self._connection.heartbeats, self.id):
            holders = holders_of(self._connection, components, lock_id)
            if found := [one for one in own if one.id in holders]:
                self._call("unlock", ttypes.UnlockRequest(lockid=lock_id))
                raise own_thread.in_the_way(f"the lock on {', '.join(tables)}", found)

    def refuse_conflict(self) -> None:
        """Raise WriteConflictError, which names who and what, if this transaction cannot commit any more.

        That is so once another one has committed a change of a table or partition that both have changed since this one
        began. Nothing is asked for a transaction that only adds rows.
        """
        if not self.changes_rows or self.state is not TransactionState.OPEN:
            return
        if self.isolation is Isolation.READ_COMMITTED:
            return
        if (other := self._in_conflict()) and (why := self._why_not_apart(())):
            raise WriteConflictError(f"{self._conflict_told(other)} ({why}). Run it again on fresh data")

    def _call_commit(self) -> None:
        """Commit; where others have changed the same partitions, but other rows, these are told with it."""
        checked: list[int] = []
        for _ in range(_MOST_CHECKS if self._commits_by_rows else 0):
            try:
                request = ttypes.HiveAcidCommitRowsRequest(
                    txnid=self.id, checkedTxnIds=checked, keyValue=self._parameter
                )
                others = self._connection.call("hive_acid_commit_rows", request).unchecked
            except UnknownMethodError:  # another metastore
                break
            if not others:
                return
            self._why_conflict = self._why_not_apart(others)
            if self._why_conflict:
                break
            checked += [of.txnid for of in others]
        super()._call_commit()

    @property
    def _commits_by_rows(self) -> bool:
        """Whether its commit may go by the rows that it has changed, and not by their partitions.

        Who replaces a table has changed more than rows.
        """
        return bool(self.changed.tables) and self.isolation is Isolation.SNAPSHOT

    def since(self, database: str, table: str) -> Since:
        """What it sees of a table to which it writes, beside what there is by now, its own rows included."""
        now = self._committed_by_now()
        before = self.write_ids(database, table)
        return Since(self.write_id(database, table), before, self._seen_by(now, table_name(database, table)), now)

    def _why_not_apart(self, others: Sequence[Any]) -> str | None:
        """Why it cannot be told that what has changed since the snapshot are other rows, by the metastore's `others`.

        None if they are.
        """
        if not self._commits_by_rows:
            return "what it does depends on all rows of the partition"
        of_tables: dict[str, list[Any]] = {table: [] for table in self.changed.tables}
        for other in others:
            name = table_name(other.dbname, other.tablename)
            if name not in of_tables:
                return f"{name} was changed"
            of_tables[name].append(other)
        now = self._committed_by_now()
        try:
            for name, of in of_tables.items():
                database, _, table = name.rpartition(".")
                own = self.written_as(database, table)
                if own is None:  # it has found nothing to change
                    continue
                since = Since(own, self.write_ids(database, table), self._seen_by(now, name), now)
                if why := self.changed.why_not_apart(name, since, of):
                    return why
        except OSError as error:
            return f"files cannot be read: {error}"
        return None

    def _conflict_told(self, other: int) -> str:
        """What the metastore says of a conflict with a transaction; no more than that if it is not ours."""
        try:
            answers = self._connection.call("hive_acid_why", ttypes.HiveAcidWhyRequest(txnid=self.id)).answers
        except HiveAcidError:
            answers = []
        told = [answer.message for answer in answers if answer.code == "conflict"]
        return "write conflict: " + (
            "; ".join(told)
            or f"transaction {self.id} cannot commit, since transaction {other} has changed the same data"
        )

    def refuse_own_writes(self, database: str, table: str, among: Collection[WriteId] | None = None) -> None:
        """Raise TransactionInTheWayError if this thread is in a block of another transaction that writes there.

        `among` are the write ids that are in the way, if not all are.
        """
        own_thread.refuse_writes(self._connection.heartbeats, self.id, database, table, among)

    def wait_for_earlier_writes(self, database: str, table: str) -> None:
        """Wait until nobody writes to the table under a smaller write id: a base of this transaction would hide it.

        Not all of them hold locks that are waited for: no INSERT does where the lock is beside readers, and no stream
        for transactions that it has numbered before they begin. Raises LockTimeoutError and TransactionInTheWayError as
        `lock` does, and SnapshotOutdatedError for what it has waited for, and for rows that it does not see and would
        hide: it may be about to write those again that it sees.
        """
        own = self.write_id(database, table)
        deadline = time.monotonic() + self._opening.lock_timeout_ms / 1000
        pause_s = 0.0
        while earlier := _open_before(now := self._writes_now(database, table), own):
            self.refuse_own_writes(database, table, earlier)
            if time.monotonic() >= deadline:
                locked = users_of(self._connection, database, table, self.id)
                raise LockTimeoutError(
                    f"{database}.{table} was not free of earlier writes within {self._opening.lock_timeout_ms} ms: "
                    f"write id {', '.join(map(str, earlier))} is open{locked and ', and locks have '}{locked} (SHOW "
                    "TRANSACTIONS, or `metastore transactions`, tells more)"
                )
            pause_s = min(pause_s + CHECK_LOCK_PAUSE_S, _LONGEST_PAUSE_S)
            time.sleep(pause_s)
        if not self.may_begin_again:
            return
        if pause_s:
            self._refuse_outdated()
        if now.has_more_than(self.write_ids(database, table)):
            raise SnapshotOutdatedError(
                f"{database}.{table} was written to after transaction {self.id} had begun, and before it had its lock: "
                "run it again"
            )

    def _writes_now(self, database: str, table: str) -> ValidWriteIdList:
        answer = self._call("get_open_txns")
        # As nobody's: to this transaction all that began after it is open for ever.
        now = ValidTxnList.from_open_txns(answer.txn_high_water_mark, answer.open_txns, answer.abortedBits)
        name = table_name(database, table)
        request = ttypes.GetValidWriteIdsRequest(fullTableNames=[name], validTxnList=str(now))
        return valid_write_ids(self._call("get_valid_write_ids", request).tblValidWriteIds[0])

    def _outdated_question(self) -> Question:
        return Question("get_latest_txnid_in_conflict", (self.id,))

    def _in_conflict(self, answer: Any = None) -> int:
        """The latest transaction for which this one cannot commit, 0 if there is none or the metastore cannot tell."""
        if answer is None:
            (answer,) = self._connection.ask(self._outdated_question())
        if isinstance(answer, UnknownMethodError):
            return 0
        if isinstance(answer, HiveAcidError):
            raise answer
        return int(answer)

    def _refuse_outdated(self, answer: Any = None) -> None:
        """Find out now, with nothing read, what the commit would say: such as that a rebalance has renamed all rows.

        `answer` is the metastore's, if it has been asked behind the lock.
        """
        if other := self._in_conflict(answer):
            raise SnapshotOutdatedError(
                f"transaction {other} changed the same data before transaction {self.id} had its lock: run it again"
            )


def _open_before(writes: ValidWriteIdList, own: WriteId) -> list[WriteId]:
    return sorted(WriteId(write_id) for write_id in writes.open_ids if write_id < own)
