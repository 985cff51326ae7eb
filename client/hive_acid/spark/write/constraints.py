"""Rows that are to meet the constraints of their table, and what a column gets that they have no value for.

A row is asked where its first column is computed, which is written whatever else is: a filter, Spark might ask of rows
that are never written, and a column that nobody reads it would leave out. What CHECK makes null is met, as in SQL.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hive_acid.catalog.constraints import IS_BROKEN, Constraint, in_parentheses
from hive_acid.catalog.table import Column, Table
from hive_acid.errors import ColumnError, ConstraintError, UnsupportedTableError
from hive_acid.spark.conditions.char_conditions import without_blanks
from hive_acid.spark.conditions.expressions import expression
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.values.assign import is_left_out, text_value
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.texts import declared
from hive_acid.spark.values.types import text_length
from hive_acid.spark.write.statement import analysed, column_errors
from hive_acid.wire import ConstraintKind

_CHECKED = "__acid_check_{}".format
_SHOWN = 200
"""So many letters of a CHECK are in an error."""


def checked(table: Table, frame: DataFrame, column: str | None = None, where: str | None = None) -> DataFrame:
    """`frame`, which has the columns of `table` by their names as they are stored: a row that breaks one fails the job.

    It is asked as `column` is computed, by default the first of the table, and only of rows for which `where`, SQL, is
    true. Raises ConstraintError for a CHECK that Spark does not understand.
    """
    enforced = table.enforced
    if not enforced:
        return frame
    at, names = column or table.columns[0].name, list(frame.columns)
    checks = [one for one in enforced if one.kind is ConstraintKind.CHECK]
    asked = declared(frame, table.all_columns).alias(table.name) if checks else frame
    for number, one in enumerate(checks):
        asked = _with_check(table, asked, one, _CHECKED(number))
    keys = {key.name: key for key in table.partition_keys}
    broken = [
        f"WHEN {_is_null(one.columns[0], keys)} THEN raise_error({text_value(_words(table, one))})"
        for one in enforced
        if one.kind is ConstraintKind.NOT_NULL
    ]
    broken += [
        f"WHEN {_CHECKED(number)} THEN raise_error({text_value(_words(table, one))})"
        for number, one in enumerate(checks)
    ]
    value = f"CASE {' '.join(broken)} ELSE {quoted(at)} END"
    if where is not None:
        value = f"CASE WHEN {where} THEN {value} ELSE {quoted(at)} END"
    with column_errors(table):
        return projected(asked, *(f"{value} AS {quoted(at)}" if name == at else quoted(name) for name in names))


def _with_check(table: Table, frame: DataFrame, one: Constraint, name: str) -> DataFrame:
    """`frame` with whether its rows break a CHECK."""
    # In an operator, so that Spark refuses what would make several rows of one.
    asked = expression(without_blanks(f"({in_parentheses(one.expression or 'true')} IS FALSE)", table)).alias(name)
    try:
        with column_errors(table):
            return analysed(frame.select("*", asked))
    except (ColumnError, PySparkException) as error:
        raise ConstraintError(
            f"constraint {one.name} of {table.full_name} cannot be asked of new rows, since Spark does not understand "
            f"CHECK ({_shown(one)}): {error}"
        ) from error


def _is_null(name: str, keys: Mapping[str, Column]) -> str:
    """Whether a column is null; an empty text is, as a partition's value."""
    key = keys.get(name)
    if key is not None and (key.type in ("string", "binary") or text_length(key.type) is not None):
        return f"nullif(CAST({quoted(name)} AS string), '') IS NULL"
    return f"{quoted(name)} IS NULL"


def _words(table: Table, one: Constraint) -> str:
    start = f"{IS_BROKEN}{one.name} of {table.full_name}: "
    if one.kind is ConstraintKind.NOT_NULL:
        return f"{start}column {one.columns[0]} is NOT NULL, and a row has no value there"
    return f"{start}CHECK ({_shown(one)}) is false of a row"


def _shown(one: Constraint) -> str:
    asked = " ".join((one.expression or "").split())
    return asked if len(asked) <= _SHOWN else f"{asked[:_SHOWN]}…"


def filled(table: Table, frame: DataFrame) -> DataFrame:
    """`frame` with the defaults of those columns that have one and that it lacks, or that a statement leaves out."""
    defaults = table.defaults
    if not defaults:
        return frame
    given = {field.name.lower(): field for field in frame.schema.fields}
    values = {
        name: F.expr(in_parentheses(value)).alias(name)
        for name, value in defaults.items()
        if name not in given or is_left_out(given[name])
    }
    if not values:
        return frame
    kept = [F.col(quoted(field.name)) for name, field in given.items() if name not in values]
    return frame.select(*kept, *values.values())


def refuse_unread(table: Table, verb: str) -> None:
    """Raise UnsupportedTableError for rows that nobody looks into before they are in a table with constraints."""
    if table.enforced:
        names = ", ".join(one.name or "" for one in table.enforced)
        raise UnsupportedTableError(
            f"{verb} takes files as they are, and {table.full_name} has constraints that its rows must meet ({names}): "
            "read the files with Spark and insert the rows"
        )
