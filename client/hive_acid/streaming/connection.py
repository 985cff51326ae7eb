"""A stream into one table: transactions one after the other, of records that a writer makes rows of.

Each transaction is one write: ``delta_W_W_0000``, complete before it is seen, and readable by all engines
(acid-format.md §4.5). Hive's own API appends the transactions of a batch to one file and keeps a side file of its
readable length, which other engines cannot read. Here a batch only saves calls, since its transactions are opened and
numbered together.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import pyarrow as pa

from hive_acid.catalog.references import Definitions, TableReference
from hive_acid.catalog.table import ORC_INPUT, Table
from hive_acid.connection import Connection, connect
from hive_acid.errors import (
    HiveAcidError,
    InvalidTransactionStateError,
    OtherProcessError,
    StreamingConnectionError,
    StreamingTransactionError,
    TableChangedError,
    TransactionClosedError,
    UnsupportedTableError,
)
from hive_acid.format.orc.compression import DEFAULT_COMPRESSION
from hive_acid.ids import TxnId, WriteId
from hive_acid.streaming.delta import Delta
from hive_acid.streaming.layout import Layout
from hive_acid.streaming.records import RecordWriter
from hive_acid.transactions.locks import Operation
from hive_acid.transactions.opening import open_transactions
from hive_acid.transactions.states import TransactionKind, TransactionState
from hive_acid.transactions.transaction import Transaction
from hive_acid.write.same_partitions import name_there
from hive_acid.write.table_write import Intent, TableWrite, refuse_uncompared

COMPRESSIONS = ("zstd", "zlib", "snappy")
_UNDO_WITHIN_S = 1.0
MAX_BATCH = 1000
"""A metastore opens so many transactions in one call at most (transactions.md §1.2)."""


@dataclass(frozen=True, slots=True)
class StreamStatistics:
    """What a stream has done until now; `records` counts those of committed transactions."""

    records: int = 0
    committed: int = 0
    aborted: int = 0
    partitions_created: int = 0


class StreamingConnection:
    """A stream into ``db.table``, a full-ACID table; safe to share between threads, which share its transaction.

    It stays in its process: in a child that was forked its methods raise OtherProcessError, but `close`, which does
    nothing to the parent's transactions.

    `metastore` is an address or an open `Connection`. `static_partition` gives values of partition keys that all
    records share; records bring the others. `transaction_batch_size` transactions are opened at a time: each waits for
    its turn with heartbeats, and what they hold back (compaction of the table, and the cleaning of its files) they hold
    back until they end.

    Raises StreamingConnectionError if the metastore does not answer, the table does not exist or is not full-ACID, or
    has columns that cannot be streamed into.
    """

    def __init__(
        self,
        metastore: str | Connection,
        table: str,
        writer: RecordWriter,
        *,
        static_partition: Mapping[str, object] | None = None,
        agent_info: str = "hive-acid streaming",
        transaction_batch_size: int = 1,
        compression: str = DEFAULT_COMPRESSION,
        lock_timeout_ms: int = 300_000,
    ) -> None:
        if not 1 <= transaction_batch_size <= MAX_BATCH:
            raise ValueError(f"a batch has 1 to {MAX_BATCH} transactions, not {transaction_batch_size}")
        if compression not in COMPRESSIONS:
            raise ValueError(f"compression '{compression}' is none of {', '.join(COMPRESSIONS)}")
        self._writer = writer
        self._agent_info = agent_info
        self._batch_size = transaction_batch_size
        self._compression = compression
        self._lock_timeout_ms = lock_timeout_ms
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._waiting: list[Transaction] = []
        self._transaction: Transaction | None = None
        self._delta: Delta | None = None
        self._records = 0
        self._statistics = StreamStatistics()
        self._is_closed = False
        self._owned: Connection | None = None
        try:
            if isinstance(metastore, Connection):
                self._connection = metastore
            else:
                self._connection = self._owned = connect(metastore)
            self._definitions = Definitions(self._connection)
            self._table = _streamed(self._definitions.now(TableReference.of(table)))
            self._layout = Layout(self._table, static_partition or {})
            self._partition = self._static_partition()
        except HiveAcidError as error:
            if self._owned is not None:
                self._owned.close()
            raise StreamingConnectionError(f"no stream into {table}: {error}") from error

    # --- what it is --------------------------------------------------------------------------------

    @property
    def columns(self) -> list[str]:
        """The columns that a record has, in their order: the table's, then the partition keys that are not static."""
        return list(self._layout.columns)

    @property
    def statistics(self) -> StreamStatistics:
        """What has been done until now."""
        with self._alone():
            return self._statistics

    @property
    def txn_id(self) -> TxnId:
        """The id of the open transaction. Raises InvalidTransactionStateError if none is open."""
        with self._alone():
            return self._opened()[0].id

    @property
    def write_id(self) -> WriteId:
        """The open transaction's write id, which is in the names of its directories."""
        with self._alone():
            return self._opened()[0].write_id(self._table.database, self._table.name)

    @property
    def waiting(self) -> int:
        """How many transactions of the batch have not begun yet."""
        with self._alone():
            return len(self._waiting)

    # --- transactions ------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """A transaction that commits at the end of the block, and is aborted if an error leaves it."""
        self.begin_transaction()
        with self._alone():
            self._opened()[0].ends_with_block()
        try:
            yield self
        except BaseException:
            if self._is_here:
                self.abort_transaction()
            raise
        self.commit_transaction()

    def begin_transaction(self) -> None:
        """Begin the next transaction of the batch, or a batch if there is none left.

        Raises InvalidTransactionStateError if one is open, StreamingTransactionError if none can be begun or the table
        was altered or replaced since the stream began.
        """
        with self._alone():
            if self._is_closed:
                raise InvalidTransactionStateError(f"the stream into {self._table.full_name} is closed")
            if self._transaction is not None:
                raise InvalidTransactionStateError(
                    f"transaction {self._transaction.id} is open: commit or abort it before the next one"
                )
            try:
                transaction = self._next_transaction()
                self._begin(transaction)
            except TableChangedError as error:
                name = self._table.full_name
                raise StreamingTransactionError(f"{name} was altered or replaced: connect again ({error})") from error
            except HiveAcidError as error:
                raise StreamingTransactionError(f"no transaction on {self._table.full_name}: {error}") from error

    def write(self, records: Any) -> int:
        """Take records into the open transaction, and return their number; what they are is the writer's matter.

        Bytes, tables and batches are taken as a whole or not at all; of a file or reader what came before a wrong
        record may have been taken, so abort the transaction then. Records of one thread keep their order.

        Raises SerializationError for records that cannot be stored, InvalidTransactionStateError outside of a
        transaction, and StreamingTransactionError if files cannot be written: the transaction is then aborted.
        """
        with self._alone():
            transaction = self._opened()[0]
        count = 0
        for table in self._writer.parse(records, self._layout.columns, self._layout.defaults):
            placed = self._layout.place(table)
            with self._alone():
                current, delta = self._opened()
                if current is not transaction:
                    raise InvalidTransactionStateError(f"transaction {transaction.id} ended while records were written")
                with self._aborting("the records could not be written"):
                    delta.add(placed)
                self._records += table.num_rows
            count += table.num_rows
        return count

    def commit_transaction(self, key: str | None = None, value: str = "") -> None:
        """Make the transaction's rows visible, all at once.

        With `key`, which begins with ``_meta``, the commit also sets that parameter of the table, by which a program
        can tell after a crash how far it got. A key of `hive_acid.format.progress.progress_parameter` takes numbers
        that only grow: a batch that was committed before is then refused.

        Raises StreamingTransactionError if the transaction is aborted instead, and MetastoreUnreachableError if the
        answer is lost: then nobody knows whether it has committed, and its files are left alone.
        """
        with self._alone():
            transaction, delta = self._opened()
            with self._aborting("it could not be committed"):
                delta.publish()
                if key is not None:
                    transaction.set_with_commit(self._table.id, key, value)
                transaction.commit()
            self._forget(committed=self._statistics.committed + 1, records=self._statistics.records + self._records)

    def abort_transaction(self) -> None:
        """Undo the open transaction. Raises InvalidTransactionStateError if none is open."""
        with self._alone():
            transaction, _ = self._opened()
            self._abort(transaction)

    def close(self) -> None:
        """Abort what is open, and end the stream; safe to repeat."""
        if not self._is_here:
            return
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            if self._transaction is not None:
                self._abort(self._transaction)
            for transaction in self._waiting:
                _end(transaction)
            self._waiting = []
            if self._owned is not None:
                self._owned.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- inside ------------------------------------------------------------------------------------

    @property
    def _is_here(self) -> bool:
        """Whether this is the process that has made it."""
        return self._process == os.getpid()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time, of the process that has made the stream."""
        if not self._is_here:
            raise OtherProcessError(
                f"the stream into {self._table.full_name} is of process {self._process}, which forked this one: open "
                "one here"
            )
        with self._lock:
            yield

    def _opened(self) -> tuple[Transaction, Delta]:
        if self._transaction is None or self._delta is None:
            raise InvalidTransactionStateError(
                f"no transaction is open on the stream into {self._table.full_name}: begin one"
            )
        return self._transaction, self._delta

    def _next_transaction(self) -> Transaction:
        """One that the metastore has not given up; those that waited too long, as in a paused process, are let go."""
        while self._waiting:
            transaction = self._waiting.pop(0)
            if not transaction.is_given_up:
                return transaction
        opened = open_transactions(
            self._connection,
            self._batch_size,
            TransactionKind.WRITE,
            lock_timeout_ms=self._lock_timeout_ms,
            tables=[self._table.full_name],
            only_adds=True,
            agent_info=self._agent_info,
            with_lock=self._batch_size == 1,
        )
        if self._batch_size == 1:  # its write id comes with its lock
            return opened[0]
        try:
            Transaction.allocate_write_ids(opened, self._table.database, self._table.name)
        except BaseException:
            for transaction in opened:
                _end(transaction)
            raise
        self._waiting = opened[1:]
        return opened[0]

    def _static_partition(self) -> str | None:
        """The name of the one partition that all records go to; None if they tell."""
        values = self._layout.static_values
        return None if values is None else name_there(self._connection, self._table, values)

    def _begin(self, transaction: Transaction) -> None:
        table = self._table
        intent = Intent(Operation.INSERT, partition=lambda _: self._partition)
        try:
            meant = TableReference.of(table)
            begun = TableWrite.begin(self._connection, self._definitions, transaction, meant, intent)
            if _identity(_streamed(begun.table)) != _identity(table):
                raise TableChangedError(f"{table.full_name} has other columns, other constraints, or another place")
            self._delta = Delta(begun, self._compression)
        except BaseException:
            _end(transaction)
            raise
        transaction.on_abort(partial(self._undo, self._delta))
        self._transaction, self._records = transaction, 0

    def _undo(self, delta: Delta) -> None:
        """Remove what was written, unless a thread still writes it, as the program ends: then the Cleaner does."""
        if not self._lock.acquire(timeout=_UNDO_WITHIN_S):
            raise TimeoutError("a thread writes to the stream still")
        try:
            delta.undo()
        finally:
            self._lock.release()

    @contextmanager
    def _aborting(self, what: str) -> Iterator[None]:
        """An error inside aborts the transaction, unless its outcome is unknown."""
        transaction, _ = self._opened()
        try:
            yield
        except (HiveAcidError, OSError, pa.ArrowException) as error:
            if transaction.state is TransactionState.UNKNOWN:
                self._forget()
                raise
            self._abort(transaction)
            raise StreamingTransactionError(f"transaction {transaction.id} is aborted: {what}: {error}") from error
        except BaseException:
            self._abort(transaction)
            raise

    def _abort(self, transaction: Transaction) -> None:
        _end(transaction)
        self._forget(aborted=self._statistics.aborted + 1)

    def _forget(self, **counts: int) -> None:
        created = self._statistics.partitions_created + (self._delta.partitions_created if self._delta else 0)
        self._transaction = self._delta = None
        self._statistics = replace(self._statistics, partitions_created=created, **counts)


def _end(transaction: Transaction) -> None:
    """Abort a transaction, if it is not over and its outcome not unknown."""
    try:
        transaction.abort()
    except TransactionClosedError:
        return


def _streamed(table: Table) -> Table:
    """The table. Raises StreamingConnectionError if it is none to stream into."""
    if not table.is_full_acid or table.input_format != ORC_INPUT:
        raise StreamingConnectionError(f"{table.full_name} is not a full-ACID table (transactional, in ORC files)")
    try:
        refuse_uncompared(table)
    except UnsupportedTableError as error:
        raise StreamingConnectionError(str(error)) from None
    return table


def _identity(table: Table) -> tuple[object, ...]:
    """What must not change while rows are written."""
    columns = tuple((column.name, column.type) for column in table.all_columns)
    constraints = (*table.enforced, *(one for one in table.constraints if one.is_default))
    kept = {(one.kind, one.columns, one.expression) for one in constraints}
    return table.id, table.location, columns, len(table.columns), table.bucket_columns, table.buckets, kept
