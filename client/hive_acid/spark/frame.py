"""A table as a DataFrame that can also be changed.

`AcidTable` is the frame of one snapshot, with the verbs insert, update, delete and merge beside those of every
DataFrame. A verb changes the table, in a transaction of its own or in the session's. The frame itself stays what it
was; take `acid.table` again to see the change.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from hive_acid.catalog import Table
from hive_acid.spark.dml import Expression
from hive_acid.spark.merge import MergeBuilder

if TYPE_CHECKING:
    from hive_acid.spark.session import AcidSession


class AcidTable(DataFrame):
    """The rows of a table as one snapshot sees them, and the verbs that change the table."""

    _acid: AcidSession
    _table: Table

    def insert(self, frame: DataFrame) -> int:
        """Insert the rows of `frame` and return their number.

        Its columns, partition columns among them, meet the table's by name, in any case and order.

        Raises ColumnError for columns or values that do not fit, UnsupportedTableError for a CLUSTERED table.
        """
        return self._acid.insert(self._table, frame)

    def update(
        self,
        set: Mapping[str, Expression],  # noqa: A002 - the name that Delta's users know
        where: Expression | None = None,
    ) -> int:
        """Give the rows for which `where` is true the values of `set`, and return their number.

        Values are Columns or SQL text over the old row: ``update({"n": "n + 1"}, "id = 7")``.

        Raises WriteConflictError if another transaction changed the same partition first, ColumnError for a column that
        is unknown or a partition column, or a value that does not fit.
        """
        return self._acid.update(self._table, set, where)

    def delete(self, where: Expression | None = None) -> int:
        """Delete the rows for which `where` is true, all rows without it, and return their number.

        Raises WriteConflictError if another transaction changed the same partition first.
        """
        return self._acid.delete(self._table, where)

    def merge(
        self, source: DataFrame, on: Expression, *, target_alias: str = "t", source_alias: str = "s"
    ) -> MergeBuilder:
        """Begin a MERGE of `source` into the table: add clauses to what this returns, then `execute` it.

        `on` and all expressions of the clauses name columns by the two aliases: ``"t.id = s.id"``.
        """
        return self._acid.merge(self._table, source, on, target_alias=target_alias, source_alias=source_alias)

    def partitions(self) -> list[str]:
        """The names of the table's partitions, ``k=v/…``, as the metastore knows them now."""
        return sorted(self._acid.connection.partitions(self._table)) if self._table.partition_keys else []


def as_table(frame: DataFrame, acid: AcidSession, table: Table) -> AcidTable:
    """`frame` as the frame of `table`: a true DataFrame of its own kind, classic or Connect, with the verbs."""
    made = object.__new__(_table_class(type(frame)))
    made.__dict__.update(frame.__dict__)
    made._acid, made._table = acid, table
    return made


def _table_class(kind: type[DataFrame]) -> type[AcidTable]:
    return type(AcidTable.__name__, (AcidTable, kind), {"__doc__": AcidTable.__doc__, "__module__": __name__})


def leased(spark: SparkSession, end: Callable[[], None]) -> SparkSession:
    """`spark` under another identity; `end` is called when the last frame made by it is gone.

    Every frame keeps the session that made it, and hands it on to the frames derived from it. A join keeps that of its
    left side only.
    """
    session = copy.copy(spark)
    if hasattr(type(spark), "__del__"):
        # Connect's session closes its channel when it goes; this one only borrows it.
        session.__class__ = _borrowing_class(type(spark))
    weakref.finalize(session, end).atexit = False
    return session


def _borrowing_class(kind: type[SparkSession]) -> type[SparkSession]:
    return type(kind.__name__, (kind,), {"__del__": lambda self: None, "__module__": kind.__module__})
