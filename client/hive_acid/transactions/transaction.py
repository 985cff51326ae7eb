"""A transaction as its client lives it: snapshot, locks, write ids, and one end on every path.

Order matters (transactions.md §3.9): the snapshot is taken before a write id is allocated, so the write id is larger
than that of every row the transaction can see, and its deletes apply to them in every reader.
"""

from __future__ import annotations

import enum
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any, Protocol, Self

from hive_acid.errors import (
    HiveAcidError,
    LockTimeoutError,
    MetastoreInternalError,
    MetastoreUnreachableError,
    NoSuchTxnError,
    OtherProcessError,
    SnapshotOutdatedError,
    TableChangedError,
    TableNotNamedError,
    TransactionClosedError,
    TransactionExpiredError,
    TxnAbortedError,
    UnknownMethodError,
    UnsupportedTableError,
    WriteConflictError,
)
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.ids import TxnId, WriteId
from hive_acid.protocol import Question
from hive_acid.transactions import own_thread
from hive_acid.transactions.heartbeats import Heartbeats
from hive_acid.transactions.locks import Operation, holder_of, holders_of, users_of
from hive_acid.transactions.pressure import Pressure
from hive_acid.wire import table_name, ttypes

LOG = logging.getLogger(__name__)
CHECK_LOCK_PAUSE_S = 0.05
_LOOKS_FOR_OWN_EVERY_S = 1.0
"""So often who waits for a lock looks whether a block of its own thread is in the way."""
_LONGEST_PAUSE_S = 0.5
_CHANGES = (ttypes.DataOperationType.UPDATE, ttypes.DataOperationType.DELETE)
AGENT_INFO = "hive-acid"
"""How the name begins by which the metastore knows us, where the user has given no name; then comes the program."""


class TransactionKind(enum.Enum):
    """What the transaction may do; READ takes no write ids and commits without a trace."""

    WRITE = "DEFAULT"
    READ = "READ_ONLY"


