"""A table as the source of streams: each batch has the rows of the writes that were committed since the one before.

A batch is read in a transaction of its own, as a frame is, and sees the table as it is then: rows that were deleted
meanwhile are not in it. The transaction ends when the batch is over, or the query.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from pyspark.sql import DataFrame

from hive_acid.catalog.references import TableReference
from hive_acid.catalog.table import Table
from hive_acid.errors import SnapshotOutdatedError, TableChangedError, UnsupportedTableError
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from hive_acid.spark.read.listing import TableState, check_transactional
from hive_acid.spark.snapshots.blocks import Blocks
from hive_acid.spark.stream_source.batch_limit import BatchLimit
from hive_acid.spark.stream_source.fresh_rows import fresh_rows, written
from hive_acid.spark.stream_source.kept_files import KeptFiles
from hive_acid.spark.stream_source.position import EARLIEST, Fresh, Position
from hive_acid.spark.stream_source.start import OPTION, Start
from hive_acid.spark.write.statement import Context
from hive_acid.transactions.beginning import valid_write_ids
from hive_acid.transactions.states import TransactionKind
from hive_acid.transactions.transaction import Transaction
from hive_acid.wire import table_name, ttypes

_POLL_S = 0.2
"""So long after a look that has found nothing new the next one waits: Spark asks a hundred times in a second."""

_WATCH_S = 0.5


class Place(NamedTuple):
    """Where a stream's batches are read: a session of Spark that is joined to the metastore, and its transactions."""

    context: Context
    blocks: Blocks


