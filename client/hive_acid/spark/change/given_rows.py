"""Rows that stand in an INSERT, as in ``VALUES``: Spark computes them in planning, and no job brings them here.

They come as values of Python, each of which is just what a column holds: days and times are numbers, since Python has
fewer days than Spark, and texts the digits of their bytes, which need not be letters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from hive_acid.catalog.table import Column, Table
from hive_acid.spark.change.driver_write import GaveUp, by_partition, in_texts, keys_of, new_rows, too_long, too_many
from hive_acid.spark.jvm.frames.planned_rows import may_stand_in_plan, planned_size
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.limits import Limits
from hive_acid.spark.plans.tasks import Estimate
from hive_acid.spark.read.table_frame import KEY_COLUMNS
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.write.events import row_part, sorted_by
from hive_acid.write.staging import Values

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True, slots=True)
class GivenRows:
    """New rows of a table that stand in the plan of `frame`: `keys`, which are texts of partitions, and the columns."""

    table: Table
    frame: DataFrame
    keys: Mapping[str, str]
    size_bytes: int

    @property
    def estimate(self) -> Estimate:
        """What is known of them."""
        return Estimate(self.size_bytes, is_exact=True, is_placed=False, is_given=True)

    def inserts(self, limits: Limits) -> Mapping[Values, Any] | GaveUp | None:
        """As `driver_inserts`; None for several rows of a table that has an order, in which Spark puts them."""
        rows = self.frame.collect()
        if len(rows) > limits.driver_rows:
            return too_many(limits.driver_rows)
        if len(rows) > 1 and sorted_by(self.table):
            return None
        return self._inserts([list(values) for values in zip(*rows, strict=True)], limits) if rows else {}

    def _inserts(self, columns: Sequence[list[Any]], limits: Limits) -> Mapping[Values, Any] | GaveUp:
        import pyarrow

        texts, values = columns[: len(self.keys)], columns[len(self.keys) :]
        arrays = {name: pyarrow.array(of, pyarrow.string()) for name, of in zip(self.keys, texts, strict=True)}
        # Their order is that in which they stand.
        arrays |= {name: pyarrow.array([0] * len(columns[0])) for name in KEY_COLUMNS[:-1]}
        arrays[KEY_COLUMNS[-1]] = pyarrow.array(range(len(columns[0])))
        digits = [of for of, column in zip(values, self.table.columns, strict=True) if in_texts(column)]
        lengths = (sum(len(of or "") for of in row) // 2 for row in zip(*digits, strict=True))
        if any(length > limits.driver_row_bytes for length in lengths):
            return too_long(limits)
        for position, (of, column) in enumerate(zip(values, self.table.columns, strict=True)):
            arrays[row_part(position)] = _array(of, column)
        brought = pyarrow.table(arrays)
        found = new_rows(self.table, brought)
        return found if isinstance(found, GaveUp) else by_partition(found, brought, list(self.keys))


def given_rows(values: DataFrame, source: DataFrame, table: Table) -> GivenRows | None:
    """The rows of `values`, a frame of `hive_acid.spark.write.insert.stored` made of `source`, if they stand in a plan.

    `table` is one of which new rows can be written by the client. None if they do not, or cannot be computed.
    """
    if not may_stand_in_plan(source):
        return None
    keys = keys_of(table)
    carried = (f"{_carried(column)} AS {row_part(position)}" for position, column in enumerate(table.columns))
    frame = projected(values, *(f"{text} AS {name}" for name, text in keys.items()), *carried)
    size_bytes = planned_size(frame)
    return None if size_bytes is None else GivenRows(table, frame, keys, size_bytes)


def _carried(column: Column) -> str:
    """The SQL of a column's value on its way to the client."""
    name, kind = quoted(column.name), column.type.strip().lower()
    if in_texts(column):
        return f"hex({name})"
    return {"date": f"unix_date({name})", "timestamp": f"unix_micros({name})"}.get(kind, name)


def _array(values: list[Any], column: Column) -> pyarrow.Array:
    """The array of what `_carried` has brought."""
    import pyarrow

    from hive_acid.streaming.types import arrow_type

    kind = arrow_type(column.type)
    if in_texts(column):
        return pyarrow.array([None if of is None else bytes.fromhex(of) for of in values], pyarrow.binary()).view(kind)
    numbers = {pyarrow.date32(): pyarrow.int32(), pyarrow.timestamp("us"): pyarrow.int64()}
    return pyarrow.array(values, numbers.get(kind, kind)).view(kind)
