"""The verbs of a session that change the rows of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame

from hive_acid.catalog.alterations import NewColumns
from hive_acid.catalog.references import TableReference
from hive_acid.catalog.table import Column, Table
from hive_acid.errors import ColumnError, TableChangedError, TableNotAcidError, TransactionClosedError
from hive_acid.spark.change import dml, merge_job
from hive_acid.spark.change.insert import insert as insert_rows
from hive_acid.spark.change.insert import overwrite as overwrite_rows
from hive_acid.spark.change.merge import MergeBuilder, RowCounts
from hive_acid.spark.change.new_matches import NewMatches
from hive_acid.spark.change.source import Join, joined, joined_if_any
from hive_acid.spark.conditions.expressions import Expression
from hive_acid.spark.conditions.fields import assigns_to
from hive_acid.spark.plans.telling import tell
from hive_acid.spark.read.listing import check_full_acid, check_transactional
from hive_acid.spark.snapshots.block import Begun
from hive_acid.spark.snapshots.blocks import Result
from hive_acid.spark.tables import plain
from hive_acid.spark.tables.plain import refuse_acid
from hive_acid.spark.values.argument_checks import check_condition, check_frame, check_partition, check_values
from hive_acid.spark.verbs.base import SessionBase
from hive_acid.spark.write import insert, insert_only, overwrite
from hive_acid.spark.write.planned import Planned
from hive_acid.transactions.locks import Operation
from hive_acid.transactions.transaction import Transaction
from hive_acid.write.table_write import Intent, TableWrite


class ChangeVerbs(SessionBase):
    """What a session does with the rows of a table: each verb is one transaction, or part of the thread's."""

    def insert(self, table: str | Table, frame: DataFrame, *, schema_evolution: bool = False) -> int:
        """As `AcidTable.insert`, without a read of the table."""
        check_frame("frame", frame)
        if self._is_dummy:
            found = self._lookup(table)
            refuse_acid(found)
            return plain.insert(self._context, found, frame)

        def plan(begun: TableWrite) -> Planned[int]:
            rows = insert.with_nulls(begun.table, frame) if schema_evolution else frame
            by = insert_rows if begun.table.is_full_acid else insert_only.insert
            return by(self._context, begun, rows)

        evolving = insert.evolving(frame) if schema_evolution else None
        return self._change(table, Intent(Operation.INSERT), plan, by_files=not evolving, evolving=evolving)

    def replace_matched(self, table: str | Table, frame: DataFrame, join: Join) -> int:
        """Delete the rows that match one of a source, and insert those of `frame`; gives their number.

        Nobody else is to do that at the same time: it conflicts with who has added a row that it would have deleted.
        To be run within a transaction, whose statements it is two of.
        """
        check_frame("frame", frame)
        self.delete(
            table,
            source=join.source,
            on=join.on,
            target_alias=join.target_alias,
            source_alias=join.source_alias,
        )
        return self._fill(table, lambda of: frame, join=join)

    def overwrite(
        self,
        table: str | Table,
        frame: DataFrame,
        *,
        partition: Mapping[str, str | None] | None = None,
        where: Expression | None = None,
        if_not_exists: bool = False,
    ) -> int:
        """As `AcidTable.overwrite`, without a read of the table."""
        check_frame("frame", frame)
        check_partition(partition)
        check_condition("where", where)
        if if_not_exists and (partition is None or where is not None):
            raise ColumnError("if_not_exists is of one partition: give partition, and no where")
        if where is not None:
            self._check_boolean(table, where)
            return self._replace(table, frame, partition, where)

        if self._is_dummy:
            found = self._lookup(table)
            refuse_acid(found)
            return plain.overwrite(self._context, found, frame, partition)

        def plan(begun: TableWrite) -> Planned[int]:
            by = overwrite_rows if begun.table.is_full_acid else insert_only.overwrite
            planned = by(self._context, begun, frame, partition)
            # Behind the lock: another client may have made it since somebody looked.
            is_there = if_not_exists and overwrite.is_there(self.connection, begun)
            return replace(planned, run=lambda: planned.nothing) if is_there else planned

        def intent(transaction: Transaction, meant: TableReference) -> Intent:
            return overwrite.overwriting(self.connection, transaction, meant, partition or {})

        return self._change(table, intent, plan, by_files=True)

    def update(
        self,
        table: str | Table,
        set: Mapping[str, Expression],  # noqa: A002 - the name that Delta's users know
        where: Expression | None = None,
        *,
        source: DataFrame | None = None,
        on: Expression | None = None,
        target_alias: str | None = None,
        source_alias: str = "s",
    ) -> int:
        """As `AcidTable.update`, without a read of the table; SQL text may call the table by `target_alias`."""
        check_values("set", set)
        check_condition("where", where)
        join = joined_if_any(source, on, target_alias, source_alias)
        if join is not None:
            builder = self._merging("UPDATE", table, join)
            return builder.whenMatchedUpdate(where, set).execute().updated
        self._check_boolean(table, where, target_alias)
        return self._change(
            table,
            Intent(Operation.UPDATE, keeps_keys=partial(_keeps_key, set)),
            lambda begun: dml.update(self._context, begun, set, where, target_alias=target_alias),
        )

    def delete(
        self,
        table: str | Table,
        where: Expression | None = None,
        *,
        source: DataFrame | None = None,
        on: Expression | None = None,
        target_alias: str | None = None,
        source_alias: str = "s",
    ) -> int:
        """As `AcidTable.delete`, without a read of the table; SQL text may call the table by `target_alias`."""
        check_condition("where", where)
        join = joined_if_any(source, on, target_alias, source_alias)
        if join is None:
            self._check_boolean(table, where, target_alias)
        else:
            join.check_boolean(self.spark, self._known(table), join.on, where)
        return self._change(
            table,
            Intent(Operation.DELETE),
            lambda begun: dml.delete(self._context, begun, where, join=join, target_alias=target_alias),
        )

    def merge(
        self,
        table: str | Table,
        source: DataFrame,
        on: Expression,
        *,
        target_alias: str = "t",
        source_alias: str = "s",
    ) -> MergeBuilder:
        """As `AcidTable.merge`, without a read of the table."""
        return self._merging("MERGE", table, joined(source, on, target_alias, source_alias))

    def _replace(
        self, table: str | Table, frame: DataFrame, partition: Mapping[str, str | None] | None, where: Expression
    ) -> int:
        meant = self._definitions.reference(table)
        if partition is not None:
            raise ColumnError(
                f"an overwrite of {meant.full_name} is of a partition, or of rows by a condition: not both"
            )
        if self._known(table).is_plain and not self._is_dummy:
            return self._replace_partitions(table, frame, where)

        def run() -> int:
            self.delete(table, where)
            return self._fill(table, lambda of: insert.only_where(of, frame, where), where)

        if self._is_dummy:
            return run()
        return self._blocks.together(run, [meant.full_name])

    def _fill(
        self,
        table: str | Table,
        rows: Callable[[Table], DataFrame],
        where: Expression | None = None,
        join: Join | None = None,
    ) -> int:
        """Insert rows in the place of those that `delete` has deleted, by a condition or by a join with a source."""

        def plan(begun: TableWrite) -> Planned[int]:
            planned = insert_rows(self._context, begun, rows(begun.table))

            def run() -> int:
                found = partial(dml.deleted, table=begun.table, where=where, join=join)
                NewMatches.look(self._context, begun, found)
                return planned.run()

            return replace(planned, run=run)

        return self._change(table, Intent(Operation.INSERT, inserts_what_lacks=True), plan)

    def _replace_partitions(self, table: str | Table, frame: DataFrame, where: Expression) -> int:
        """Replace the partitions of a plain table of which a condition is true, or all rows of one without."""

        def plan(begun: TableWrite) -> Planned[int]:
            of = begun.table
            if not of.is_plain:
                raise TableChangedError(f"{of.full_name} was made an ACID table meanwhile: run the statement again")
            emptied = plain.partitions_where(self._context, of, where)
            rows = insert.only_where(of, frame, where)
            if not (emptied or of.partition_keys):
                return insert_only.insert(self._context, begun, rows)
            return insert_only.overwrite(self._context, begun, rows, emptied=emptied)

        return self._change(table, Intent(Operation.UPDATE, overwrites=True), plan, by_files=True)

    def _merging(self, verb: str, table: str | Table, join: Join) -> MergeBuilder:
        found = self._held(table)

        def run(builder: MergeBuilder) -> RowCounts:
            builder.check_booleans(self.spark, self._known(found))
            # Also where it only inserts: which rows are new depends on those that are there (as in Hive's
            # xlock.mergeinsert).
            return self._change(
                found,
                Intent(
                    *builder.operations,
                    inserts_what_lacks=bool(builder.not_matched),
                    keeps_keys=builder.keeps_keys,
                ),
                lambda begun: merge_job.merge(self._context, begun, builder, verb),
                evolving=builder.new_columns if builder.evolves else None,
            )

        return MergeBuilder(found, join, run)

    def _change(
        self,
        table: str | Table,
        intent: Intent | Callable[[Transaction, TableReference], Intent],
        plan: Callable[[TableWrite], Planned[Result]],
        *,
        by_files: bool = False,
        evolving: NewColumns | None = None,
    ) -> Result:
        """Begin a write, plan it and do it; with `evolving` the table is given the columns that it lacks before.

        One that goes `by_files` may be of an insert-only table or of a plain one, too.
        """
        check = self._check_fillable if by_files else check_full_acid
        if self._is_dummy:
            found = self._lookup(table)
            refuse_acid(found)
            check(found)
        name = self._meant(table).full_name

        def begin(transaction: Transaction) -> Result:
            meant = self._meant(table)
            if evolving is not None:
                self._evolve(transaction, meant, check, evolving)
            about = intent if isinstance(intent, Intent) else intent(transaction, meant)
            begun = self._context.begin(transaction, meant, about)
            check(begun.table)
            if evolving is not None and evolving(begun.table):
                begun.table = self._alterations.add_missing_columns(transaction, meant, evolving)
            planned = plan(begun)
            tell(planned.plan)
            return planned.run()

        # What it takes rows from are frames, with snapshots of their own.
        return self._blocks.changing(begin, [name])

    def _check_fillable(self, table: Table) -> None:
        """Raise ViewError for a view, and TransactionClosedError for a plain table in a longer transaction."""
        if not table.is_plain:
            check_transactional(table)
        elif (block := self._blocks.current()) is not None and block.begun is not Begun.BY_STATEMENT:
            raise TransactionClosedError(
                f"{table.full_name} is a plain table, whose rows would be seen before the block commits, and stay if "
                "it aborts: write them before the block or after it"
            )

    def _evolve(
        self, transaction: Transaction, meant: TableReference, check: Callable[[Table], None], evolving: NewColumns
    ) -> None:
        """Add the columns that a table lacks. Its lock comes before that of the write, as in every alteration."""

        def missing(table: Table) -> Sequence[Column]:
            check(table)
            return evolving(table)

        assert meant.known is not None
        try:
            lacks = bool(missing(meant.known))
        except (ColumnError, TableNotAcidError):
            lacks = False  # so it was once: what is so now is found out behind the lock
        if lacks:
            self._alterations.add_missing_columns(transaction, meant, missing)


def _keeps_key(given: Mapping[str, Expression], table: Table) -> bool:
    """Whether assignments leave the primary key as it is."""
    return not assigns_to(table.key, given)
