"""The verbs of a session that plan and do nothing: what EXPLAIN runs a statement with.

A verb does all that comes before its first write, in a transaction that only reads: it looks at the table, computes the
source of a join, and tells its plan, as `hive_acid.spark.verbs.changes` does before it goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hive_acid.catalog.alterations import NewColumns
from hive_acid.catalog.references import TableReference
from hive_acid.catalog.table import Table
from hive_acid.spark.plans.telling import tell
from hive_acid.spark.read.listing import check_full_acid, check_transactional
from hive_acid.spark.snapshots.blocks import Result
from hive_acid.spark.verbs.reading import ReadVerbs
from hive_acid.spark.write.planned import Planned
from hive_acid.transactions.locks import Operation
from hive_acid.transactions.transaction import Transaction
from hive_acid.write.table_write import Intent, TableWrite

_NONE = Intent(Operation.INSERT)


class Explaining(ReadVerbs):
    """The verbs that change rows, as `acid` has them, up to where they would write. Raises TransactionsOffError."""

    def __init__(self, acid: ReadVerbs) -> None:
        super().__init__(acid._context, acid._blocks, acid.manager)
        self._plan_cache = acid._plan_cache
        self._refuse_without_transactions()

    def _change(
        self,
        table: str | Table,
        intent: Intent | Callable[[Transaction, TableReference], Intent],
        plan: Callable[[TableWrite], Planned[Result]],
        *,
        also_insert_only: bool = False,
        evolving: NewColumns | None = None,
    ) -> Result:
        """Plan a write, which is not begun: no lock of a writer is taken, no id, and no column is added."""
        check = check_transactional if also_insert_only else check_full_acid
        meant = self._meant(table)
        with self._blocks.reading([meant.full_name]) as transaction:
            found = self._context.locked_for_reading(transaction, meant)
            check(found)
            if evolving is not None:
                found = _with_columns(found, evolving)
            planned = plan(TableWrite(self.connection, self._definitions, transaction, found, _NONE))
            tell(planned.plan)
            return planned.nothing


def _with_columns(table: Table, evolving: NewColumns) -> Table:
    """The table as it would be with the columns that it lacks."""
    given = {column.name: column for column in evolving(table)}
    there = [given.pop(column.name, column) for column in table.columns]
    return replace(table, columns=(*there, *given.values()))
