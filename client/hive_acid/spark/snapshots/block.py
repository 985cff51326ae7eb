"""One transaction or snapshot that a thread is in: what has begun it, what it has read, and how its statements end."""

from __future__ import annotations

import asyncio
import enum
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession

from hive_acid.errors import HiveAcidError, SnapshotOutdatedError, TransactionClosedError, WriteConflictError
from hive_acid.spark.snapshots.lease import Lease
from hive_acid.transactions.states import Isolation, TransactionState
from hive_acid.transactions.transaction import Transaction

LOG = logging.getLogger(__name__)
MARKS: ContextVar[frozenset[object]] = ContextVar("hive_acid_blocks", default=frozenset())
"""The marks of the blocks that a task is in, or was begun in."""


class Begun(enum.Enum):
    """Who has begun a block, and so ends it."""

    BY_WITH = "a `with` block"
    BY_STATEMENT = "one statement"
    BY_WORDS = "SQL"
    """BEGIN, or a statement while AUTOCOMMIT is FALSE."""


def this_task() -> Any:
    """The task of asyncio that runs on this thread, None if there is none."""
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs here
        return None


def _nothing() -> None:
    """What is done when nobody reads a frame of a writing block any more."""


@dataclass(eq=False)
class Block:
    """What a thread is in, and its transaction."""

    transaction: Transaction
    spark: SparkSession
    begun: Begun
    writable: bool
    failure: BaseException | None = None
    """Why the transaction has been aborted before its end, if it has."""
    task: Any = field(default_factory=this_task)
    """The task of asyncio that has entered it, if it was one."""
    mark: object = field(default_factory=object)
    """What tasks know that are begun within."""
    has_ended: bool = False
    """Set where it is left, which may be on another thread."""

    def __post_init__(self) -> None:
        self._snapshot = None if self.writable else Lease(self.spark, self.transaction.end_later)
        self._leases: dict[str, Lease] = {}
        self._guard = threading.Lock()
        self._running = 0
        self._idle_since = time.monotonic()

    @property
    def is_of_another_task(self) -> bool:
        """Whether a task runs here that the block knows nothing of, while that of the block waits."""
        if self.task is None or self.task.done():
            return False
        return this_task() is not self.task and self.mark not in MARKS.get()

    # --- its frames ----------------------------------------------------------------------------

    def lease(self, table: str) -> Lease:
        """What frames of a table (``db.table``) hold that are read within.

        It keeps the snapshot of a block that only reads. Frames of a writing one are kept until its end.
        """
        if not self.writable:
            if self._snapshot is None:  # it was idle for too long, this very moment
                self.refuse_ended()
            assert self._snapshot is not None
            return self._snapshot
        if table not in self._leases:
            self._leases[table] = Lease(self.spark, _nothing)
        return self._leases[table]

    def end_frames(self, why: str, *tables: str) -> None:
        """Let no frame of the tables be read any more, or none at all if no tables are given."""
        for table in tables or list(self._leases):
            if (lease := self._leases.pop(table, None)) is not None:
                lease.ended = why

    def let_go(self) -> None:
        """It is over: frames that it has kept are kept by who reads them."""
        self.has_ended, self._snapshot = True, None
        self._leases = {}

    # --- its statements ------------------------------------------------------------------------

    @property
    def may_repeat(self) -> bool:
        """Whether a statement that begins now may be run again, on rows of then: it is one of READ COMMITTED."""
        return self.transaction.isolation is Isolation.READ_COMMITTED and not self._running

    def see_committed(self) -> None:
        """Have a statement of READ COMMITTED that begins now see what has committed; what runs in it sees the same."""
        if self.may_repeat:
            self.transaction.see_committed()

    def refuse_ended(self) -> None:
        """Raise TransactionClosedError if the transaction has been aborted."""
        if self.failure is not None:
            raise TransactionClosedError(
                f"transaction {self.transaction.id} was aborted ({self.failure}): {self.way_out}, and begin another one"
            ) from self.failure

    @property
    def way_out(self) -> str:
        """What the user does to be out of it."""
        return "say ROLLBACK" if self.begun is Begun.BY_WORDS else "leave the block"

    @contextmanager
    def statement(self) -> Iterator[None]:
        """A statement: if it fails it leaves nothing of itself, and the transaction goes on.

        The transaction is aborted at once by what makes its commit impossible or wrong: a conflict, an interrupt, which
        may have left threads that write, and files that cannot be removed.
        """
        with self.busy():
            yield from self._statement()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Something that runs in it: it is not idle. Raises TransactionClosedError if it was aborted."""
        with self._guard:
            self.refuse_ended()
            self._running += 1
        try:
            yield
        finally:
            with self._guard:
                self._running -= 1
                self._idle_since = time.monotonic()

    def _statement(self) -> Iterator[None]:
        roll_back = self.transaction.savepoint()
        try:
            yield
            if self.begun is not Begun.BY_STATEMENT and self._running == 1:
                self.transaction.refuse_conflict()
        except BaseException as error:
            is_run_again = isinstance(error, SnapshotOutdatedError) and (
                self.transaction.isolation is Isolation.READ_COMMITTED
            )
            is_all = self.begun is Begun.BY_STATEMENT and not is_run_again
            if is_all:
                self.failure = error
            if not self.writable or is_all:
                raise
            is_conflict = isinstance(error, WriteConflictError) and not is_run_again
            if not isinstance(error, Exception) or is_conflict or self._has_ended_itself():
                self.abort(error)
                raise
            try:
                roll_back()
            except BaseException as left:
                self.abort(left)
                raise error from left
            raise
        finally:
            replaced = self.transaction.take_replaced()
            if replaced:
                self.end_frames("a later statement of its transaction has replaced the rows", *replaced)

    def _has_ended_itself(self) -> bool:
        try:
            self.transaction.check_open()
        except HiveAcidError:
            return True
        return False

    def abort(self, why: BaseException) -> None:
        """Abort the transaction before the block ends; `why` is told of whatever is asked of it later.

        Of one that only reads nothing is to be undone: who reads its frames keeps it.
        """
        self.failure = self.failure or why
        if not self.writable:
            self._snapshot = None
            return
        try:
            self.transaction.abort()
        except HiveAcidError as error:  # it is not to hide the one that led here
            LOG.warning("transaction %d could not be aborted: %s", self.transaction.id, error)
        finally:
            if self.transaction.state is TransactionState.ABORTED:
                self.end_frames(f"its transaction {self.transaction.id} was aborted")

    def touch(self) -> None:
        """Something is asked of it: it is not idle."""
        self._idle_since = time.monotonic()

    def idle_for_s(self) -> float:
        """How long it has been idle, in seconds."""
        return 0.0 if self._running else time.monotonic() - self._idle_since

    def fail_if_idle(self, longest_s: float, why: HiveAcidError) -> bool:
        """Note `why` as its failure if it has been idle for so long; whether it has."""
        with self._guard:
            is_idle = not self.has_ended and self.failure is None and self.idle_for_s() >= longest_s
            if is_idle:
                self.failure = why
        return is_idle
