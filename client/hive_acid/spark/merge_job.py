"""How a MERGE runs: the source is computed once and kept, the target is read once, all events are written in one job.

A join finds the pairs of target rows and source rows, and with clauses BY SOURCE the target rows without one. For the
source rows that are in no pair, those that an insert clause takes join the pairs in one shuffle by source row: one
that meets a pair there is not inserted. So nothing is read or kept twice (data-path.md §6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from hive_acid import catalog
from hive_acid.alterations import add_columns
from hive_acid.catalog import Table
from hive_acid.errors import MergeCardinalityError
from hive_acid.locks import Operation
from hive_acid.spark.assign import assign, quoted
from hive_acid.spark.changes import REPEATED, UPDATES, change_events, replacements
from hive_acid.spark.dml import moved_key
from hive_acid.spark.events import DELETE, INSERT
from hive_acid.spark.expressions import expression
from hive_acid.spark.merge import Clause, MergeBuilder, RowCounts
from hive_acid.spark.predicates import Predicate, all_of, any_of, predicate_of
from hive_acid.spark.read import KEY_COLUMNS, partition_columns
from hive_acid.spark.source import SOURCE_ROW, KeptSource, kept
from hive_acid.spark.statement import Context, Statement, analysed, column_errors
from hive_acid.spark.types import spark_type
from hive_acid.transaction import Transaction

_CLAUSE = "__acid_clause"
_ROW = "__acid_row"
_KINDS = "__acid_kinds"
_GROUP = "__acid_group"
_IS_PAIR = "__acid_is_pair"


def merge(context: Context, transaction: Transaction, table: Table, builder: MergeBuilder, verb: str) -> RowCounts:
    """Run a merge; `verb` is what errors call it.

    Raises MergeCardinalityError, ColumnError, and UnsupportedTableError for new rows of a table that is CLUSTERED by
    the hash of Hive 2.
    """
    if new := builder.new_columns():
        table = add_columns(context.connection, transaction, table, new, missing=True)
    statement = Statement(context, transaction, table)
    changes_rows = bool(builder.matched or builder.by_source)
    inserts = bool(builder.not_matched) or any(clause.values is not None for clause in builder.clauses)
    if inserts:
        statement.refuse_clustered(verb)
    operation = Operation.UPDATE if changes_rows else Operation.INSERT
    statement.lock(operation)
    with column_errors(table):
        changes = analysed(_Merge(statement, builder, kept(builder.join, table)).changes())
    write = statement.write()
    events = change_events(changes, table, write, deletes_only=not inserts, once=bool(builder.matched))
    counts = statement.run(events, write, operation)
    found: Mapping[str, Any] = events.counts.get
    if found.get(REPEATED):
        raise MergeCardinalityError(
            f"{verb} of {table.full_name}: {found[REPEATED]} of its rows match more than one source row, so "
            "which values they get would be chance. Make the source's rows unique in what ON compares"
        )
    updated = int(found[UPDATES] or 0)
    return RowCounts(inserted=counts.inserts - updated, updated=updated, deleted=counts.deletes - updated)


class _Merge:
    """The frames of one merge."""

    def __init__(self, statement: Statement, builder: MergeBuilder, source: KeptSource) -> None:
        self._statement = statement
        self._table = statement.table
        self._builder = builder
        self._source = source
        self._old_keys = [F.col(name) for name in partition_columns(self._table)]

    def changes(self) -> DataFrame:
        """All that is to be written, in the shape of `hive_acid.spark.changes`."""
        pairs = self._pairs()
        if not self._builder.not_matched:
            rows = pairs.where(F.col(_KINDS).isNotNull())
        else:
            rows = self._without_matched(pairs.unionByName(self._candidates()))
        return replacements(
            rows,
            F.col(_KINDS),
            self._old_keys,
            [F.col(_new_key(key)) for key in self._table.partition_keys],
            self._statement.identity,
            F.col(_ROW),
        )

    def _pairs(self) -> DataFrame:
        """Target rows with what becomes of each, and the source row that says so; nothing for those left alone."""
        builder, table = self._builder, self._table
        target = self._statement.target(wanted=self._wanted()).alias(builder.join.target_alias)
        how = "left" if builder.by_source else "inner"
        pairs = target.join(self._source.joined(), expression(builder.join.on), how)
        clauses = [*builder.resolved(builder.matched, table), *builder.resolved(builder.by_source, table)]
        is_matched = F.col(SOURCE_ROW).isNotNull()
        of_kind = [is_matched] * len(builder.matched) + [~is_matched] * len(builder.by_source)
        values = _with_values(pairs.select("*", _clause(clauses, of_kind).alias(_CLAUSE)), clauses)
        deleting = [number for number, clause in enumerate(clauses) if clause.values is None]
        kinds = F.when(F.col(_CLAUSE).isin(deleting), F.array(F.lit(DELETE))).when(
            F.col(_CLAUSE).isNotNull(), F.array(F.lit(DELETE), F.lit(INSERT))
        )
        new = _NewRow(table, values, clauses, self._target_column)
        keys = (
            moved_key(self._target_column(key), text, new.value(key)) if new.assigns(key) else text
            for key, text in zip(table.partition_keys, self._old_keys, strict=True)
        )
        return values.select(
            SOURCE_ROW,
            F.lit(True).alias(_IS_PAIR),
            kinds.alias(_KINDS),
            *self._old_keys,
            *(text.alias(_new_key(key)) for text, key in zip(keys, table.partition_keys, strict=True)),
            *KEY_COLUMNS,
            new.row().alias(_ROW),
        )

    def _wanted(self) -> Predicate | None:
        """What is known of the target rows that matter: they match, or a clause BY SOURCE takes them.

        Without insert clauses it does not matter what a match is that no clause takes.
        """
        builder = self._builder
        taken = None if builder.not_matched else self._taken(builder.matched)
        matched = all_of((self._source.matched, taken))
        if not builder.by_source:
            return matched
        by_source = self._taken(builder.by_source)
        return any_of((matched, by_source)) if builder.matched or builder.not_matched else by_source

    def _taken(self, clauses: Sequence[Clause]) -> Predicate | None:
        """What is known of the target rows that one of the clauses takes."""
        join = self._builder.join
        return any_of(
            predicate_of(clause.condition, self._table, join.target_alias, join.source.columns) for clause in clauses
        )

    def _candidates(self) -> DataFrame:
        """The source rows that an insert clause takes if they match nothing, in the shape of `_pairs`.

        They have no identity but their number, which keeps them in order.
        """
        builder, table = self._builder, self._table
        clauses = builder.resolved(builder.not_matched, table)
        source = self._source.frame.alias(self._source.alias)
        chosen = source.select("*", _clause(clauses, [F.lit(True)] * len(clauses)).alias(_CLAUSE))
        values = _with_values(chosen.where(F.col(_CLAUSE).isNotNull()), clauses)
        new = _NewRow(table, values, clauses, lambda column: F.lit(None).cast(spark_type(column.type)))
        no_text = F.lit(None).cast("string")
        return values.select(
            SOURCE_ROW,
            F.lit(False).alias(_IS_PAIR),
            F.array(F.lit(INSERT)).alias(_KINDS),
            *(no_text.alias(name) for name in partition_columns(table)),
            *(new.value(key).cast("string").alias(_new_key(key)) for key in table.partition_keys),
            F.lit(None).cast("bigint").alias(KEY_COLUMNS[0]),
            F.lit(None).cast("int").alias(KEY_COLUMNS[1]),
            F.col(SOURCE_ROW).alias(KEY_COLUMNS[2]),
            new.row().alias(_ROW),
        )

    def _without_matched(self, rows: DataFrame) -> DataFrame:
        """`rows` less the candidates whose source row is in a pair, and less the pairs that change nothing.

        To tell, a pair goes where its source row goes as a mark without content; with its content it goes anywhere, so
        that one source row with many matches does not bring them all to one task.
        """
        is_pair = F.col(_IS_PAIR)
        anywhere = -1 - F.shiftrightunsigned(F.xxhash64(*KEY_COLUMNS, *partition_columns(self._table)), 1)
        is_mark = F.col("__acid_is_mark")
        once = F.array(F.lit(False))
        twice = F.array(F.lit(True), F.lit(False))
        marked = rows.select(
            "*",
            F.explode(
                F.when(~is_pair, once)
                .when(F.col(SOURCE_ROW).isNull(), once)
                .when(F.col(_KINDS).isNull(), F.array(F.lit(True)))
                .otherwise(twice)
            ).alias("__acid_is_mark"),
        )
        kept_columns = [name for name in rows.columns if name not in (SOURCE_ROW, _ROW)]
        grouped = marked.select(
            *kept_columns,
            is_mark.alias("__acid_is_mark"),
            F.when(~is_mark, F.col(_ROW)).alias(_ROW),
            F.when(is_mark | ~is_pair, F.col(SOURCE_ROW)).otherwise(anywhere).alias(_GROUP),
        )
        met = F.max(is_mark).over(Window.partitionBy(_GROUP))
        return grouped.select("*", met.alias("__acid_met")).where(~is_mark & (is_pair | ~F.col("__acid_met")))

    def _target_column(self, column: catalog.Column) -> Column:
        return F.col(f"{quoted(self._builder.join.target_alias)}.{quoted(column.name)}")


class _NewRow:
    """The values of a new row by column, out of a frame of `_with_values`; `old` gives what no clause assigns."""

    def __init__(
        self, table: Table, frame: DataFrame, clauses: Sequence[Clause], old: Callable[[catalog.Column], Column]
    ) -> None:
        self._table = table
        self._clauses = clauses
        self._old = old
        self._types = {field.name: field.dataType for field in frame.schema.fields}

    def assigns(self, column: catalog.Column) -> bool:
        """Whether a clause gives the column a value."""
        return any(column.name in (clause.values or {}) for clause in self._clauses)

    def value(self, column: catalog.Column) -> Column:
        """The column's value by the clause that applies."""
        value = self._old(column)
        for number, clause in enumerate(self._clauses):
            if column.name in (clause.values or {}):
                name = _new(number, column.name)
                stored = assign(self._table, column, F.col(quoted(name)), self._types[name])
                value = F.when(F.col(_CLAUSE) == number, stored).otherwise(value)
        return value

    def row(self) -> Column:
        """The new row as a struct, null where the clause deletes and where none applies."""
        assigning = [number for number, clause in enumerate(self._clauses) if clause.values is not None]
        fields = (self.value(column).alias(column.name) for column in self._table.columns)
        return F.when(F.col(_CLAUSE).isin(assigning), F.struct(*fields))


def _clause(clauses: Sequence[Clause], of_kind: Sequence[Column]) -> Column:
    """The number of the first clause whose condition holds for a row of its kind, null where none does."""
    chosen = F.lit(None).cast("int")
    for number, (clause, kind) in reversed(list(enumerate(zip(clauses, of_kind, strict=True)))):
        holds = kind if clause.condition is None else kind & expression(clause.condition)
        chosen = F.when(holds, number).otherwise(chosen)
    return chosen


def _with_values(frame: DataFrame, clauses: Sequence[Clause]) -> DataFrame:
    """`frame` with each clause's raw values in columns of their own, computed only where the clause applies."""
    return frame.select(
        "*",
        *(
            F.when(F.col(_CLAUSE) == number, expression(value)).alias(_new(number, name))
            for number, clause in enumerate(clauses)
            for name, value in (clause.values or {}).items()
        ),
    )


def _new(clause: int, name: str) -> str:
    return f"__acid_new_{clause}_{name}"


def _new_key(key: catalog.Column) -> str:
    return f"__acid_new_key_{key.name}"
