"""MERGE, in the words of Delta's builder: clauses for matched and for unmatched source rows, then `execute`.

The source is computed once and kept, so that a source that would give other rows the second time is merged as one. The
target is read once: an inner join finds the matched pairs, which are kept as well, and what is left of the source is
inserted (data-path.md §6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid import catalog
from hive_acid.catalog import Table
from hive_acid.errors import ColumnError, MergeCardinalityError
from hive_acid.spark.assign import assign, quoted
from hive_acid.spark.changes import additions, change_events, deletions
from hive_acid.spark.dml import Expression, checked_names, expression
from hive_acid.spark.events import key_column
from hive_acid.spark.read import KEY_COLUMNS, partition_columns
from hive_acid.spark.statement import Statement, column_errors
from hive_acid.spark.types import row_type, spark_type
from hive_acid.transaction import Operation

_SOURCE_ROW = "__acid_source_row"
_CLAUSE = "__acid_clause"
_ROW = "__acid_row"
_BROADCAST_LIMIT_BYTES = 64 * 1024 * 1024
_TEXT_WIDTH_BYTES = 32


class RowCounts(NamedTuple):
    """How many rows a merge has inserted, updated and deleted."""

    inserted: int
    updated: int
    deleted: int


@dataclass(frozen=True, slots=True)
class Clause:
    """One WHEN clause: its condition, and the values it assigns; None deletes the row.

    `same_keys` are values that a row's partition columns must have already.
    """

    condition: Expression | None
    values: Mapping[str, Expression] | None
    same_keys: Mapping[str, Expression] = field(default_factory=dict)


@dataclass
class MergeBuilder:
    """A MERGE in the making. Clauses apply in the order given, the first whose condition holds decides.

    Conditions and values are Columns or SQL text over the two aliases. Nothing happens before `execute`.
    """

    table: Table
    source: DataFrame
    on: Expression
    target_alias: str
    source_alias: str
    run: Callable[[MergeBuilder], RowCounts]
    matched: list[Clause] = field(default_factory=list)
    not_matched: list[Clause] = field(default_factory=list)

    def whenMatchedUpdate(  # noqa: N802 - Delta's names
        self,
        condition: Expression | None = None,
        set: Mapping[str, Expression] | None = None,  # noqa: A002
    ) -> MergeBuilder:
        """Give a matched row the values of `set`. Raises ColumnError for an unknown or a partition column."""
        checked_names(self.table, set or {})
        return self._add(self.matched, Clause(condition, set or {}))

    def whenMatchedUpdateAll(self, condition: Expression | None = None) -> MergeBuilder:  # noqa: N802
        """Give a matched row the source's values for all columns; its partition must be the source row's."""
        given = {name.lower() for name in self.source.columns}
        keys = self._all([key for key in self.table.partition_keys if key.name in given])
        return self._add(self.matched, Clause(condition, self._all(self.table.columns), keys))

    def whenMatchedDelete(self, condition: Expression | None = None) -> MergeBuilder:  # noqa: N802
        """Delete a matched row."""
        return self._add(self.matched, Clause(condition, None))

    def whenNotMatchedInsert(  # noqa: N802
        self, condition: Expression | None = None, values: Mapping[str, Expression] | None = None
    ) -> MergeBuilder:
        """Insert a source row that matches nothing; columns that `values` does not name become null."""
        checked_names(self.table, values or {}, with_keys=True)
        return self._add(self.not_matched, Clause(condition, values or {}))

    def whenNotMatchedInsertAll(self, condition: Expression | None = None) -> MergeBuilder:  # noqa: N802
        """Insert a source row that matches nothing, with the source's values for all columns."""
        return self._add(
            self.not_matched, Clause(condition, self._all((*self.table.columns, *self.table.partition_keys)))
        )

    def execute(self) -> RowCounts:
        """Run the merge.

        Raises MergeCardinalityError when two source rows would change the same target row, ColumnError for columns and
        values that do not fit; the table is then as it was.
        """
        if not self.matched and not self.not_matched:
            raise ColumnError(f"MERGE into {self.table.full_name} has no clause: add whenMatched… or whenNotMatched…")
        return self.run(self)

    def _add(self, clauses: list[Clause], clause: Clause) -> MergeBuilder:
        if clauses and clauses[-1].condition is None:
            raise ColumnError("a clause follows one without condition: it could never apply")
        clauses.append(clause)
        return self

    def _all(self, columns: Sequence[catalog.Column]) -> dict[str, Expression]:
        given = {name.lower(): name for name in self.source.columns}
        if missing := [column.name for column in columns if column.name not in given]:
            raise ColumnError(
                f"the source of the MERGE into {self.table.full_name} has no column {', '.join(missing)}: "
                "name the values to assign instead of all"
            )
        return {column.name: F.col(f"{self.source_alias}.{quoted(given[column.name])}") for column in columns}


