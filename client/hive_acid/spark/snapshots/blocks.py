"""Transactions around the verbs of a session: a block of the thread, or one made for a single statement.

A block is entered by ``with``, or by the words of SQL. Tasks of asyncio take turns on one thread. Those that a block
has begun are part of it; any other one is refused while the block waits, since its verbs would be done, or undone, with
somebody else's.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar
from uuid import uuid4

from pyspark.sql import SparkSession

from hive_acid.connection import Connection
from hive_acid.errors import (
    HiveAcidError,
    SnapshotOutdatedError,
    StorageError,
    TransactionClosedError,
    TransactionExpiredError,
)
from hive_acid.spark.jvm.interrupts import cancelled_with_errors
from hive_acid.spark.jvm.progress import shown_progress
from hive_acid.spark.jvm.running import check_running
from hive_acid.spark.snapshots.block import MARKS, Begun, Block
from hive_acid.transactions.states import Isolation, TransactionKind
from hive_acid.transactions.transaction import Transaction

LOG = logging.getLogger(__name__)
_BEGINNINGS = 3
"""How often a statement of its own begins at most; then the conflict is told at its commit."""

_RUNS = 20
"""How often a statement of READ COMMITTED runs at most: each time it has a lock more."""

Result = TypeVar("Result")


class Blocks:
    """The blocks of one session, one per thread at a time."""

    def __init__(
        self,
        spark: SparkSession,
        connection: Connection,
        lock_timeout_ms: int,
        idle_timeout_ms: int = 0,
        isolation: Isolation = Isolation.SNAPSHOT,
    ) -> None:
        self._spark = spark
        self._connection = connection
        self._lock_timeout_ms = lock_timeout_ms
        self._idle_timeout_s = idle_timeout_ms / 1000
        self._isolation = isolation
        self._local = threading.local()
        self._by_words: weakref.WeakSet[Block] = weakref.WeakSet()

    def begin(
        self,
        kind: TransactionKind,
        tables: Iterable[str] = (),
        *,
        may_begin_again: bool = False,
        isolation: Isolation | None = None,
        with_lock: bool = False,
    ) -> Transaction:
        """A transaction of no block. `tables` (``db.table``) are all that it uses, none if that is not known.

        One of a statement is opened `with_lock`, as `Connection.begin` says. Without an `isolation` one that writes has
        the session's; one that only reads has one snapshot.

        Raises SparkStoppedError.
        """
        check_running(self._spark)
        return self._connection.begin(
            kind,
            lock_timeout_ms=self._lock_timeout_ms,
            tables=tables,
            may_begin_again=may_begin_again,
            isolation=Isolation.SNAPSHOT if kind is TransactionKind.READ else isolation or self._isolation,
            with_lock=with_lock,
        )

    # --- the block of a thread -------------------------------------------------------------------

    def current(self) -> Block | None:
        """This thread's block.

        Raises TransactionClosedError if its transaction has been aborted, or if it is of another task of asyncio, which
        waits in it; and SparkStoppedError.
        """
        check_running(self._spark)
        block = self._of_thread()
        if block is not None:
            self._refuse_of_other_task(block)
            block.refuse_ended()
            block.touch()
        return block

    def current_or_begun(self) -> Block | None:
        """As `current`; while AUTOCOMMIT is FALSE a transaction is begun if there is none."""
        block = self.current()
        if block is None and not self.autocommit:
            block = self._enter(TransactionKind.WRITE, begun=Begun.BY_WORDS)
        elif block is not None:
            block.see_committed()
        return block

    def _refuse_of_other_task(self, block: Block) -> None:
        if block.is_of_another_task:
            raise TransactionClosedError(
                f"transaction {block.transaction.id} is of another task of asyncio, which waits within its block: do "
                "not await within a block, or run what is not part of it on a thread of its own"
            )

    def _of_thread(self) -> Block | None:
        """The block that this thread has entered, unless any thread has left it."""
        block: Block | None = getattr(self._local, "block", None)
        if block is None or not block.has_ended:
            return block
        self._local.block = None
        return None

    @property
    def isolation(self) -> Isolation:
        """That of this thread's transaction, or of one that a statement would begin."""
        block = self._of_thread()
        return self._isolation if block is None else block.transaction.isolation

    @property
    def is_within(self) -> bool:
        """Whether this thread is in a block; of tasks of asyncio, whether this one is."""
        block = self._of_thread()
        return block is not None and not block.is_of_another_task

    def _enter(
        self,
        kind: TransactionKind,
        tables: Iterable[str] = (),
        *,
        may_begin_again: bool = False,
        isolation: Isolation | None = None,
        begun: Begun,
    ) -> Block:
        if (outer := self._of_thread()) is not None:
            raise TransactionClosedError(
                f"this thread is in a transaction or snapshot already ({outer.transaction.id}, begun by "
                f"{outer.begun.value}): blocks do not nest"
            )
        transaction = self.begin(
            kind,
            tables,
            may_begin_again=may_begin_again,
            isolation=isolation,
            with_lock=begun is Begun.BY_STATEMENT,
        )
        transaction.ends_with_block()
        block = Block(transaction, self._spark, begun, writable=kind is not TransactionKind.READ)
        self._local.block = block
        MARKS.set(MARKS.get() | {block.mark})
        if begun is Begun.BY_WORDS:
            self._by_words.add(block)
        if begun is Begun.BY_WORDS and block.writable:
            # A thread that is over has let go of its block.
            ends = partial(self._connection.heartbeats.do_later, partial(_end_unfinished, transaction))
            weakref.finalize(block, ends).atexit = False
        if begun is not Begun.BY_STATEMENT and self._idle_timeout_s:
            self._look_for_idle(weakref.ref(block))
        return block

    @contextmanager
    def _left(self, block: Block) -> Iterator[None]:
        """The thread is out of the block afterwards, and a writing one is aborted by an error."""
        try:
            yield
        except BaseException as error:
            if block.writable:
                block.abort(error)
            raise
        finally:
            block.let_go()
            self._by_words.discard(block)
            self._of_thread()  # forgets it, where this is the thread that entered it
            MARKS.set(MARKS.get() - {block.mark})

    def _commit(self, block: Block) -> None:
        """Commit what the block has written; frames of one that only reads may live on."""
        block.refuse_ended()
        if block.writable:
            block.transaction.commit()
        else:
            block.transaction.reads_no_more()  # its frames need no other table

    # --- by `with`, or for one statement ----------------------------------------------------------

    @contextmanager
    def entered(
        self,
        kind: TransactionKind,
        tables: Iterable[str] = (),
        *,
        may_begin_again: bool = False,
        isolation: Isolation | None = None,
        begun: Begun = Begun.BY_WITH,
    ) -> Iterator[Transaction]:
        """A block of this thread: a writing one commits at its end, or aborts when an error leaves it.

        `tables` and `isolation` are as for `begin`; `may_begin_again` is of `Transaction`.
        """
        block = self._enter(kind, tables, may_begin_again=may_begin_again, isolation=isolation, begun=begun)
        with self._left(block):
            yield block.transaction
            self._commit(block)

    # --- by the words of SQL ------------------------------------------------------------------------

    @property
    def autocommit(self) -> bool:
        """Whether, on this thread, what is in no block is a transaction of its own."""
        return getattr(self._local, "autocommit", True)

    def set_autocommit(self, value: bool) -> None:
        """Have statements of this thread be transactions of their own, or part of one until `end`.

        To have them so again commits what is open. Raises what `end` raises.
        """
        if value and not self.autocommit and self._of_thread() is not None:
            self.end(commit=True)
        self._local.autocommit = value

    def enter(self, *, read_only: bool, isolation: Isolation | None = None) -> None:
        """Begin a transaction that `end` ends. Raises TransactionClosedError if this thread is in one."""
        block = self._of_thread()
        if block is not None:
            self._refuse_of_other_task(block)
        kind = TransactionKind.READ if read_only else TransactionKind.WRITE
        self._enter(kind, isolation=isolation, begun=Begun.BY_WORDS)

    @property
    def by_words(self) -> Block | None:
        """The block of this thread that `end` would end."""
        block = self._of_thread()
        return block if block is not None and block.begun is Begun.BY_WORDS else None

    def end(self, *, commit: bool) -> None:
        """Commit or abort the transaction of this thread that `enter` has begun. It is over, also if that fails.

        Raises TransactionClosedError if there is none, or if it was aborted and is to be committed, and what
        `Transaction.commit` raises.
        """
        block = self._of_thread()
        if block is None:
            if not self.autocommit:
                return  # the next statement begins one
            raise TransactionClosedError(
                f"there is no transaction to {'commit' if commit else 'roll back'} on this thread: BEGIN starts one, "
                "and without it each statement commits by itself"
            )
        self._refuse_of_other_task(block)
        if block.begun is not Begun.BY_WORDS:
            raise TransactionClosedError(
                f"transaction {block.transaction.id} was begun by a `with` block, and ends where that is left"
            )
        with self._left(block):
            if commit:
                self._commit(block)
            elif block.writable:
                block.abort(TransactionClosedError("it was rolled back"))
            else:
                block.transaction.reads_no_more()

    def roll_back_all(self) -> None:
        """Abort what the words of SQL have begun, on whatever thread, and has not ended: the session is closed."""
        for block in list(self._by_words):
            if not block.has_ended:
                block.abort(TransactionClosedError("its session was closed"))
                block.has_ended = True

    def _look_for_idle(self, of: weakref.ref[Block]) -> None:
        block = of()
        if block is None or block.has_ended or block.failure is not None:
            return
        why = TransactionExpiredError(
            f"it was idle for {self._idle_timeout_s:g} s, the session's idle_in_transaction_timeout_ms"
        )
        if block.fail_if_idle(self._idle_timeout_s, why):
            # On a thread of its own: to remove files may take long, and others wait for their heartbeats.
            threading.Thread(target=block.abort, args=(why,), name="hive-acid-idle", daemon=True).start()
            return
        pause_s = max(self._idle_timeout_s - block.idle_for_s(), 0.001)
        self._connection.heartbeats.do_after(pause_s, partial(self._look_for_idle, of))

    # --- what runs in blocks ------------------------------------------------------------------------

    @contextmanager
    def reading(self, tables: Iterable[str] = ()) -> Iterator[Transaction]:
        """This thread's transaction, or one of these `tables` that ends with the ``with`` block.

        It is for work that leaves no frame behind.
        """
        block, named = self.current_or_begun(), list(tables)
        if block is not None:
            with shown_progress(self._spark, named), block.busy():
                yield block.transaction
            return
        with (
            self.entered(TransactionKind.READ, named, begun=Begun.BY_STATEMENT) as transaction,
            shown_progress(self._spark, named),
        ):
            yield transaction

    @contextmanager
    def joined(self, tables: Iterable[str]) -> Iterator[None]:
        """This thread's block, whatever its kind, or a snapshot of these `tables` for reads that belong together."""
        if (block := self.current_or_begun()) is not None:
            with block.busy():
                yield
            return
        with self.entered(TransactionKind.READ, tables, begun=Begun.BY_STATEMENT):
            yield

    def together(self, run: Callable[[], Result], tables: Iterable[str]) -> Result:
        """`run`, which has verbs that belong together, in this thread's block or in a transaction of these `tables`.

        One of its own begins anew as in `changing`.
        """
        block = self.current_or_begun()
        if block is None:
            return self._alone(lambda _: run(), tables)
        return self._within(block, run)

    def changing(self, run: Callable[[Transaction], Result], tables: Iterable[str]) -> Result:
        """`run` in this thread's transaction, or in one of its own for these `tables`.

        What fails in a block leaves nothing of itself, as `Block.statement` says. One of its own begins anew if the
        data was changed before it had its lock: it has read nothing of it.
        """
        block = self.current_or_begun()
        if block is None:
            return self._alone(run, tables)
        if not block.writable:
            way = "BEGIN READ WRITE" if block.begun is Begun.BY_WORDS else "use acid.transaction()"
            raise TransactionClosedError(
                f"a {'READ ONLY transaction' if block.begun is Begun.BY_WORDS else 'snapshot block'} only reads: {way} "
                "to change tables"
            )
        return self._within(block, partial(self._told, run, block.transaction, tables))

    def _within(self, block: Block, run: Callable[[], Result]) -> Result:
        """`run` as a statement of a block.

        One of READ COMMITTED that has read what others changed before it had its lock is run again, behind the lock.
        """
        may_repeat = block.may_repeat
        for _ in range(_RUNS - 1 if may_repeat else 0):
            with suppress(SnapshotOutdatedError), block.statement():
                return run()
            block.see_committed()
        with block.statement():
            return run()

    def _alone(self, run: Callable[[Transaction], Result], tables: Iterable[str]) -> Result:
        named = list(tables)
        if self._isolation is Isolation.READ_COMMITTED:
            with self.entered(TransactionKind.WRITE, named, begun=Begun.BY_STATEMENT) as transaction:
                block = self._of_thread()
                assert block is not None
                return self._within(block, partial(self._told, run, transaction, named))
        for attempt in range(1, _BEGINNINGS + 1):
            with (
                suppress(SnapshotOutdatedError),
                self.entered(
                    TransactionKind.WRITE, named, may_begin_again=attempt < _BEGINNINGS, begun=Begun.BY_STATEMENT
                ) as transaction,
            ):
                return self._told(run, transaction, named)
        raise AssertionError("the last attempt returns or raises another error")

    def _told(self, run: Callable[[Transaction], Result], transaction: Transaction, tables: Iterable[str]) -> Result:
        """What `run` makes. Its jobs end with it, also where it is interrupted.

        Of a transaction that ends meanwhile, with its files, no error of Spark's is told, but that.
        """
        try:
            with (
                shown_progress(self._spark, tables),
                cancelled_with_errors(self._spark, f"hive-acid-statement-{uuid4().hex}"),
            ):
                return run(transaction)
        except Exception as error:
            if isinstance(error, HiveAcidError) and not isinstance(error, StorageError):
                raise
            try:
                transaction.check_open()
            except HiveAcidError as ended:
                raise ended from error
            raise


def _end_unfinished(transaction: Transaction) -> None:
    try:
        transaction.end_unfinished()
    except HiveAcidError as error:
        LOG.warning("transaction %d, whose thread is over, could not be aborted: %s", transaction.id, error)
