"""UPDATE and DELETE: one scan of the table, one shuffle of the changed rows, one job that writes their events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hive_acid.catalog import Table
from hive_acid.errors import ColumnError
from hive_acid.spark.assign import assign, quoted
from hive_acid.spark.changes import change_events, deletions, replacements
from hive_acid.spark.statement import Context, Statement, column_errors
from hive_acid.spark.types import check_distinct, row_type
from hive_acid.transaction import Operation, Transaction

Expression = Column | str
"""A condition or a value: a Column, or SQL text."""


def delete(context: Context, transaction: Transaction, table: Table, where: Expression | None = None) -> int:
    """Delete the rows for which `where` is true, all rows without it; returns their number.

    Raises ColumnError for an unknown column.
    """
    statement = Statement(context, transaction, table)
    statement.lock(Operation.DELETE)
    rows = chosen(statement, where)
    write = statement.write()
    changes = deletions(rows, statement.keys, statement.identity, row_type(table.columns))
    events = change_events(changes, len(table.partition_keys), write)
    return statement.run(events, write, Operation.DELETE).deletes


def update(
    context: Context,
    transaction: Transaction,
    table: Table,
    set: Mapping[str, Expression],  # noqa: A002 - the name that Delta's users know
    where: Expression | None = None,
) -> int:
    """Give the rows for which `where` is true the values of `set`, computed from their old ones; returns their number.

    Raises ColumnError for an unknown or partition column in `set` or a value that does not fit, UnsupportedTableError
    for a CLUSTERED table.
    """
    statement = Statement(context, transaction, table)
    statement.refuse_clustered("UPDATE")
    assignments = Assignments.of(table, set)
    statement.lock(Operation.UPDATE)
    rows = assignments.added_to(chosen(statement, where))
    write = statement.write()
    changes = replacements(rows, statement.keys, statement.identity, assignments.row(rows))
    events = change_events(changes, len(table.partition_keys), write)
    return statement.run(events, write, Operation.UPDATE).inserts


def chosen(statement: Statement, where: Expression | None) -> DataFrame:
    """The rows of a statement's target for which `where` is true; it may say ``column`` or ``table.column``."""
    target = statement.target().alias(statement.table.name)
    if where is None:
        return target
    with column_errors(statement.table):
        return target.where(where)


def expression(value: object) -> Column:
    """A value to assign: a Column as it is, a text as SQL, anything else as the constant that it is."""
    if isinstance(value, str):
        return F.expr(value)
    return value if isinstance(value, Column) else F.lit(value)


def checked_names(table: Table, given: Iterable[str], *, with_keys: bool = False) -> None:
    """Raise ColumnError for a name that is unknown, given twice, or (but `with_keys`) a partition column's."""
    names = [name.lower() for name in given]
    check_distinct(names)
    keys = [key.name for key in table.partition_keys if key.name in names]
    if keys and not with_keys:
        raise ColumnError(
            f"partition column {', '.join(keys)} of {table.full_name} cannot be updated: a row keeps its partition. "
            "Delete the rows and insert them with the new value"
        )
    if unknown := sorted({*names} - {column.name for column in table.columns} - {*keys}):
        raise ColumnError(f"{table.full_name} has no column {', '.join(unknown)}")


@dataclass(frozen=True, slots=True)
class Assignments:
    """New values by column name, in lower case; columns that are not named keep their value."""

    table: Table
    values: Mapping[str, Column]

    @classmethod
    def of(cls, table: Table, given: Mapping[str, Expression]) -> Assignments:
        """Check the names. Raises ColumnError for one that is unknown, given twice, or a partition column's."""
        if not given:
            raise ColumnError(f"UPDATE of {table.full_name} sets no column")
        checked_names(table, given)
        return cls(table, {name.lower(): expression(value) for name, value in given.items()})

    def added_to(self, frame: DataFrame) -> DataFrame:
        """`frame` with the raw new values in columns of their own, so that each is computed once per row."""
        with column_errors(self.table):
            return frame.select("*", *(value.alias(_new(name)) for name, value in self.values.items()))

    def row(self, frame: DataFrame) -> list[Column]:
        """The columns of the new row, out of a frame of `added_to`."""
        types = {field.name: field.dataType for field in frame.schema.fields}
        return [
            assign(self.table, column, F.col(quoted(_new(column.name))), types[_new(column.name)]).alias(column.name)
            if column.name in self.values
            else F.col(quoted(column.name))
            for column in self.table.columns
        ]


def _new(name: str) -> str:
    return f"__acid_new_{name}"
