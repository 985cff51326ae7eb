"""Which partitions the joins of a query reach: the others are left out before their table is read.

Spark would leave them out while the query runs, if the keys were columns of the scan. So it is asked what it would do
(`narrowing`), and that is done first. What a table is joined with, and no snapshot keeps as it is, is read once, and
its rows stand in the query from then on: keys that came meanwhile would have rows in partitions that are left out.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from hive_acid.catalog.table import Table
from hive_acid.errors import SqlError
from hive_acid.spark.conditions.predicates import OneOf, Predicate, all_of, any_of, one_of
from hive_acid.spark.jvm.frames.classic import frame_in_jvm
from hive_acid.spark.jvm.frames.narrowing import Narrowing, narrowings, stand_in
from hive_acid.spark.jvm.frames.pinned_rows import pinned_rows
from hive_acid.spark.jvm.frames.scala import has_pattern
from hive_acid.spark.limits import Limits
from hive_acid.spark.values.quoting import quoted

LOG = logging.getLogger(__name__)

_JOINED = "joined"
_NOT_FOUND_OUT = (Py4JError, PySparkException, SqlError, TypeError)
"""A class that a Spark does not have is none that can be called."""

Query = Callable[[Mapping[str, DataFrame]], DataFrame]
"""What makes a query of the frames of its tables, by their names in it."""


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """A table that a query reads: `standing` is planned in its place, `within` gives its rows.

    Those that do not meet the predicate may be missing. Only a table `of_many` partitions is read by what it is joined
    with.
    """

    table: Table
    standing: DataFrame
    within: Callable[[Predicate | None], DataFrame]
    of_many: bool = True


@dataclass(frozen=True, slots=True)
class Reachable:
    """A table of many partitions, of which a join of frames may leave out some; its frame has `columns`."""

    table: Table
    columns: t.StructType
    limits: Limits

    def standing(self, spark: SparkSession) -> DataFrame | None:
        """What is planned in the place of its frame."""
        return standing_for(spark, _JOINED, self.table, self.columns)

    def is_narrowed(self, join: Callable[[DataFrame], DataFrame], other: DataFrame, *, is_narrow: bool | None) -> bool:
        """Whether a join with `other`, of whose rows some may have been left out, asks for some partitions alone."""
        try:
            narrows = _has_filter(other) if is_narrow is None else is_narrow
            return bool(narrowings(join(_as_narrowing(other) if narrows else other), [_JOINED]))
        except _NOT_FOUND_OUT as error:
            _tell(error)
            return False

    def reach(self, join: Callable[[DataFrame], DataFrame], other: DataFrame) -> tuple[Predicate | None, DataFrame]:
        """What a join with `other` says of the table's keys, and the rows of that to join; None if all are read."""
        try:
            rows = pinned_if_small(other, self.limits)
            found = [] if rows is None else narrowings(join(_as_narrowing(rows)), [_JOINED])
            reach = _reach(self.table, found, self.limits)
        except _NOT_FOUND_OUT as error:
            _tell(error)
            return None, other
        return (None, other) if reach is None or rows is None else (reach, rows)


@dataclass(slots=True)
class Reached:
    """The frames of tables, without partitions that are not reached, by their names in a query.

    `is_pinned` says that they are for the query whose other rows are pinned.
    """

    frames: dict[str, DataFrame] = field(default_factory=dict)
    is_pinned: bool = False


def standing_for(spark: SparkSession, name: str, table: Table, columns: t.StructType) -> DataFrame | None:
    """What is planned in the place of a table whose frame has these `columns`; None over Connect, which has no plan."""
    if "_jsparkSession" not in vars(spark):
        return None
    try:
        return stand_in(spark, name, columns, [key.name for key in table.partition_keys])
    except _NOT_FOUND_OUT as error:
        _tell(error)
        return None


def pinned_if_small(frame: DataFrame, limits: Limits) -> DataFrame | None:
    """`frame` with the rows that it has now, if they are few enough to be kept with a query."""
    return pinned_rows(frame, most=limits.joined_rows, most_bytes=limits.joined_bytes)