class TransactionState(enum.Enum):
    """Where a transaction stands, as far as its client knows."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "of unknown outcome"


class Owner(Protocol):
    """What a transaction needs of the connection that has begun it."""

    user: str
    heartbeats: Heartbeats
    pressure: Pressure

    def call(self, method: str, *args: Any) -> Any: ...

    def ask(self, *questions: Question) -> list[Any]: ...


class Transaction:
    """An open transaction; make one with `Connection.begin`, use it as a context manager.

    Leaving the ``with`` block commits, or aborts when an error leaves it. Its methods raise TransactionClosedError
    after its end, TransactionExpiredError when the metastore gave it up for want of heartbeats, and OtherProcessError
    in a child that was forked after its beginning: there it neither commits nor aborts.
    """

    def __init__(
        self,
        connection: Owner,
        txn_id: TxnId,
        snapshot: ValidTxnList | None,
        kind: TransactionKind,
        lock_timeout_ms: int,
        agent_info: str = AGENT_INFO,
        *,
        tables: Iterable[str] = (),
        may_begin_again: bool = False,
    ) -> None:
        self.id = txn_id
        self.kind = kind
        self.state = TransactionState.OPEN
        self._connection = connection
        self._snapshot = snapshot
        self._lock_timeout_ms = lock_timeout_ms
        self._agent_info = agent_info
        self.tables = frozenset(tables)
        """The tables (``db.table``) that it uses, and no others; empty if it has not said."""
        self.may_begin_again = may_begin_again
        """Whether who runs it runs all of it anew on a SnapshotOutdatedError: then `lock` raises that."""
        self.thread = threading.get_ident()
        """The thread that has begun it."""
        self.is_block = False
        """Whether it ends where that thread leaves a ``with`` block."""
        self._process = os.getpid()
        self._ending = threading.Lock()  # held by who ends it, whose answer is on its way or has come
        self._ender = 0
        self._is_doubtful = False
        self._ends_later = False
        self.locked: set[str] = set()
        """The tables (``db.table``) on which it has locks."""
        self.moved: set[str] = set()
        """The files that have become a table's, and go from their old place with the commit."""
        self._expired: str | None = None
        self._statements = 0
        self._overwritten: dict[str, set[str]] = {}
        self._ids: dict[str, int] = {}
        self._read: dict[str, ValidWriteIdList] = {}
        self._written: dict[str, WriteId] = {}
        self._undo: list[Callable[[], None]] = []
        self._parameter: Any = None
        self._afterwards: list[Callable[[], None]] = []
        self._after_abort: list[Callable[[], None]] = []

    # --- reading -------------------------------------------------------------------------------

    @property
    def snapshot(self) -> ValidTxnList:
        """The transactions whose writes it sees. Raises TransactionClosedError if it was opened to add rows only."""
        if self._snapshot is None:
            raise TransactionClosedError(f"transaction {self.id} was opened to add rows only: it sees none")
        return self._snapshot

    def uses(self, database: str, table: str, table_id: int) -> None:
        """Note which table the transaction means by a name: its snapshot and its write id are of that one.

        Raises TableChangedError if it was another one before.
        """
        name = table_name(database, table)
        if self._ids.setdefault(name, table_id) != table_id:
            raise TableChangedError(
                f"{name} is another table now than at first in transaction {self.id}: it was dropped and created "
                "anew, or another one took its name. Begin another transaction"
            )

    def write_ids(self, database: str, table: str) -> ValidWriteIdList:
        """The table's write ids that this transaction sees; the same at every call, its own write included.

        Raises TableNotNamedError for a table that it has not named, if it has named some: files may be gone that this
        snapshot needs.
        """
        name = table_name(database, table)
        if name not in self._read:
            self.check_open()
            self._check_named(name)
            request = ttypes.GetValidWriteIdsRequest(fullTableNames=[name], validTxnList=str(self.snapshot))
            found = self._call("get_valid_write_ids", request).tblValidWriteIds[0]
            self._read[name] = _valid_write_ids(found)
        return self._read[name]

    def reads_only(self, *tables: str) -> None:
        """Promise the metastore that the transaction uses no table (``db.table``) but these from now on.

        The metastore then cleans all others; until the promise it keeps everything that the snapshot can see
        (transactions.md §2.4). One of before Hive 4 takes no promises, and keeps everything in any case.
        """
        self._check_process()
        lowest = {}
        for name in tables:
            database, _, table = name.rpartition(".")
            found = self.write_ids(database, table)
            some_open = found.open_ids or found.aborted_ids
            lowest[table_name(database, table)] = found.min_open if some_open else found.high_water_mark + 1
        with suppress(UnknownMethodError):
            self._connection.call("add_write_ids_to_min_history", self.id, lowest)
        self.tables = frozenset(lowest)

    def reads_no_more(self) -> None:
        """`reads_only` of the tables read until now, if there are any; if it fails, others are only cleaned later."""
        if self._read and not self.tables:
            try:
                self.reads_only(*self._read)
            except HiveAcidError as error:
                LOG.info("transaction %d holds back the cleaning of all tables until its end: %s", self.id, error)

    def _check_named(self, name: str) -> None:
        if self.tables and name not in self.tables:
            raise TableNotNamedError(
                f"transaction {self.id} was begun for {', '.join(sorted(self.tables))} and may not use {name}, whose "
                "files nobody keeps for it: name all its tables when it begins, acid.transaction(tables=[…]), or none"
            )

    # --- writing -------------------------------------------------------------------------------

    def write_id(self, database: str, table: str) -> WriteId:
        """This transaction's write id for the table, allocated at the first call."""
        name = table_name(database, table)
        if name not in self._written:
            self.allocate_write_ids([self], database, table)
        return self._written[name]

    def written_as(self, database: str, table: str) -> WriteId | None:
        """The write id for the table if it has one, also after the end of the transaction."""
        return self._written.get(table_name(database, table))

    @classmethod
    def allocate_write_ids(cls, transactions: Sequence[Transaction], database: str, table: str) -> None:
        """Allocate the write ids of all `transactions` for one table, in one call."""
        for transaction in transactions:
            transaction.check_open()
        name = table_name(database, table)
        of = {transaction.id: transaction for transaction in transactions}
        request = ttypes.AllocateTableWriteIdsRequest(
            dbName=database.lower(), tableName=table.lower(), txnIds=sorted(of)
        )
        for pair in transactions[0]._call("allocate_table_write_ids", request).txnToWriteIds:
            of[pair.txnId]._written[name] = WriteId(pair.writeId)
            of[pair.txnId]._read.pop(name, None)

    def next_statement_id(self) -> int:
        """0, 1, 2, … within the transaction: rows of a later statement may be deletes of an earlier one's."""
        statement = self._statements
        self._statements += 1
        return statement

    def note_directories(
        self, database: str, table: str, partitions: Iterable[str], *, overwrite: bool = False
    ) -> set[str]:
        """Note that this transaction is about to write to `partitions` ("" is an unpartitioned table's one).

        Returns those that it has overwritten before: their base is to be replaced by the new one. Raises
        UnsupportedTableError for other writes to them, which readers would not see: a base hides all deltas of its
        own write (acid-format.md §2.2).
        """
        noted = self._overwritten.setdefault(table_name(database, table), set())
        again = noted.intersection(partitions)
        if again and not overwrite:
            where = ", ".join(sorted(again)) if again != {""} else "the table"
            raise UnsupportedTableError(
                f"this transaction has overwritten {where} of {database}.{table} already, and what it adds or changes "
                "there now would not be seen: put it into the overwrite, or commit first"
            )
        if overwrite:
            noted.update(partitions)
        return again

    def use_statement_ids(self, first: int, last: int) -> None:
        """The statement that was given `first` has used all up to `last`; it has to be the latest one.

        Raises TransactionClosedError if another one was given an id meanwhile, which would then be used twice.
        """
        if last > first and self._statements != first + 1:
            raise TransactionClosedError(
                f"transaction {self.id} ran two statements at a time, of which one needs several statement ids: run "
                "them one after another"
            )
        self._statements = max(self._statements, last + 1)

    def add_dynamic_partitions(self, database: str, table: str, names: Sequence[str], operation: Operation) -> None:
        """Tell the metastore which partitions a dynamic write has touched; it checks conflicts on them at commit.

        Until it is told, by an empty list if need be, the whole table counts as touched.
        """
        self.check_open()
        self._call(
            "add_dynamic_partitions",
            ttypes.AddDynamicPartitions(
                txnid=self.id,
                writeid=self.write_id(database, table),
                dbname=database,
                tablename=table,
                partitionnames=list(names),
                operationType=getattr(ttypes.DataOperationType, operation.value),
            ),
        )

    def lock(self, *components: Any, behind: Question | None = None) -> Any:
        """Take locks, all or none; waits while others hold them.

        What is asked `behind` the lock shares its round trip. Returns the answer, which may be an error of ours; None
        if the lock was waited for, so that it was given before.

        Raises LockTimeoutError after the transaction's ``lock_timeout_ms``, with nothing left waiting;
        SnapshotInTheWayError at once if a lock against readers would wait for a snapshot of this thread, and
        TransactionInTheWayError if any would for a block of it;
        TableNotNamedError as `write_ids` does, and SnapshotOutdatedError if `may_begin_again` and what is to be changed
        has been changed since the snapshot, be it by who held the lock.
        """
        self.check_open()
        for component in components:
            self._check_named(table_name(component.dbname, component.tablename))
        wanted = sorted({table_name(component.dbname, component.tablename) for component in components})
        if any(component.type == ttypes.LockType.EXCLUSIVE for component in components):
            own_thread.refuse_snapshots(self._connection.heartbeats, wanted)
        deadline = time.monotonic() + self._lock_timeout_ms / 1000
        request = ttypes.LockRequest(
            component=list(components),
            txnid=self.id,
            user=self._connection.user,
            hostname=socket.gethostname(),
            agentInfo=self._agent_info,
        )
        answer, told = self._first_lock(request, behind)
        next_look = 0.0
        while answer.state == ttypes.LockState.WAITING:
            told = None
            if time.monotonic() >= next_look:
                self._refuse_own_blocks(components, wanted, answer.lockid)
                next_look = time.monotonic() + _LOOKS_FOR_OWN_EVERY_S
            if time.monotonic() >= deadline:
                holder = holder_of(self._connection, components[0], answer.lockid)
                self._call("unlock", ttypes.UnlockRequest(lockid=answer.lockid))
                raise LockTimeoutError(
                    f"the lock on {', '.join(wanted)} was not free within {self._lock_timeout_ms} ms: {holder} (SHOW "
                    "LOCKS, or `metastore locks`, tells more)"
                )
            time.sleep(CHECK_LOCK_PAUSE_S)
            answer = self._call("check_lock", ttypes.CheckLockRequest(lockid=answer.lockid, txnid=self.id))
        if answer.state != ttypes.LockState.ACQUIRED:
            raise LockTimeoutError(answer.errorMessage or "the lock was refused")
        self.locked.update(wanted)
        if self.may_begin_again and any(component.operationType in _CHANGES for component in components):
            self._refuse_outdated()
        return told

    def _first_lock(self, request: Any, behind: Question | None) -> tuple[Any, Any]:
        """The answers to a lock and to what is asked behind it, None if nothing is."""
        if behind is None:
            return self._call("lock", request), None
        self._check_process()
        answer, told = self._connection.ask(Question("lock", (request,)), behind)
        if isinstance(answer, (TxnAbortedError, NoSuchTxnError)):
            raise self._ended(answer)
        if isinstance(answer, HiveAcidError):
            raise answer
        return answer, told

    def _refuse_own_blocks(self, components: Sequence[Any], tables: Sequence[str], lock_id: int) -> None:
        """Give up a lock that another block of this thread is in the way of."""
        if own := own_thread.other_blocks(self._connection.heartbeats, self.id):
            holders = holders_of(self._connection, components, lock_id)
            if found := [one for one in own if one.id in holders]:
                self._call("unlock", ttypes.UnlockRequest(lockid=lock_id))
                raise own_thread.in_the_way(f"the lock on {', '.join(tables)}", found)

    def refuse_own_writes(self, database: str, table: str, among: Collection[WriteId] | None = None) -> None:
        """Raise TransactionInTheWayError if this thread is in a block of another transaction that writes there.

        `among` are the write ids that are in the way, if not all are.
        """
        own_thread.refuse_writes(self._connection.heartbeats, self.id, database, table, among)

    def wait_for_earlier_writes(self, database: str, table: str) -> None:
        """Wait until nobody writes to the table under a smaller write id: a base of this transaction would hide it.

        Not all of them hold locks that are waited for: no INSERT does where the lock is beside readers, and no stream
        for transactions that it has numbered before they begin. Raises LockTimeoutError and TransactionInTheWayError as
        `lock` does, and SnapshotOutdatedError for what it has waited for.
        """
        own = self.write_id(database, table)
        deadline = time.monotonic() + self._lock_timeout_ms / 1000
        pause_s = 0.0
        while earlier := self._open_writes(database, table, own):
            self.refuse_own_writes(database, table, earlier)
            if time.monotonic() >= deadline:
                locked = users_of(self._connection, database, table, self.id)
                raise LockTimeoutError(
                    f"{database}.{table} was not free of earlier writes within {self._lock_timeout_ms} ms: write id "
                    f"{', '.join(map(str, earlier))} is open{locked and ', and locks have '}{locked} (SHOW TRANSACTIONS"
                    ", or `metastore transactions`, tells more)"
                )
            pause_s = min(pause_s + CHECK_LOCK_PAUSE_S, _LONGEST_PAUSE_S)
            time.sleep(pause_s)
        if pause_s and self.may_begin_again:
            self._refuse_outdated()

    def _open_writes(self, database: str, table: str, before: WriteId) -> list[WriteId]:
        answer = self._call("get_open_txns")
        # As nobody's: to this transaction all that began after it is open for ever.
        now = ValidTxnList.from_open_txns(answer.txn_high_water_mark, answer.open_txns, answer.abortedBits)
        name = table_name(database, table)
        request = ttypes.GetValidWriteIdsRequest(fullTableNames=[name], validTxnList=str(now))
        found = _valid_write_ids(self._call("get_valid_write_ids", request).tblValidWriteIds[0])
        return sorted(WriteId(write_id) for write_id in found.open_ids if write_id < before)

    def _refuse_outdated(self) -> None:
        """Find out now, with nothing read, what the commit would say: such as that a rebalance has renamed all rows."""
        with suppress(UnknownMethodError):
            if other := self._connection.call("get_latest_txnid_in_conflict", self.id):
                raise SnapshotOutdatedError(
                    f"transaction {other} changed the same data before transaction {self.id} had its lock: run it again"
                )

    def check_alive(self) -> None:
        """Ask the metastore whether the transaction is open still. Raises TransactionExpiredError if not."""
        self.check_open()
        try:
            self.heartbeat()
        except (TxnAbortedError, NoSuchTxnError):
            self.check_open()

    def on_abort(self, undo: Callable[[], None]) -> None:
        """Call `undo` if the transaction aborts, the last given first: it removes what was written."""
        self._undo.append(undo)

    def after_abort(self, do: Callable[[], None]) -> None:
        """Run `do` once the metastore knows of the abort, and has given the transaction's locks back."""
        self._after_abort.append(do)

    def on_commit(self, do: Callable[[], None]) -> None:
        """Call `do` once the transaction has committed, in the order given: for what must not be done before.

        Nothing that it does may matter to the table: whoever is killed in between does not do it.
        """
        self._afterwards.append(do)

    def set_with_commit(self, table_id: int, key: str, value: str) -> None:
        """Let the commit give a table's parameter a new value, or fail and do neither (transactions.md §1.5).

        `key` begins with ``_meta``; the parameter must exist, unless it tells how far a stream got
        (`hive_acid.format.progress`). One parameter can go with a commit.
        """
        self.check_open()
        self._parameter = ttypes.CommitTxnKeyValue(tableId=table_id, key=key, value=value)

    def given_up(self, reason: str) -> None:
        """The metastore has ended the transaction, as a heartbeat has learnt."""
        if not self.is_ending:  # by its owner's wish, who may be waiting for the answer
            self._expired = reason

    @property
    def is_given_up(self) -> bool:
        """Whether the metastore is known to have ended the transaction for want of heartbeats."""
        return self._expired is not None

    @property
    def is_ending(self) -> bool:
        """Whether its end was asked for, or has come."""
        return self._ending.locked()

    @property
    def is_held_for_reading(self) -> bool:
        """Whether it is a snapshot that nobody has begun to end."""
        is_open = self.state is TransactionState.OPEN and not self.is_ending and not self._ends_later
        return is_open and self.kind is TransactionKind.READ

    @property
    def is_let_go(self) -> bool:
        """Whether it is a snapshot that nobody reads any more, and whose end is still to come."""
        return self.state is TransactionState.OPEN and self._ends_later

    # --- the end -------------------------------------------------------------------------------

    def heartbeat(self) -> None:
        """Tell the metastore that this transaction lives."""
        if self.state is TransactionState.OPEN:
            self._call("heartbeat", ttypes.HeartbeatRequest(txnid=self.id))

    def commit(self) -> None:
        """Make all writes visible at once.

        Raises WriteConflictError when another transaction changed the same data first: this one is then aborted and
        its files are removed. When the answer is lost, MetastoreUnreachableError: the outcome is then unknown, and no
        file is touched. After an interrupt `abort` asks the metastore for the outcome before it touches one.
        """
        self.check_open()
        self._claim_end()
        try:
            request = ttypes.CommitTxnRequest(
                txnid=self.id, keyValue=self._parameter, exclWriteEnabled=False, txn_type=self._wire_type()
            )
            self._connection.call("commit_txn", request)
        except TxnAbortedError as error:
            self._end(TransactionState.ABORTED)
            self._run_undo()
            self._follow(self._after_abort)
            if "write conflict" in str(error):
                raise WriteConflictError(
                    f"{error}. Nothing was written; run the statement again on fresh data."
                ) from None
            raise TransactionExpiredError(f"transaction {self.id} was aborted before its commit: {error}") from None
        except NoSuchTxnError as error:
            self._end(TransactionState.ABORTED)
            raise TransactionExpiredError(f"transaction {self.id} cannot commit: {error}") from None
        except MetastoreUnreachableError:
            self._end(TransactionState.UNKNOWN)
            raise
        except BaseException as error:
            self._is_doubtful = isinstance(error, MetastoreInternalError) or not isinstance(error, HiveAcidError)
            self._ending.release()
            raise
        self._end(TransactionState.COMMITTED)
        self._connection.pressure.wrote(self._written)
        self._follow(self._afterwards)

    def abort(self) -> None:
        """Undo everything; allowed again and again, and after the metastore's own abort."""
        self._check_process()
        if self.state is TransactionState.ABORTED:
            return
        if self.state is not TransactionState.OPEN:
            raise TransactionClosedError(f"transaction {self.id} cannot be aborted: it is {self.state.value}")
        self._claim_end()
        if self._is_doubtful:
            self._abort_in_doubt()
            return
        self._end(TransactionState.ABORTED)
        try:
            self._run_undo()
        except BaseException:  # a second interrupt: files are left for the Cleaner, but no lock
            with suppress(HiveAcidError):
                self._call_abort()
            raise
        try:
            self._call_abort()
        except NoSuchTxnError as error:
            raise TransactionClosedError(f"transaction {self.id} cannot be aborted: {error}") from None
        except MetastoreUnreachableError as error:
            LOG.warning("transaction %d stays open until its time-out: %s", self.id, error)
        else:
            self._follow(self._after_abort)

    def _abort_in_doubt(self) -> None:
        """Abort after a commit without an answer: files go only if it has not committed."""
        try:
            self._call_abort()
        except BaseException as error:
            self._end(TransactionState.UNKNOWN)
            if not isinstance(error, HiveAcidError):
                raise
            raise TransactionClosedError(
                f"transaction {self.id} was interrupted as it committed, and may have: {error}"
            ) from None
        self._end(TransactionState.ABORTED)
        self._run_undo()
        self._follow(self._after_abort)

    def _call_abort(self) -> None:
        self._connection.call("abort_txn", ttypes.AbortTxnRequest(txnid=self.id, txn_type=self._wire_type()))

    def end_later(self) -> None:
        """End a read-only transaction from a finaliser: soon, on the heartbeat thread."""
        if self._process == os.getpid():
            self._ends_later = True
            self._connection.heartbeats.end_later(self)

    def end_unfinished(self) -> None:
        """Commit what only reads, and abort what writes, as the program ends; unless somebody is ending it."""
        with suppress(TransactionClosedError):
            if self.kind is TransactionKind.READ:
                self.commit()
            else:
                self.abort()

    def _wire_type(self) -> int:
        kind: int = getattr(ttypes.TxnType, self.kind.value)
        return kind

    def _end(self, state: TransactionState) -> None:
        self.state = state
        self._connection.heartbeats.remove(self)

    def _run_undo(self) -> None:
        while self._undo:
            undo = self._undo.pop()
            try:
                undo()
            except Exception as error:  # whatever it is, such as that no thread begins any more: the abort follows
                LOG.warning("files of aborted transaction %d are left for the Cleaner: %s", self.id, error)

    def _follow(self, what: Iterable[Callable[[], None]]) -> None:
        for do in what:
            try:
                do()
            except (OSError, HiveAcidError) as error:
                LOG.warning("transaction %d is %s, but what was to follow failed: %s", self.id, self.state.value, error)

    def _claim_end(self) -> None:
        """Be the one who ends it: of two threads, one does."""
        me = threading.get_ident()
        if self._ending.acquire(blocking=False):
            self._ender = me
        elif self._ender == me:  # who was interrupted, maybe with the answer at hand
            self._is_doubtful = True
        else:
            raise TransactionClosedError(f"transaction {self.id} is being ended by another thread")

    def _call(self, method: str, *request: Any) -> Any:
        self._check_process()
        try:
            return self._connection.call(method, *request)
        except (TxnAbortedError, NoSuchTxnError) as error:
            ended = self._ended(error)
            if method == "heartbeat":
                raise
            raise ended from None

    def _ended(self, error: HiveAcidError) -> TransactionExpiredError:
        """Note that the metastore has ended the transaction, as this says; returns what to raise."""
        self.given_up(str(error))
        return TransactionExpiredError(
            f"transaction {self.id} has been ended by the metastore ({error}): begin another one"
        )

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise OtherProcessError(
                f"transaction {self.id} is of process {self._process}, which forked this one: begin another one here"
            )

    def check_open(self) -> None:
        """Raise TransactionClosedError after its end, TransactionExpiredError if the metastore has given it up."""
        self._check_process()
        if self.state is not TransactionState.OPEN:
            raise TransactionClosedError(f"transaction {self.id} is {self.state.value}: begin another one")
        if self._expired is not None:
            raise TransactionExpiredError(
                f"transaction {self.id} has been ended by the metastore ({self._expired}): begin another one"
            )

    def ends_with_block(self) -> None:
        """It ends where this thread leaves the ``with`` block that it is in."""
        self.thread, self.is_block = threading.get_ident(), True

    def __enter__(self) -> Self:
        self.ends_with_block()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if self.state is not TransactionState.OPEN:
            return
        if error is None:
            self.commit()
        elif self._process == os.getpid():
            self.abort()


def _valid_write_ids(found: Any) -> ValidWriteIdList:
    return ValidWriteIdList.from_invalid(
        found.fullTableName,
        found.writeIdHighWaterMark,
        found.invalidWriteIds or [],
        found.abortedBits or b"",
        found.minOpenWriteId,
    )
