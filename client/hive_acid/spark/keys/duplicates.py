"""Rows that a primary key would not have: such as other engines may have inserted, or are there before it is made."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hive_acid.catalog.table import Column, Table
from hive_acid.errors import DuplicateKeyError
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.keys.key_columns import are_null, key_name, keys_of, names_of, told
from hive_acid.spark.values.quoting import quoted

_ROWS = "rows"
_TOLD = 3


def duplicates(rows: DataFrame, key: Sequence[Column]) -> DataFrame:
    """The keys that more than one of `rows` has, or that lack a value, with the number of their rows, ``rows``."""
    found = _duplicates(rows, key)
    return projected(found, *(f"{key_name(at)} AS {quoted(column.name)}" for at, column in enumerate(key)), _ROWS)


def refuse_duplicates(rows: DataFrame, table: Table) -> None:
    """Raise DuplicateKeyError if rows of a table do not have the primary key that it is to get."""
    found = projected(_duplicates(rows, table.key), f"concat({told(table.key)}, ' (', {_ROWS}, ' rows)')")
    if some := [row[0] for row in found.limit(_TOLD).collect()]:
        raise DuplicateKeyError(
            f"{table.full_name} has rows that are not told apart by the primary key ({names_of(table.key)}), such as "
            f"{'; '.join(sorted(some))}: acid.check_key finds all of them. Change them first"
        )


def _duplicates(rows: DataFrame, key: Sequence[Column]) -> DataFrame:
    keys = keys_of(rows, key)
    grouped = keys.groupBy(*(key_name(at) for at in range(len(key)))).agg(F.count(F.lit(1)).alias(_ROWS))
    return grouped.where(f"{_ROWS} > 1 OR {are_null(key)}")