def merge(statement: Statement, builder: MergeBuilder) -> RowCounts:
    """Run a merge as `statement`."""
    table = statement.table
    if builder.not_matched or any(clause.values is not None for clause in builder.matched):
        statement.refuse_clustered("MERGE")
    operation = Operation.UPDATE if builder.matched else Operation.INSERT
    statement.lock(operation)
    with column_errors(table):
        merged = _Merge(statement, builder)
        updated = merged.check_cardinality() if builder.matched else 0
        changes = merged.changes()
    write = statement.write()
    counts = statement.run(change_events(changes, len(table.partition_keys), write), write, operation)
    return RowCounts(inserted=counts.inserts - updated, updated=updated, deleted=counts.deletes - updated)


class _Merge:
    """The frames of one merge: the kept source, and the kept pairs of source rows and the target rows they match."""

    def __init__(self, statement: Statement, builder: MergeBuilder) -> None:
        self._statement = statement
        self._table = statement.table
        self._builder = builder
        numbered = builder.source.select("*", F.monotonically_increasing_id().alias(_SOURCE_ROW))
        self._source = numbered.localCheckpoint(eager=True).alias(builder.source_alias)
        self._pairs = self._matched_pairs().localCheckpoint(eager=True)

    def _matched_pairs(self) -> DataFrame:
        target = self._statement.target().alias(self._builder.target_alias)
        source = F.broadcast(self._source) if self._is_small() else self._source
        on = expression(self._builder.on)
        pairs = target.join(source, on, "inner")
        clauses = self._builder.matched
        if not clauses:
            return pairs.select(_SOURCE_ROW)
        pairs = self._with_new_values(pairs.select("*", self._clause_of(clauses).alias(_CLAUSE)), clauses)
        row = self._new_row(pairs, clauses, self._target_column)
        for key in self._table.partition_keys:
            same = self._target_column(key).eqNullSafe(self._by_clause(pairs, clauses, key, self._target_column))
            row = F.when(same, row).otherwise(F.raise_error(F.lit(self._moved(key))))
        return pairs.select(*partition_columns(self._table), *KEY_COLUMNS, _SOURCE_ROW, _CLAUSE, row.alias(_ROW))

    def check_cardinality(self) -> int:
        """Raise MergeCardinalityError if a target row is to be changed twice; the number of rows to be updated."""
        updating = [number for number, clause in enumerate(self._builder.matched) if clause.values is not None]
        per_row = (
            self._pairs.where(F.col(_CLAUSE).isNotNull())
            .groupBy(*partition_columns(self._table), *KEY_COLUMNS)
            .agg(F.count(F.lit(1)).alias("matches"), F.min(_CLAUSE).alias("clause"))
        )
        most = per_row.agg(
            F.count_if(F.col("matches") > 1).alias("twice"), F.count_if(F.col("clause").isin(updating)).alias("updated")
        ).collect()[0]
        if most["twice"]:
            raise MergeCardinalityError(
                f"MERGE into {self._table.full_name}: {most['twice']} of its rows match more than one source row, so "
                "which values they get would be chance. Make the source's rows unique in what ON compares"
            )
        return int(most["updated"])

    def changes(self) -> DataFrame:
        """All that is to be written, in the shape of `hive_acid.spark.events`."""
        table, parts = self._table, []
        keys = [F.col(name) for name in partition_columns(table)]
        if self._builder.matched:
            hit = self._pairs.where(F.col(_CLAUSE).isNotNull())
            parts.append(deletions(hit, keys, self._statement.identity, row_type(table.columns)))
            if any(clause.values is not None for clause in self._builder.matched):
                parts.append(additions(hit.where(F.col(_ROW).isNotNull()), keys, _fields(table)))
        if self._builder.not_matched:
            parts.append(self._insertions())
        return reduce(DataFrame.unionByName, parts)

    def _insertions(self) -> DataFrame:
        clauses = self._builder.not_matched
        unmatched = self._source.join(self._pairs.select(_SOURCE_ROW).distinct(), _SOURCE_ROW, "left_anti")
        chosen = unmatched.alias(self._builder.source_alias).select("*", self._clause_of(clauses).alias(_CLAUSE))
        values = self._with_new_values(chosen.where(F.col(_CLAUSE).isNotNull()), clauses)
        row = self._new_row(values, clauses, _null)
        keys = [
            self._by_clause(values, clauses, key, _null).cast("string").alias(key_column(position))
            for position, key in enumerate(self._table.partition_keys)
        ]
        placed = values.select(*keys, row.alias(_ROW))
        return additions(placed, [F.col(key_column(i)) for i in range(len(keys))], _fields(self._table))

    # --- clauses -------------------------------------------------------------------------------

    def _clause_of(self, clauses: Sequence[Clause]) -> Column:
        """The number of the clause that applies, null where none does."""
        chosen = F.lit(None).cast("int")
        for number, clause in reversed(list(enumerate(clauses))):
            condition = F.lit(True) if clause.condition is None else expression(clause.condition)
            chosen = F.when(condition, number).otherwise(chosen)
        return chosen

    def _with_new_values(self, frame: DataFrame, clauses: Sequence[Clause]) -> DataFrame:
        """`frame` with each clause's raw values in columns of their own, computed only where the clause applies."""
        return frame.select(
            "*",
            *(
                F.when(F.col(_CLAUSE) == number, expression(value)).alias(_new(number, name.lower()))
                for number, clause in enumerate(clauses)
                for name, value in {**(clause.values or {}), **clause.same_keys}.items()
            ),
        )

    def _new_row(self, frame: DataFrame, clauses: Sequence[Clause], old: Callable[[catalog.Column], Column]) -> Column:
        """The new row as a struct, null where the clause deletes; `old` gives a column that the clause does not set."""
        fields = [self._by_clause(frame, clauses, column, old).alias(column.name) for column in self._table.columns]
        assigning = [number for number, clause in enumerate(clauses) if clause.values is not None]
        return F.when(F.col(_CLAUSE).isin(assigning), F.struct(*fields))

    def _by_clause(
        self,
        frame: DataFrame,
        clauses: Sequence[Clause],
        column: catalog.Column,
        old: Callable[[catalog.Column], Column],
    ) -> Column:
        types = {field.name: field.dataType for field in frame.schema.fields}
        value = old(column)
        for number in range(len(clauses)):
            name = _new(number, column.name)
            if name in types:
                stored = assign(self._table, column, F.col(quoted(name)), types[name])
                value = F.when(F.col(_CLAUSE) == number, stored).otherwise(value)
        return value

    def _target_column(self, column: catalog.Column) -> Column:
        return F.col(f"{self._builder.target_alias}.{quoted(column.name)}")

    def _moved(self, key: catalog.Column) -> str:
        return (
            f"MERGE into {self._table.full_name}: a source row has another value for partition column {key.name} than "
            "the row it matches, and a row keeps its partition"
        )

    def _is_small(self) -> bool:
        width = sum(_width(field.dataType) for field in self._source.schema.fields)
        return self._source.count() * width <= _BROADCAST_LIMIT_BYTES


def _null(column: catalog.Column) -> Column:
    return F.lit(None).cast(spark_type(column.type))


def _fields(table: Table) -> list[Column]:
    return [F.col(_ROW).getField(column.name).alias(column.name) for column in table.columns]


def _new(clause: int, name: str) -> str:
    return f"__acid_new_{clause}_{name}"


def _width(type_: t.DataType) -> int:
    """Bytes that a value takes in a hash table, roughly."""
    return 16 if isinstance(type_, t.NumericType | t.DateType | t.TimestampType | t.BooleanType) else _TEXT_WIDTH_BYTES