def reached(
    tables: Mapping[str, JoinedTable], query: Query, pinned: Callable[[], Query | None], limits: Limits
) -> Reached:
    """The frames of `tables` for a `query`, or for the one that `pinned` gives: the same, with pinned rows in it."""
    try:
        found = _Search(tables, query, limits).narrowed(pinned)
    except _NOT_FOUND_OUT as error:
        _tell(error)  # what is wrong with the query is said by who runs it
        found = Reached()
    for name, joined in tables.items():
        if name not in found.frames:
            found.frames[name] = joined.within(None)
    return found


@dataclass(slots=True)
class _Search:
    """Frames take the places of stand-ins one after the other: a table waits for those by whose rows it is read."""

    tables: Mapping[str, JoinedTable]
    query: Query
    limits: Limits

    def narrowed(self, pinned: Callable[[], Query | None]) -> Reached:
        """The tables of which something is left out, and those by which it is; all others have no frame."""
        made, waiting = Reached(), {name: joined.standing for name, joined in self.tables.items()}
        many = {name for name, joined in self.tables.items() if joined.of_many}
        is_narrowed, can_pin = False, True
        while many & waiting.keys():
            found = narrowings(self.query({**waiting, **made.frames}), many & waiting.keys())
            if can_pin and not all(one.is_repeatable for one in found):
                can_pin = False
                if (of_pinned := pinned()) is not None:
                    self.query, made.is_pinned = of_pinned, True
                    continue
            ready = [one for one in found if one.is_repeatable and not one.awaits]
            for name in {one.of for one in ready}:
                narrowing = [one for one in found if one.of == name]
                if {one.place for one in narrowing} == {one.place for one in narrowing if one in ready}:
                    reach = _reach(self.tables[name].table, narrowing, self.limits)
                    made.frames[name] = self.tables[name].within(reach)
                    is_narrowed |= reach is not None
            if not made.frames.keys() & waiting.keys():
                awaited = sorted({name for one in found if one.is_repeatable for name in one.awaits})
                if not awaited:
                    break
                made.frames |= {name: self._awaited(name) for name in awaited}
            for name in made.frames:
                waiting.pop(name, None)
        return made if is_narrowed else Reached()

    def _awaited(self, name: str) -> DataFrame:
        rows = self.tables[name].within(None)
        return pinned_if_small(rows, self.limits) or rows


def _reach(table: Table, narrowings: Iterable[Narrowing], limits: Limits) -> Predicate | None:
    """What is said of the keys where the table is read, or in one of the places."""
    places: dict[str, list[Predicate | None]] = defaultdict(list)
    for one in narrowings:
        is_ready = one.is_repeatable and not one.awaits
        places[one.place].append(_predicate(table, one, limits) if is_ready else None)
    return any_of(map(all_of, places.values())) if places else None


def _predicate(table: Table, narrowing: Narrowing, limits: Limits) -> Predicate | None:
    """What the rows behind a narrowing say of the key; None if they are many, or have what is no value of the key."""
    (key,) = (of for of in table.partition_keys if of.name == narrowing.key)
    values = narrowing.values(most=limits.joined_values, most_bytes=limits.joined_bytes)
    if values is None:
        return None
    return one_of(key, values) if values else OneOf(key.name, ())


def _as_narrowing(frame: DataFrame) -> DataFrame:
    """All rows of `frame`, behind a filter that Spark takes for one that leaves out some."""
    first = next(iter(frame.columns), None)
    return frame if first is None else DataFrame.filter(frame, f"hash({quoted(first)}) >= {-(2**31)}")


def _has_filter(frame: DataFrame) -> bool:
    of_jvm: Any = frame_in_jvm(frame)
    return has_pattern(frame.sparkSession, of_jvm.queryExecution().analyzed(), "FILTER")


def _tell(error: Any) -> None:
    LOG.debug("all partitions are read: it could not be found out which are reached: %s", error)
