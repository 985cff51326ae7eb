"""Values out of Spark as the model has them: by way of Arrow, which knows all days and keeps all bits."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from tests.values.rows.hostile import inner


def rows_of(frame: DataFrame, kinds: Sequence[str]) -> list[tuple[Any, ...]]:
    """All rows of a frame whose columns have these types."""
    table = frame.toArrow()
    columns = [models(column, kind) for column, kind in zip(table.columns, kinds, strict=True)]
    return list(zip(*columns, strict=True))


def models(values: pa.ChunkedArray | pa.Array, kind: str) -> list[Any]:
    """An array as what the values of its type are in Python (`hostile.Value`)."""
    if isinstance(values, pa.ChunkedArray):
        return [model for chunk in values.chunks for model in models(chunk, kind)]
    name, parts = inner(kind)
    if name == "array":
        return _cut(values, models(values.values, parts[0]))
    if name == "map":
        keys, items = models(values.keys, parts[0]), models(values.items, parts[1])
        return _cut(values, list(zip(keys, items, strict=True)))
    if name == "struct":
        fields = [models(values.field(at), part.partition(":")[2]) for at, part in enumerate(parts)]
        rows = list(zip(*fields, strict=True))
        return [row if valid.as_py() else None for row, valid in zip(rows, values.is_valid(), strict=True)]
    if kind == "date":
        return list(values.cast(pa.int32()).to_pylist())
    if kind == "timestamp":
        return list(values.cast(pa.int64()).to_pylist())
    found: list[Any] = values.to_pylist()
    if kind.startswith("char("):
        return [None if text is None else text.rstrip(" ") for text in found]
    return found


def _cut(lists: Any, values: list[Any]) -> list[Any]:
    """The values of lists as a tuple for each."""
    offsets = lists.offsets.to_pylist()
    valid = lists.is_valid().to_pylist()
    return [
        tuple(values[begin:end]) if is_valid else None
        for begin, end, is_valid in zip(offsets, offsets[1:], valid, strict=False)
    ]


def exactly(model: Any) -> Any:
    """What is equal for two values only if they are the same to the last bit; NaN is one value."""
    if isinstance(model, float):
        return "NaN" if math.isnan(model) else struct.pack(">d", model)
    if isinstance(model, Decimal):
        return f"{model.normalize() + 0:f}" if not model else f"{model:f}".rstrip("0").rstrip(".")
    if isinstance(model, tuple):
        return tuple(map(exactly, model))
    return (type(model).__name__, model)
