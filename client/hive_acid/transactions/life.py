"""The life of a transaction on its client's side: who owns it, what is called for it, and one end on every path."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Self

from hive_acid.errors import (
    HiveAcidError,
    MetastoreInternalError,
    MetastoreUnreachableError,
    NoSuchTxnError,
    OtherProcessError,
    TransactionClosedError,
    TransactionExpiredError,
    TxnAbortedError,
    WriteConflictError,
)
from hive_acid.ids import TxnId, WriteId
from hive_acid.transactions.beginning import Opened, Opening, Owner
from hive_acid.transactions.states import Isolation, TransactionKind, TransactionState
from hive_acid.wire import table_name, ttypes

LOG = logging.getLogger(__name__)
_NEVER_OPENED = TxnId(0)
"""The number of one that has ended before it was opened."""


class TransactionLife:
    """From its beginning to its end: heartbeats, commit, abort, and what follows either."""

    def __init__(self, connection: Owner, opening: Opening) -> None:
        self._id: TxnId | None = None
        self.kind = opening.kind
        self.isolation = opening.isolation
        self.state = TransactionState.OPEN
        self._connection = connection
        self._opening = opening
        self.tables = opening.tables
        """Those of the opening, or what the transaction has promised since."""
        self.may_begin_again = opening.may_begin_again
        """Whether `lock` raises a SnapshotOutdatedError, after which all of it is run anew."""
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
        self._expired: str | None = None
        self._written: dict[str, WriteId] = {}
        self._lent: set[str] = set()
        """The tables (``db.table``) that are written under the write id of another one."""
        self._undo: list[Callable[[], None]] = []
        self._parameter: Any = None
        self._replacement: Any = None
        self._why_conflict: str | None = None
        """Why it was not told apart from those that have changed the same data."""
        self._afterwards: list[Callable[[], None]] = []
        self._rolling_back: list[Callable[[], None]] = []
        self._after_abort: list[Callable[[], None]] = []

    @property
    def id(self) -> TxnId:
        """Its number. One that was to be opened with its first lock is opened by that."""
        if self._id is None:
            self._open()
        assert self._id is not None
        return self._id

    @property
    def is_opened(self) -> bool:
        """Whether the metastore knows of it, or has."""
        return self._id is not None

    def _open(self) -> None:
        """Be opened, without a lock."""
        raise NotImplementedError

    def is_opened_as(self, opened: Opened) -> None:
        """The metastore has opened it: it is kept alive from now on."""
        self._id = opened.id
        self._connection.heartbeats.add(self)

    def written_as(self, database: str, table: str) -> WriteId | None:
        """The write id for the table if it has one, also after the end of the transaction."""
        return self._written.get(table_name(database, table))

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

    def savepoint(self) -> Callable[[], None]:
        """What takes back all that the transaction has noted and written since now, as where a statement has failed.

        Locks stay, and what the metastore was told of partitions. What it raises leaves files that nobody may see: the
        transaction can only be aborted then.
        """
        undo, afterwards, after_abort = len(self._undo), len(self._afterwards), len(self._after_abort)
        parameter, replacement, noted = self._parameter, self._replacement, len(self._rolling_back)

        def roll_back() -> None:
            while len(self._undo) > undo:
                self._undo[-1]()
                self._undo.pop()
            self._follow(self._rolling_back[noted:])
            del self._rolling_back[noted:]
            # What waits for the locks to be given back waits for the end, whatever that is.
            self._afterwards[afterwards:] = self._after_abort[after_abort:]
            self._parameter, self._replacement = parameter, replacement

        return roll_back

    def on_roll_back(self, do: Callable[[], None]) -> None:
        """Call `do` if a `savepoint` of before is gone back to: for what may, but need not be told of it."""
        self._rolling_back.append(do)

    def set_with_commit(self, table_id: int, key: str, value: str) -> None:
        """Let the commit give a table's parameter a new value, or fail and do neither (transactions.md §1.5).

        `key` begins with ``_meta``; the parameter must exist, unless it tells how far a stream got
        (`hive_acid.format.progress`). One parameter can go with a commit, and none with the definition of a table.
        """
        self.check_open()
        self._refuse_company(self._replacement)
        self._parameter = ttypes.CommitTxnKeyValue(tableId=table_id, key=key, value=value)

    def replace_with_commit(self, table_id: int, definition: Any, successor_id: int | None = None) -> None:
        """Let the commit give a table that was overwritten whole the definition of its new rows, or do neither.

        `definition` is a Thrift ``Table``. With a successor that table takes the place of the one which is there, and
        of `definition` count names and parameters. Raises TransactionClosedError if the commit takes something along
        already.
        """
        self.check_open()
        self._refuse_company(self._parameter, self._replacement)
        self._replacement = ttypes.HiveAcidReplaceTableRequest(
            txnid=self.id, tableId=table_id, table=definition, successorId=successor_id
        )

    def _refuse_company(self, *others: Any) -> None:
        if any(other is not None for other in others):
            raise TransactionClosedError(
                f"transaction {self.id} replaces a table, or notes how far a stream got, with its commit already: one "
                "thing goes with a commit"
            )

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

    def heartbeat(self) -> None:
        """Tell the metastore that this transaction lives."""
        if self.state is TransactionState.OPEN and self.is_opened:
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
            if self.is_opened:
                self._call_commit()
        except TxnAbortedError as error:
            self._end(TransactionState.ABORTED)
            self._run_undo()
            self._follow(self._after_abort)
            if "write conflict" in str(error):
                why = f" ({self._why_conflict})" if self._why_conflict else ""
                raise WriteConflictError(
                    f"{error}{why}. Nothing was written; run the statement again on fresh data."
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
        self._connection.pressure.wrote(name for name in self._written if name not in self._lent)
        self._follow(self._afterwards)

    def _call_commit(self) -> None:
        if self._replacement is not None:
            self._connection.call("hive_acid_replace_table", self._replacement)
            return
        # What it has changed nobody else could since it has read it: the metastore need not look for a conflict.
        was_alone = self.isolation is Isolation.READ_COMMITTED
        request = ttypes.CommitTxnRequest(
            txnid=self.id, keyValue=self._parameter, exclWriteEnabled=was_alone, txn_type=self._wire_type()
        )
        self._connection.call("commit_txn", request)

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
        was_opened = self.is_opened
        self._end(TransactionState.ABORTED)
        try:
            self._run_undo()
        except BaseException:  # a second interrupt: files are left for the Cleaner, but no lock
            with suppress(HiveAcidError):
                if was_opened:
                    self._call_abort()
            raise
        try:
            if was_opened:
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
        if self._id is None:
            self._id = _NEVER_OPENED
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
