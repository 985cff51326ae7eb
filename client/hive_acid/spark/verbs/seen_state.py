"""What a snapshot sees of a table, listed when it is asked for."""

from __future__ import annotations

import time

from hive_acid.catalog.table import Table
from hive_acid.errors import SnapshotEndedError, TransactionClosedError
from hive_acid.spark.conditions.predicates import Predicate
from hive_acid.spark.read.listing import TableState
from hive_acid.spark.read.skipping import pruned
from hive_acid.spark.write.statement import Context
from hive_acid.transactions.transaction import Transaction

_SURELY_OPEN_S = 0.5
"""So long no metastore gives up a transaction that it has just been asked about. By the clock of the wall: that of the
process stands still while the machine sleeps."""


class SeenState:
    """A table as a transaction sees it, as far as rows of it are `wanted`.

    The write ids are known from the beginning; directories are listed `at_once` or when they are asked for. As long as
    the transaction is open that makes no difference: what others write is not among its ids, and nobody removes what it
    may read. It does where the transaction writes itself, or gets other snapshots.

    Raises what `Context.refuse_unreadable` does, SnapshotOutdatedError, and at once what `listed` raises.
    """

    def __init__(
        self,
        context: Context,
        transaction: Transaction,
        table: Table,
        wanted: Predicate | None,
        *,
        at_once: bool,
    ) -> None:
        context.refuse_unreadable(table)
        context.write_ids(transaction, table)
        self._context, self._transaction, self._table, self._wanted = context, transaction, table, wanted
        self._begun = time.time()
        self._known: TableState | None = context.state(transaction, table, wanted=wanted) if at_once else None

    def listed(self, wanted: Predicate | None) -> TableState:
        """Without partitions and files in which surely no row is `wanted`, which says as much as the first or more.

        Raises what `Context.state` does, and SnapshotEndedError if the transaction was not open any more.
        """
        if self._known is not None:
            return self._known if wanted == self._wanted else pruned(self._known, wanted)
        found = self._context.state(self._transaction, self._table, wanted=wanted)
        self._refuse_ended()
        if wanted == self._wanted:
            self._known = found
        return found

    def _refuse_ended(self) -> None:
        """Files may have been removed before they were listed, as soon as the metastore has given the snapshot up."""
        if 0 <= time.time() - self._begun < _SURELY_OPEN_S:
            return
        try:
            self._transaction.check_alive()
        except TransactionClosedError as error:
            raise SnapshotEndedError(
                f"the snapshot of {self._table.full_name} has ended before its frame was used: with `acid.close()`, or "
                "since the metastore has heard no heartbeat for hive.txn.timeout. Take acid.table again"
            ) from error
