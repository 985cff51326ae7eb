"""Statistics of many partitions together: counted and compared by the database, bit vectors united as they arrive.

As Hive 4 has it: nulls and the like are added (and scaled up if some of the partitions have none), bounds and lengths
are the smallest and largest, and the number of distinct values is that of the united bit vectors. Where these are
missing, of another form or of too many partitions, it is the largest number that a partition has, Hive's default.
Bounds and distinct values are never extrapolated to partitions without statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Select, Text, cast, func, select
from sqlalchemy.dialects.postgresql import ARRAY

from hive_acid.format.snapshot import ValidWriteIdList
from metastore.catalog.accuracy import ACCURATE, Accuracy
from metastore.catalog.column_statistics import Aggregate, ColumnStatistics
from metastore.catalog.models import Table
from metastore.catalog.schema import PARTITION
from metastore.catalog.statistics.rows import compliant_targets, statistics_of
from metastore.catalog.statistics.schema import COLUMN_STATISTICS
from metastore.catalog.statistics.sketches import SketchUnion

_FETCH = 500
_SUMS = ("nulls", "trues", "falses")
_SMALLEST = ("low", "low_double")
_LARGEST = ("high", "high_double", "max_length", "avg_length", "distinct_values")
_columns = COLUMN_STATISTICS.c


@dataclass(frozen=True)
class Choice:
    """Partitions and columns (all names as they are stored) and the engine whose statistics are wanted."""

    table: Table
    names: Sequence[str]
    columns: Sequence[str]
    engine: str

    def select(self, *what: Any) -> Select[Any]:
        """The rows of their statistics, as far as there are some."""
        given = func.unnest(cast(list(self.names), ARRAY(Text))).table_valued("name").render_derived(name="given")
        return (
            select(*what)
            .select_from(given)
            .join(PARTITION, (PARTITION.c.table_id == self.table.id) & (PARTITION.c.name == given.c.name))
            .join(COLUMN_STATISTICS, _columns.partition_id == PARTITION.c.id)
            .where(_columns.engine == self.engine, _columns.column_name.in_(list(self.columns)))
        )


def aggregate(
    connection: Connection, choice: Choice, reader: ValidWriteIdList | None, most_bit_vectors: int
) -> Aggregate:
    """The columns' statistics over the chosen partitions.

    Bit vectors are united for up to `most_bit_vectors` partitions. A reader of a transactional table is given nothing
    unless the statistics of each are exact for its snapshot. A column that is of different kinds in different
    partitions is left out.
    """
    if reader is not None and choice.table.is_transactional and not _is_compliant(connection, choice, reader):
        return Aggregate(is_compliant=False)
    rows = list(connection.execute(_figures(choice)).mappings())
    kinds = [row["column_name"] for row in rows]
    rows = [row for row in rows if kinds.count(row["column_name"]) == 1]
    united = [row["column_name"] for row in rows if row["partitions"] <= most_bit_vectors]
    unions = _unions(connection, replace(choice, columns=united))
    found = [_combined(row, unions.get(row["column_name"]), len(choice.names)) for row in rows]
    each = choice.select(_columns.partition_id).group_by(_columns.partition_id)
    complete = select(func.count()).select_from(each.having(func.count() == len(choice.columns)).subquery())
    return Aggregate(found, connection.execute(complete).scalar_one(), None if reader is None else True)


def _figures(choice: Choice) -> Select[Any]:
    return (
        choice.select(
            _columns.column_name,
            _columns.kind,
            func.min(_columns.column_type).label("column_type"),
            func.count().label("partitions"),
            *(func.sum(_columns[name]).label(name) for name in _SUMS),
            *(func.min(_columns[name]).label(name) for name in _SMALLEST),
            *(func.max(_columns[name]).label(name) for name in _LARGEST),
        )
        .group_by(_columns.column_name, _columns.kind)
        .order_by(_columns.column_name)
    )


def _is_compliant(connection: Connection, choice: Choice, reader: ValidWriteIdList) -> bool:
    """Whether all statistics that there are describe what the reader sees."""
    targets = list(connection.execute(choice.select(_columns.partition_id).distinct()).scalars())
    if len(compliant_targets(connection, choice.table.id, targets, reader)) < len(targets):
        return False
    said = choice.select(PARTITION.c.parameters[ACCURATE].astext, _columns.column_name).distinct()
    return all(name in Accuracy.parse(text).columns for text, name in connection.execute(said))


def _unions(connection: Connection, choice: Choice) -> dict[str, SketchUnion]:
    unions: dict[str, SketchUnion] = {}
    query = choice.select(_columns.column_name, _columns.bit_vector)
    streamed = connection.execution_options(stream_results=True, yield_per=_FETCH).execute(query)
    for name, bit_vector in streamed:
        unions.setdefault(name, SketchUnion()).add(bit_vector)
    return unions


def _combined(row: Any, union: SketchUnion | None, asked: int) -> ColumnStatistics:
    found = statistics_of(row)
    sketch = None if union is None else union.sketch
    if sketch is not None:
        distinct = None if found.distinct_values is None else sketch.estimate()
        found = replace(found, distinct_values=distinct, bit_vector=sketch.encode())

    def scaled(count: int) -> int:
        return int(count) * asked // int(row["partitions"])

    return replace(
        found,
        nulls=scaled(found.nulls),
        trues=None if found.trues is None else scaled(found.trues),
        falses=None if found.falses is None else scaled(found.falses),
    )
