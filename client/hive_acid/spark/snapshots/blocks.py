"""Transactions around the verbs of a session: a ``with`` block of the thread, or one made for a single statement.

Tasks of asyncio take turns on one thread. Those that a block has begun are part of it; any other one is refused while
the block waits, since its verbs would be done, or undone, with somebody else's.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from hive_acid.connection import Connection
from hive_acid.errors import HiveAcidError, SnapshotOutdatedError, StorageError, TransactionClosedError
from hive_acid.spark.jvm.interrupts import cancelled_with_errors
from hive_acid.spark.jvm.progress import shown_progress
from hive_acid.spark.jvm.running import check_running
from hive_acid.spark.snapshots.lease import Lease
from hive_acid.transactions.states import TransactionKind
from hive_acid.transactions.transaction import Transaction

LOG = logging.getLogger(__name__)
_BEGINNINGS = 3
"""How often a statement of its own begins at most; then the conflict is told at its commit."""

Result = TypeVar("Result")

_MARKS: ContextVar[frozenset[object]] = ContextVar("hive_acid_blocks", default=frozenset())
"""The marks of the blocks that a task is in, or was begun in."""


def _task() -> Any:
    """The task of asyncio that runs on this thread, None if there is none."""
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs here
        return None


@dataclass
class Block:
    """A ``with`` block on this thread: its transaction, and the error that has spoilt it.

    `lease` is what the frames hold that are read inside; those of a writing block are kept until its end.
    """

    transaction: Transaction
    lease: Lease | None
    writable: bool
    failure: BaseException | None = None
    task: Any = field(default_factory=_task)
    """The task of asyncio that has entered it, if it was one."""
    mark: object = field(default_factory=object)
    """What tasks know that are begun within."""
    is_of_statement: bool = False
    """Whether one statement has begun it, and ends it."""
    has_ended: bool = False
    """Set where it is left, which may be on another thread."""

    @property
    def is_of_another_task(self) -> bool:
        """Whether a task runs here that the block knows nothing of, while that of the block waits."""
        if self.task is None or self.task.done():
            return False
        return _task() is not self.task and self.mark not in _MARKS.get()


class Blocks:
    """The blocks of one session, one per thread at a time."""

    def __init__(self, spark: SparkSession, connection: Connection, lock_timeout_ms: int) -> None:
        self._spark = spark
        self._connection = connection
        self._lock_timeout_ms = lock_timeout_ms
        self._local = threading.local()

    def begin(self, kind: TransactionKind, tables: Iterable[str] = (), *, may_begin_again: bool = False) -> Transaction:
        """A transaction of no block. `tables` (``db.table``) are all that it uses, none if that is not known.

        Raises SparkStoppedError.
        """
        check_running(self._spark)
        return self._connection.begin(
            kind, lock_timeout_ms=self._lock_timeout_ms, tables=tables, may_begin_again=may_begin_again
        )

    def current(self) -> Block | None:
        """This thread's block.

        Raises TransactionClosedError if a statement in it has failed, or if it is of another task of asyncio, which
        waits in it; and SparkStoppedError.
        """
        check_running(self._spark)
        block = self._of_thread()
        if block is not None and block.is_of_another_task:
            raise TransactionClosedError(
                f"transaction {block.transaction.id} is of another task of asyncio, which waits within its block: do "
                "not await within a block, or run what is not part of it on a thread of its own"
            )
        if block is not None and block.failure is not None:
            raise TransactionClosedError(f"a statement of this transaction failed: {block.failure}") from block.failure
        return block

    def _of_thread(self) -> Block | None:
        """The block that this thread has entered, unless any thread has left it."""
        block: Block | None = getattr(self._local, "block", None)
        if block is None or not block.has_ended:
            return block
        self._local.block = None
        return None

    @property
    def is_within(self) -> bool:
        """Whether this thread is in a block; of tasks of asyncio, whether this one is."""
        block = self._of_thread()
        return block is not None and not block.is_of_another_task

    @contextmanager
    def entered(
        self,
        kind: TransactionKind,
        tables: Iterable[str] = (),
        *,
        may_begin_again: bool = False,
        is_of_statement: bool = False,
    ) -> Iterator[Transaction]:
        """A block of this thread: a writing one commits at its end, or aborts when an error leaves it.

        `tables` are as for `begin`; `may_begin_again` is of `Transaction`, `is_of_statement` of `Block`.
        """
        if self._of_thread() is not None:
            raise TransactionClosedError("this thread is in a transaction or snapshot already: blocks do not nest")
        transaction = self.begin(kind, tables, may_begin_again=may_begin_again)
        transaction.ends_with_block()
        reading = kind is TransactionKind.READ
        lease = Lease(self._spark, transaction.end_later) if reading else None
        block = Block(transaction, lease, writable=not reading, is_of_statement=is_of_statement)
        self._local.block = block
        _MARKS.set(_MARKS.get() | {block.mark})
        try:
            yield transaction
            if block.failure is not None:
                raise TransactionClosedError(
                    f"transaction {transaction.id} was aborted, since a statement in it failed: {block.failure}"
                ) from block.failure
            if reading:
                transaction.reads_no_more()  # its frames may live on, and need no other table
            else:
                transaction.commit()
        except BaseException:
            if not reading:
                _abort(transaction)
            raise
        finally:
            block.has_ended, block.lease = True, None
            self._of_thread()  # forgets it, where this is the thread that entered it
            _MARKS.set(_MARKS.get() - {block.mark})

    @contextmanager
    def reading(self, tables: Iterable[str] = ()) -> Iterator[Transaction]:
        """This thread's transaction, or one of these `tables` that ends with the ``with`` block.

        It is for work that leaves no frame behind.
        """
        block, named = self.current(), list(tables)
        if block is not None:
            with shown_progress(self._spark, named):
                yield block.transaction
            return
        with self.entered(TransactionKind.READ, named) as transaction, shown_progress(self._spark, named):
            yield transaction

    @contextmanager
    def joined(self, tables: Iterable[str]) -> Iterator[None]:
        """This thread's block, whatever its kind, or a snapshot of these `tables` for reads that belong together."""
        if self.current() is not None:
            yield
            return
        with self.entered(TransactionKind.READ, tables):
            yield

    def together(self, run: Callable[[], Result], tables: Iterable[str]) -> Result:
        """`run`, which has verbs that belong together, in this thread's block or in a transaction of these `tables`.

        One of its own begins anew as in `changing`.
        """
        return run() if self.current() is not None else self._alone(lambda _: run(), tables)

    def changing(self, run: Callable[[Transaction], Result], tables: Iterable[str]) -> Result:
        """`run` in this thread's transaction, or in one of its own for these `tables`. An error spoils the block.

        One of its own begins anew if the data was changed before it had its lock: it has read nothing of it.
        """
        block = self.current()
        if block is None:
            return self._alone(run, tables)
        if not block.writable:
            raise TransactionClosedError("a snapshot block only reads: use acid.transaction() to change tables")
        try:
            return self._told(run, block.transaction, tables)
        except BaseException as error:
            block.failure = error
            raise

    def _alone(self, run: Callable[[Transaction], Result], tables: Iterable[str]) -> Result:
        named = list(tables)
        for attempt in range(1, _BEGINNINGS + 1):
            with (
                suppress(SnapshotOutdatedError),
                self.entered(
                    TransactionKind.WRITE, named, may_begin_again=attempt < _BEGINNINGS, is_of_statement=True
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
                cancelled_with_errors(self._spark, f"hive-acid-transaction-{transaction.id}"),
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


def _abort(transaction: Transaction) -> None:
    """Abort, and let no error of that hide the one that led here."""
    try:
        transaction.abort()
    except HiveAcidError as error:
        LOG.warning("transaction %d could not be aborted: %s", transaction.id, error)
