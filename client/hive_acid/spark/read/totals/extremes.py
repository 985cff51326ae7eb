"""How many rows a snapshot has, and the least and greatest values of its columns, told by the tails of its files.

A file that has lost rows tells only between which values those lie that are left. That is enough where another file,
which has lost none, has a value as small or as great.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from hive_acid.catalog import table as catalog
from hive_acid.catalog.table import Table
from hive_acid.format.orc.statistics import Bound
from hive_acid.format.partitions import parse_partition_name
from hive_acid.spark.conditions.literals import digits_of, type_name
from hive_acid.spark.read.listing import TableState
from hive_acid.spark.read.skipping import INTEGER_RANGES, of_value, statistics_of
from hive_acid.spark.read.totals.counting import CountedFile, counted_files
from hive_acid.spark.values.types import spark_type

_MOST_IN_ONE_TASK = 100_000_000
"""So many rows that are only counted Spark makes in a task in a tenth of a second."""


class Extreme(NamedTuple):
    """The least value of a column, or its greatest one."""

    column: str
    is_greatest: bool


@dataclass(frozen=True, slots=True)
class Totals:
    """How many rows there are, and what some extremes are; None of a column without values."""

    rows: int
    extremes: Mapping[Extreme, Bound | None]


def known_totals(state: TableState, asked: Sequence[Extreme]) -> Totals | None:
    """Of all rows, and what is `asked`; None where it takes the rows to tell.

    Tails tell of whole numbers, decimals and dates, names of partitions of their keys.
    """
    files = counted_files(state)
    if files is None:
        return None
    left = [file for file in files if file.rows]
    told = {name: list(told_of(state.table, name, left)) for name in dict.fromkeys(of.column for of in asked)}
    if not all(found.is_known for of in told.values() for found in of):
        return None
    extremes: dict[Extreme, Bound | None] = {}
    for extreme in asked:
        of = told[extreme.column]
        extremes[extreme] = _best((found for found in of if not found.lost_rows), extreme)
        if extremes[extreme] != _best(of, extreme):  # Rows of the others may reach further, and may be gone.
            return None
    return Totals(sum(file.rows for file in left), extremes)


def rows_with(spark: SparkSession, totals: Totals, table: Table) -> DataFrame:
    """As many rows, with columns of these extremes: the least value in one of them, the greatest in the others."""
    number = totals.rows
    rows = spark.range(0, number, 1, 1) if number <= _MOST_IN_ONE_TASK else spark.range(number)
    if not totals.extremes:
        return rows
    types = {column.name: spark_type(column.type) for column in table.all_columns}

    def valued(name: str) -> Column:
        known = [totals.extremes[of] for of in (Extreme(name, False), Extreme(name, True)) if of in totals.extremes]
        least, greatest = (F.lit(value).cast(types[name]) for value in (known[0], known[-1]))
        return F.when(F.col("id") == 0, least).otherwise(greatest).alias(name)

    return rows.select(*map(valued, dict.fromkeys(of.column for of in totals.extremes)))


class Told(NamedTuple):
    """Between which values a column's are in some rows, of which others may have been deleted.

    Both are None where there is none, `is_known` says whether that, too, is told.
    """

    minimum: Any
    maximum: Any
    lost_rows: bool
    is_known: bool = True


def told_of(table: Table, name: str, files: Sequence[CountedFile]) -> Iterator[Told]:
    """What is told of files, each of which has rows."""
    for position, key in enumerate(table.partition_keys):
        if key.name == name:
            for partition in {file.partition.name for file in files}:
                of = of_value(key, parse_partition_name(partition)[position][1])
                yield Told(of.minimum, of.maximum, False) if of else Told(None, None, False, False)
            return
    fits = _fitting(next(column for column in table.columns if column.name == name))
    for file in files:
        found = statistics_of(table, file.tail)(name)
        if found is None or found.values is None:
            yield Told(None, None, False, False)
        elif found.values:
            is_known = fits(found.minimum) and fits(found.maximum)
            yield Told(found.minimum, found.maximum, file.deleted > 0, is_known)


def _best(told: Iterable[Told], extreme: Extreme) -> Bound | None:
    ends = (found.maximum if extreme.is_greatest else found.minimum for found in told)
    known = [end for end in ends if end is not None]
    if not known:
        return None
    best: Bound = max(known) if extreme.is_greatest else min(known)
    return best


def _fitting(column: catalog.Column) -> Callable[[Any], bool]:
    """Whether a bound in a file is a value of it, and shown as it is in a column. Of some types tails may round them.

    What lies between two values that fit does, too.
    """
    kind = type_name(column)
    if kind in INTEGER_RANGES:
        lowest, highest = INTEGER_RANGES[kind]
        return lambda value: isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= highest
    if kind == "date":
        return lambda value: isinstance(value, date)
    if kind == "decimal":
        precision, scale = digits_of(column)
        return lambda value: isinstance(value, Decimal) and _has_room(value, precision, scale)
    return lambda value: False


def _has_room(value: Decimal, precision: int, scale: int) -> bool:
    """Whether a number is one of so many digits, of which so many are behind the point."""
    scaled = value.scaleb(scale)
    return scaled == scaled.to_integral_value() and abs(scaled) < 10**precision
