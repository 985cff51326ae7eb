"""Statistics of two sets of rows together, as Hive merges what an insert has gathered into what stands."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TypeVar

from hive_acid.errors import InvalidObjectError
from metastore.catalog.column_statistics import ColumnStatistics
from metastore.catalog.statistics.sketches import SketchUnion

N = TypeVar("N", bound=int | float | Decimal)


def merged(old: ColumnStatistics, new: ColumnStatistics) -> ColumnStatistics:
    """The statistics of the rows of both: counts are added, bounds widened, lengths and averages the larger ones.

    Distinct values are those of the united bit vectors if both have one of the same form, else the larger number.
    Histograms are not merged: the result has none. Raises InvalidObjectError for two kinds of one column.
    """
    if old.kind != new.kind:
        raise InvalidObjectError(
            f"statistics of column {new.column} cannot be merged: they are of kind {old.kind}, the new ones {new.kind}"
        )
    union = SketchUnion()
    union.add(old.bit_vector)
    union.add(new.bit_vector)
    sketch = union.sketch
    largest = _largest(old.distinct_values, new.distinct_values)
    return replace(
        new,
        nulls=old.nulls + new.nulls,
        distinct_values=largest if sketch is None or largest is None else sketch.estimate(),
        trues=_sum(old.trues, new.trues),
        falses=_sum(old.falses, new.falses),
        max_length=_largest(old.max_length, new.max_length),
        avg_length=_largest(old.avg_length, new.avg_length),
        low=_smallest(old.low, new.low),
        high=_largest(old.high, new.high),
        bit_vector=None if sketch is None else sketch.encode(),
        histogram=None,
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None and other is None else (one or 0) + (other or 0)


def _largest(one: N | None, other: N | None) -> N | None:
    return max((value for value in (one, other) if value is not None), default=None)


def _smallest(one: N | None, other: N | None) -> N | None:
    return min((value for value in (one, other) if value is not None), default=None)