class TableSource:
    """What each query of one stream asks; several may share it."""

    def __init__(
        self,
        place: Place,
        table: Table,
        start: Start,
        limit: BatchLimit,
        is_active: Callable[[str], bool | None] | None = None,
    ) -> None:
        """`is_active` says whether a query is in a batch; without it, who asks says soon when one is over."""
        self.move_to(place)
        self._table = table
        self._reference = TableReference.of(table)
        self._start = start
        self._limit = limit
        self._is_active = is_active
        self._reading: dict[str, Transaction] = {}
        self._kept = KeptFiles()
        """Of an insert-only table, whose rows are told apart by where their writes have put them."""
        self._looked: dict[str, tuple[str, float]] = {}
        self._guard = threading.Lock()

    def move_to(self, place: Place) -> None:
        """Read in another session of Spark from now on."""
        self._context, self._blocks = place

    # --- as RowSource has it ---------------------------------------------------------------------

    def latest(self, query: str) -> str:
        """The writes that are committed now. A query that has found nothing new waits before it looks again."""
        known, at = self._looked.get(query, ("", 0.0))
        pause_s = at + _POLL_S - time.monotonic()
        if pause_s > 0:
            time.sleep(pause_s)
        now = Position.of(self._table.id, self._write_ids(), EARLIEST)
        if not self._table.is_full_acid:
            now = self._kept.from_now(query, now, self._begin_to_keep)
        found = str(now)
        self._looked[query] = found, time.monotonic() if found == known else 0.0
        return found

    def _begin_to_keep(self) -> tuple[Position, Transaction]:
        transaction = self._blocks.begin(TransactionKind.READ, [self._table.full_name])
        write_ids = transaction.write_ids(self._table.database, self._table.name)
        return Position.of(self._table.id, write_ids, EARLIEST), transaction

    def end_of_batch(self, query: str, start: str | None, newest: str) -> str:
        """`newest`, or the last write that still belongs to one batch by the limit.

        Where the stream has begun is told by its checkpoint, if there is one, and not by what it would begin with now.
        """
        since = self._start.since if start is None else Position.parse(start).since
        newest = str(Position.parse(newest).beginning_at(since))
        if not self._limit or start == newest or (start is None and self._start.is_latest):
            return newest
        fresh = self._fresh(start, newest)
        transaction = self._blocks.begin(TransactionKind.READ, [self._table.full_name], with_lock=True)
        try:
            table = self._context.locked_for_reading(transaction, self._reference)
            found = written(self._state(query, transaction, table), fresh)
        finally:
            transaction.end_later()
        last = self._limit.last_write(fresh, found)
        if last is None:
            return newest
        return str(Position.parse(newest).as_far_as(last, None if start is None else Position.parse(start)))

    def batch(self, query: str, start: str | None, end: str) -> DataFrame:
        """The rows of the writes that `end` sees and `start` does not."""
        fresh = self._fresh(start, end)
        name = self._table.full_name
        transaction = self._blocks.begin(TransactionKind.READ, [name], with_lock=True)
        try:
            table = self._context.locked_for_reading(transaction, self._reference)
            self._check_same(table)
            state = self._state(query, transaction, table)
            self._check_knows(state, Position.parse(end))
            if table.is_full_acid and (start is not None or Position.parse(end).since > EARLIEST):
                self._refuse_rebalanced(state, fresh)
            rows = fresh_rows(self._context.spark, state, fresh)
            self._kept.reads_up_to(query, Position.parse(end))
        except BaseException:
            transaction.end_later()
            raise
        with self._guard:
            self._reading[query] = transaction
        if self._is_active is not None:
            _Watch(self, self._is_active, query, transaction).start()
        return rows

    def location(self) -> str:
        """Where the table is now."""
        return self._context.definitions.now(self._reference).location

    def _state(self, query: str, transaction: Transaction, table: Table) -> TableState:
        """The table as the transaction sees it; an insert-only one as if no compaction had been since a batch."""
        state = self._context.state(transaction, table, compacted_by=self._kept.compacted_by(query))
        return state if self._kept.are_kept(query) else self._state(query, transaction, table)

    def is_over(self, query: str) -> None:
        self.ends(query, None)

    def stopped(self, query: str) -> None:
        self.ends(query, None)
        self._kept.end(query)

    # --- what they need --------------------------------------------------------------------------

    def ends(self, query: str, which: Transaction | None) -> None:
        """End the transaction in which a query's batch is read, if it still is `which`, or any."""
        with self._guard:
            transaction = self._reading.get(query)
            if transaction is None or which not in (None, transaction):
                return
            del self._reading[query]
        transaction.end_later()

    def is_reading(self, query: str, transaction: Transaction) -> bool:
        """Whether a query's batch is read in that transaction."""
        return self._reading.get(query) is transaction

    def _fresh(self, start: str | None, end: str) -> Fresh:
        to = Position.parse(end)
        since = None if start is None else Position.parse(start)
        if self._table.id and {self._table.id} != {of.table_id for of in (since, to) if of is not None}:
            raise TableChangedError(
                f"the checkpoint is of another table than {self._table.full_name} is now, which was created anew or "
                "has its name since: begin the stream with another checkpoint"
            )
        if since is None and self._start.is_latest:
            return Fresh(())
        return Fresh.between(since, to)

    def _write_ids(self) -> ValidWriteIdList:
        connection = self._context.connection
        answer = connection.call("get_open_txns")
        now = ValidTxnList.from_open_txns(answer.txn_high_water_mark, answer.open_txns, answer.abortedBits)
        name = table_name(self._table.database, self._table.name)
        request = ttypes.GetValidWriteIdsRequest(fullTableNames=[name], validTxnList=str(now))
        found = valid_write_ids(connection.call("get_valid_write_ids", request).tblValidWriteIds[0])
        self._check_same(self._context.definitions.now(self._reference))  # behind it: the ids are of this table
        return found

    def _check_same(self, table: Table) -> None:
        """Raise TableChangedError if the table has other columns than the query."""
        check_transactional(table)
        then, now = ([(column.name, column.type) for column in of.all_columns] for of in (self._table, table))
        if then != now:
            raise TableChangedError(
                f"{table.full_name} has other columns than when its stream was begun: start the query again, with the "
                "same checkpoint, from spark.readStream.table anew"
            )

    def _refuse_rebalanced(self, state: TableState, fresh: Fresh) -> None:
        """Raise UnsupportedTableError if rows that have come may be under the id of a write that is new.

        A rebalance with an order gives all rows the last write id, and the queue does not tell which had one.
        """
        table = state.table
        compacted = [
            found.directory
            for partition in state.partitions
            if (found := partition.state.base) is not None and found.directory.visibility_txn_id
        ]
        if not any(fresh.any_in(EARLIEST, base.max_write_id) for base in compacted):
            return
        request = ttypes.ShowCompactRequest(dbName=table.database, tbName=table.name)
        for one in self._context.connection.call("show_compact", request).compacts:
            if (one.dbname, one.tablename, one.type) != (table.database, table.name, ttypes.CompactionType.REBALANCE):
                continue
            if one.commitTime and fresh.any_in(EARLIEST, one.hightestWriteId or EARLIEST):
                raise UnsupportedTableError(
                    f"{table.full_name} was rebalanced up to write {one.hightestWriteId}, before the stream had had "
                    "all rows up to that: rows that have come may be under its id now. Begin a stream behind it, with "
                    f"another checkpoint and {OPTION} {(one.hightestWriteId or 0) + 1}"
                )

    def _check_knows(self, state: TableState, to: Position) -> None:
        if to.high > EARLIEST and not state.write_ids.is_valid(to.high):
            raise SnapshotOutdatedError(
                f"the checkpoint knows write {to.high} of {self._table.full_name}, and the metastore does not: it was "
                "put back to a state of before. Begin the stream with another checkpoint"
            )


class _Watch(threading.Thread):
    """Ends a batch's transaction when its query waits for the next time, which may be long."""

    def __init__(
        self, source: TableSource, is_active: Callable[[str], bool | None], query: str, transaction: Transaction
    ) -> None:
        super().__init__(name=f"hive-acid-stream-{transaction.id}", daemon=True)
        self._source = source
        self._asked = is_active
        self._query = query
        self._transaction = transaction

    def run(self) -> None:
        time.sleep(_WATCH_S)
        while self._source.is_reading(self._query, self._transaction) and self._is_active():
            time.sleep(_WATCH_S)
        self._source.ends(self._query, self._transaction)

    def _is_active(self) -> bool:
        try:
            return self._asked(self._query) is True
        except Exception:  # Spark has been stopped
            return False
