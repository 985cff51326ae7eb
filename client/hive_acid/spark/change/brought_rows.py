"""Few rows that the client is to know: columns of Arrow, of a query that is given up for more rows than that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.plans.tasks import FILES_PER_PARTITION

if TYPE_CHECKING:
    import pyarrow

NUMBER_IN_TASK = f"monotonically_increasing_id() & {(1 << 33) - 1}"
"""The number of a row in its task, from 0, as SQL."""


def brought_rows(
    rows: DataFrame, columns: Mapping[str, str], most: int, *, tasks: int = FILES_PER_PARTITION
) -> pyarrow.Table | None:
    """`columns`, SQL by name, of `rows`, by so many tasks at most; None if there are more than `most`, of which no task
    brings many more.
    """
    few = rows.coalesce(tasks).where(f"{NUMBER_IN_TASK} <= {most}")
    table = projected(few, *(f"{of} AS {name}" for name, of in columns.items())).toArrow()
    return None if table.num_rows > most else table
