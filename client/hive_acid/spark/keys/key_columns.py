"""The columns of a primary key, as they are compared: as GROUP BY does, and a CHAR without blanks at its end.

So NaN is the same as NaN, and both zeros are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import Column as Expr
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t

from hive_acid.catalog.table import Column, Table
from hive_acid.errors import ColumnError
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.values.assign import text_value
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.texts import is_char
from hive_acid.spark.values.types import spark_type

_LETTERS = 40
"""So much of a value is told."""

_COMPARED = (
    t.BooleanType | t.IntegralType | t.FractionalType | t.StringType | t.BinaryType | t.DateType | t.TimestampType
)


def refuse_incomparable(table: Table) -> None:
    """Raise ColumnError for a primary key that cannot be enforced, by the types of its columns or the kind of table."""
    named = next((one.columns for one in table.constraints if one.is_enforced_key), ())
    if not named:
        return
    if unknown := sorted({*named} - {column.name for column in table.all_columns}):
        raise ColumnError(f"{table.full_name} has no column {', '.join(unknown)} for PRIMARY KEY")
    if not table.is_full_acid:
        raise ColumnError(
            f"{table.full_name} is no full-ACID table, of which it cannot be told which rows it has at a commit: say "
            "DISABLE NOVALIDATE behind PRIMARY KEY"
        )
    for column in table.key:
        if not isinstance(spark_type(column.type), _COMPARED):
            raise ColumnError(
                f"column {column.name} of {table.full_name} is {column.type}, of which values are not compared: a "
                "primary key has columns of numbers, texts, bytes, dates, times and booleans"
            )


def key_name(position: int) -> str:
    """The column of `keys_of` for a column of the key."""
    return f"__acid_key_{position}"


def keys_of(rows: DataFrame, key: Sequence[Column], *more: str) -> DataFrame:
    """The keys of rows, which have the table's columns, as they are compared; behind them `more`, SQL."""
    values = (f"{_compared(column)} AS {key_name(position)}" for position, column in enumerate(key))
    return projected(rows, *values, *more)


def are_null(key: Sequence[Column]) -> str:
    """The SQL of whether a key of `keys_of` lacks a value."""
    return " OR ".join(f"{key_name(position)} IS NULL" for position in range(len(key)))


def told(key: Sequence[Column]) -> str:
    """The SQL of a text that tells a key of `keys_of`."""
    parts = []
    for position, column in enumerate(key):
        name = key_name(position)
        text = f"hex({name})" if isinstance(spark_type(column.type), t.BinaryType) else f"CAST({name} AS string)"
        start = text_value(f"{column.name} = ")
        parts.append(f"concat({start}, coalesce(left({text}, {_LETTERS}), 'NULL'))")
    return f"concat_ws(', ', {', '.join(parts)})"


def with_same(rows: DataFrame, keys: DataFrame, key: Sequence[Column], how: str = "left_semi") -> DataFrame:
    """Those of `rows` whose key is one of `keys`, both of `keys_of`."""
    on: list[Expr] = [
        F.col(f"rows.{key_name(position)}") == F.col(f"keys.{key_name(position)}") for position in range(len(key))
    ]
    return rows.alias("rows").join(keys.alias("keys"), on, how)


def names_of(key: Iterable[Column]) -> str:
    """The names of the columns, for people."""
    return ", ".join(column.name for column in key)


def _compared(column: Column) -> str:
    return f"rtrim({quoted(column.name)})" if is_char(column) else quoted(column.name)
