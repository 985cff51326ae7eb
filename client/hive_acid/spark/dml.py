"""UPDATE and DELETE: one scan of the table, one shuffle of the changed rows, one job that writes their events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hive_acid.catalog import Column as TableColumn
from hive_acid.catalog import Table
from hive_acid.errors import ColumnError
from hive_acid.locks import Operation
from hive_acid.spark.assign import assign, quoted
from hive_acid.spark.changes import change_events, deletions, replacements
from hive_acid.spark.events import DELETE, INSERT
from hive_acid.spark.expressions import Expression, expression
from hive_acid.spark.predicates import all_of, predicate_of
from hive_acid.spark.source import Join, kept
from hive_acid.spark.statement import Context, Statement, analysed, column_errors
from hive_acid.spark.types import check_distinct, row_type
from hive_acid.transaction import Transaction


def delete(
    context: Context,
    transaction: Transaction,
    table: Table,
    where: Expression | None = None,
    *,
    join: Join | None = None,
    target_alias: str | None = None,
) -> int:
    """Delete the rows for which `where` is true, all rows without it; returns their number.

    `where` may name columns by `target_alias`, by default the table's own name. With `join`, rows are deleted that
    match at least one row of its source, and `where` may name columns of both.

    Raises ColumnError for an unknown column.
    """
    statement = Statement(context, transaction, table)
    statement.lock(Operation.DELETE)
    rows = chosen(statement, where, target_alias) if join is None else _matching(statement, join, where)
    write = statement.write()
    changes = deletions(rows, statement.keys, statement.identity, row_type(table.columns))
    events = change_events(changes, table, write, deletes_only=True)
    return statement.run(events, write, Operation.DELETE).deletes


def update(
    context: Context,
    transaction: Transaction,
    table: Table,
    set: Mapping[str, Expression],  # noqa: A002 - the name that Delta's users know
    where: Expression | None = None,
    *,
    target_alias: str | None = None,
) -> int:
    """Give the rows for which `where` is true the values of `set`, computed from their old ones; returns their number.

    Expressions may name columns by `target_alias`, by default the table's own name. A row whose partition columns
    change moves to that partition.

    Raises ColumnError for an unknown column in `set` or a value that does not fit, UnsupportedTableError for a table
    that is CLUSTERED by the hash of Hive 2.
    """
    statement = Statement(context, transaction, table)
    statement.refuse_clustered("UPDATE")
    assignments = Assignments.of(table, set)
    statement.lock(Operation.UPDATE)
    rows = assignments.added_to(chosen(statement, where, target_alias))
    write = statement.write()
    row, keys = assignments.row(rows), assignments.keys(rows, statement.keys)
    kinds = F.array(F.lit(DELETE), F.lit(INSERT))
    changes = replacements(rows, kinds, statement.keys, keys, statement.identity, row)
    return statement.run(change_events(changes, table, write), write, Operation.UPDATE).inserts


def chosen(statement: Statement, where: Expression | None, target_alias: str | None = None) -> DataFrame:
    """The rows of a statement's target for which `where` is true; it may say ``column`` or ``alias.column``.

    The alias is the table's own name, unless another is given.
    """
    wanted = predicate_of(where, statement.table, target_alias)
    target = statement.target(wanted=wanted).alias(target_alias or statement.table.name)
    if where is None:
        return target
    with column_errors(statement.table):
        return analysed(target.where(where))


def _matching(statement: Statement, join: Join, where: Expression | None) -> DataFrame:
    """The rows of a statement's target for which some row of the source fulfils ON and `where`."""
    with column_errors(statement.table):
        source = kept(join, statement.table)
        condition = expression(join.on) if where is None else expression(join.on) & expression(where)
        wanted = all_of((source.matched, predicate_of(where, statement.table, join.target_alias, join.source.columns)))
        target = statement.target(wanted=wanted).alias(join.target_alias)
        return analysed(target.join(source.joined(), condition, "left_semi"))


def checked_names(table: Table, given: Iterable[str]) -> None:
    """Raise ColumnError for a name that is unknown or given twice."""
    names = [name.lower() for name in given]
    check_distinct(names)
    if unknown := sorted({*names} - {column.name for column in (*table.columns, *table.partition_keys)}):
        raise ColumnError(f"{table.full_name} has no column {', '.join(unknown)}")


def moved_key(old: Column, old_text: Column, new: Column) -> Column:
    """The text of a partition key that is assigned: as it was where the value is, so that the row stays.

    A partition may be named by another text than Spark has for its value, ``p=01`` for 1.
    """
    return F.when(new.eqNullSafe(old), old_text).otherwise(new.cast("string"))


@dataclass(frozen=True, slots=True)
class Assignments:
    """New values by column name, in lower case; columns that are not named keep their value."""

    table: Table
    values: Mapping[str, Column]

    @classmethod
    def of(cls, table: Table, given: Mapping[str, Expression]) -> Assignments:
        """Check the names. Raises ColumnError for one that is unknown or given twice."""
        if not given:
            raise ColumnError(f"UPDATE of {table.full_name} sets no column")
        checked_names(table, given)
        return cls(table, {name.lower(): expression(value) for name, value in given.items()})

    def added_to(self, frame: DataFrame) -> DataFrame:
        """`frame` with the raw new values in columns of their own, so that each is computed once per row."""
        with column_errors(self.table):
            return analysed(frame.select("*", *(value.alias(_new(name)) for name, value in self.values.items())))

    def row(self, frame: DataFrame) -> Column:
        """The new row as a struct, out of a frame of `added_to`."""
        fields = (
            self._assigned(frame, column) if column.name in self.values else F.col(quoted(column.name))
            for column in self.table.columns
        )
        return F.struct(*(field.alias(column.name) for field, column in zip(fields, self.table.columns, strict=True)))

    def keys(self, frame: DataFrame, texts: list[Column]) -> list[Column]:
        """The texts of the new row's partition keys, those of the old row being `texts`."""
        return [
            moved_key(F.col(quoted(key.name)), text, self._assigned(frame, key)) if key.name in self.values else text
            for key, text in zip(self.table.partition_keys, texts, strict=True)
        ]

    def _assigned(self, frame: DataFrame, column: TableColumn) -> Column:
        name = _new(column.name)
        return assign(self.table, column, F.col(quoted(name)), frame.schema[name].dataType)


def _new(name: str) -> str:
    return f"__acid_new_{name}"
