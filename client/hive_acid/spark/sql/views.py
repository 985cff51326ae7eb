"""The columns of a view: those of its query, under the view's own names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame

from hive_acid.catalog.table import Table
from hive_acid.errors import ColumnError
from hive_acid.spark.values.quoting import quoted

_OUT = "view.query.out."
"""Properties by which Spark keeps what its views' queries showed when they were made: ``numCols`` and ``col.0`` …"""


def out_columns(columns: Iterable[str]) -> dict[str, str]:
    """The properties that keep the names of the columns of a view's query."""
    names = list(columns)
    return {f"{_OUT}numCols": str(len(names)), **{f"{_OUT}col.{at}": name for at, name in enumerate(names)}}


def is_out_column(key: str) -> bool:
    """Whether a property is one of `out_columns`."""
    return key.startswith(_OUT)


def shown_by(view: Table, rows: DataFrame) -> DataFrame:
    """`rows` of a view's query with the columns of the view: those that the query had when the view was made.

    Raises ColumnError if it has them no more.
    """
    called = [column.name for column in view.all_columns]
    kept = _kept(view.parameters) or called
    found = [name.lower() for name in rows.columns]
    if found == kept:
        return rows.toDF(*called)
    if missing := [name for name in kept if found.count(name) != 1]:
        raise ColumnError(
            f"the view {view.full_name} shows the columns {', '.join(missing)}, which its query does not have, or has "
            "more than once, by now: give it another by ALTER VIEW … AS, or CREATE OR REPLACE VIEW"
        )
    return rows.select(*map(quoted, kept)).toDF(*called)


def _kept(properties: Mapping[str, str]) -> list[str]:
    count = properties.get(f"{_OUT}numCols", "")
    return [properties.get(f"{_OUT}col.{at}", "").lower() for at in range(int(count))] if count.isdecimal() else []
