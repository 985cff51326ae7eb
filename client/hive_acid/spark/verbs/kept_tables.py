"""Tables that CACHE TABLE and `spark.catalog.cacheTable` keep in memory: each is the frame of one snapshot.

Spark uses what it keeps for a plan that is the same, and a read of a table that has not changed since is that. After a
change the plan is another one, and the files are read.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from hive_acid.catalog.table import Table


class KeptTables:
    """The frames that are kept, by ``database.table``."""

    def __init__(self) -> None:
        self._kept: dict[str, DataFrame] = {}

    def keep(self, table: Table, frame: DataFrame, level: Any) -> DataFrame:
        """Keep a table's rows, when they are read first; one that is kept already stays as it is. The frame of it."""
        if table.full_name not in self._kept:
            self._kept[table.full_name] = frame.persist() if level is None else frame.persist(level)
        return self._kept[table.full_name]

    def has(self, table: Table) -> bool:
        """Whether a table is kept."""
        return table.full_name in self._kept

    def drop(self, table: Table) -> None:
        """Keep a table no longer."""
        frame = self._kept.pop(table.full_name, None)
        if frame is not None:
            frame.unpersist()

    def clear(self) -> None:
        """Keep none."""
        for frame in self._kept.values():
            frame.unpersist()
        self._kept.clear()
