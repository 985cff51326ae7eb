"""What callers give to the verbs, looked at before anything begins: Python would fail further on, without words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame


def check_condition(name: str, value: object) -> None:
    """Raise TypeError unless `value`, the argument `name`, is a condition, or None."""
    if value is not None and not isinstance(value, str | Column):
        raise TypeError(f"{name} is a condition, as SQL text or a Column: {_kind(value)} is none")


def check_values(name: str, value: object) -> None:
    """Raise TypeError unless `value` gives values by the names of columns, or is None."""
    if not _is_by_column(value):
        raise TypeError(f"{name} gives values by the names of columns, {{'n': 'n + 1'}}: {_kind(value)} does not")


def check_frame(name: str, value: object) -> None:
    """Raise TypeError unless `value` is a DataFrame of Spark's."""
    if not isinstance(value, DataFrame):
        raise TypeError(
            f"{name} is a DataFrame of Spark's, of other rows by spark.createDataFrame(…): {_kind(value)} is none"
        )


def check_partition(value: object) -> None:
    """Raise TypeError unless `value` is a partition's specification, or None."""
    if not _is_by_column(value):
        raise TypeError(f"a partition is given by its columns, {{'day': '2024-01-01'}}: {_kind(value)} is none")


def names_of(name: str, value: Iterable[str]) -> list[str]:
    """The names that the argument `name` lists. Raises TypeError for a text, which would be taken letter by letter."""
    given: Any = value
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"{name} is a list of names, ['n']: {_kind(given)} is none")
    names = list(given)
    if odd := [one for one in names if not isinstance(one, str)]:
        raise TypeError(f"{name} is a list of names: {_kind(odd[0])} is none")
    return names


def _is_by_column(value: object) -> bool:
    return value is None or (isinstance(value, Mapping) and all(isinstance(column, str) for column in value))


def _kind(value: object) -> str:
    shown = "" if isinstance(value, Column | DataFrame) else f" ({str(value)[:60]!r})"
    return f"{type(value).__name__}{shown}"
