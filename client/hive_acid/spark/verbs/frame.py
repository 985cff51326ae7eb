"""A table as a DataFrame that can also be changed.

`AcidTable` is the frame of one snapshot, with the verbs insert, update, delete and merge beside those of every
DataFrame. A verb changes the table, in a transaction of its own or in the session's. The frame itself stays what it
was; take `acid.table` again to see the change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame

from hive_acid.catalog.table import Table
from hive_acid.spark.change.merge import MergeBuilder
from hive_acid.spark.conditions.expressions import Expression
from hive_acid.spark.read.filter_pushdown import Pushdown, PushdownFrame, of_kind, unplanned
from hive_acid.spark.tables.statistics.analyze import TableStatistics
from hive_acid.spark.values.specs import PartitionSpec
from hive_acid.spark.verbs.tables import COMPACTION_TIMEOUT_MS, TableVerbs


class AcidTable(PushdownFrame):
    """The rows of a table as one snapshot sees them, and the verbs that change the table.

    What `filter` gives is a frame without the verbs, that reads only what may meet the condition.
    """

    _acid: TableVerbs
    _table: Table

    def insert(self, frame: DataFrame, *, schema_evolution: bool = False) -> int:
        """Insert the rows of `frame` and return their number.

        Its columns, partition columns among them, meet the table's by name, in any case and order. With
        `schema_evolution` columns that the table lacks are added at its end before, and stay even if the insert fails;
        those that `frame` lacks, but partition columns, are null in the new rows.

        Raises ColumnError for columns or values that do not fit, UnsupportedTableError for a CLUSTERED table.
        """
        return self._acid.insert(self._table, frame, schema_evolution=schema_evolution)

    def overwrite(
        self,
        frame: DataFrame,
        *,
        partition: Mapping[str, str | None] | None = None,
        where: Expression | None = None,
        if_not_exists: bool = False,
    ) -> int:
        """Replace rows by those of `frame`, and return their number.

        An unpartitioned table is replaced as a whole, of a partitioned one each partition that rows of `frame` fall
        into. `partition` gives values of the first partition columns, which `frame` then need not have, and no other
        ones; with all of them that partition is replaced, even by nothing, or with `if_not_exists` left as it is if it
        is there.

        With `where`, a condition on the table's columns, the rows are replaced for which that is true, wherever they
        are: they are deleted and those of `frame` inserted, in one transaction. It has to be true for these as well.

        Raises WriteConflictError if another transaction changed the same partition first, ColumnError for new rows for
        which `where` is not true, and what `insert` raises.
        """
        return self._acid.overwrite(self._table, frame, partition=partition, where=where, if_not_exists=if_not_exists)

    def update(
        self,
        set: Mapping[str, Expression],  # noqa: A002 - the name that Delta's users know
        where: Expression | None = None,
        *,
        source: DataFrame | None = None,
        on: Expression | None = None,
        target_alias: str | None = None,
        source_alias: str = "s",
    ) -> int:
        """Give the rows for which `where` is true the values of `set`, and return their number.

        Values are Columns or SQL text over the old row: ``update({"n": "n + 1"}, "id = 7")``. A row whose partition
        columns change moves to that partition.

        With a `source`, rows are updated that match one of its rows by `on`, and all expressions name columns by two
        aliases, of the table (``t``) and of the source: ``update({"n": "s.n"}, source=frame, on="t.id = s.id")``.

        Raises WriteConflictError if another transaction changed the same rows first, ColumnError for a column that is
        unknown or a value that does not fit, MergeCardinalityError for a row that matches several of the source.
        """
        return self._acid.update(
            self._table, set, where, source=source, on=on, target_alias=target_alias, source_alias=source_alias
        )

    def delete(
        self,
        where: Expression | None = None,
        *,
        source: DataFrame | None = None,
        on: Expression | None = None,
        target_alias: str | None = None,
        source_alias: str = "s",
    ) -> int:
        """Delete the rows for which `where` is true, all rows without it, and return their number.

        With a `source`, rows are deleted that match one or more of its rows by `on`; see `update` for the aliases.

        Raises WriteConflictError if another transaction changed the same rows first.
        """
        return self._acid.delete(
            self._table, where, source=source, on=on, target_alias=target_alias, source_alias=source_alias
        )

    def merge(
        self, source: DataFrame, on: Expression, *, target_alias: str = "t", source_alias: str = "s"
    ) -> MergeBuilder:
        """Begin a MERGE of `source` into the table: add clauses to what this returns, then `execute` it.

        `on` and all expressions of the clauses name columns by the two aliases: ``"t.id = s.id"``.
        """
        return self._acid.merge(self._table, source, on, target_alias=target_alias, source_alias=source_alias)

    def load_data(
        self, path: str, *, overwrite: bool = False, partition: PartitionSpec | None = None, copy: bool = False
    ) -> int:
        """Make files part of the table without reading them, as `AcidSession.load_data`; their number."""
        return self._acid.load_data(self._table, path, overwrite=overwrite, partition=partition, copy=copy)

    def truncate(self, partition: PartitionSpec | None = None) -> None:
        """Remove all rows, or those of the partitions that `partition` covers, as `AcidSession.truncate`."""
        self._acid.truncate(self._table, partition)

    def concatenate(
        self,
        partition: PartitionSpec | None = None,
        *,
        wait: bool = False,
        timeout_ms: int = COMPACTION_TIMEOUT_MS,
    ) -> list[int]:
        """Ask for a major compaction, as `AcidSession.concatenate`; ids of those queued."""
        return self._acid.concatenate(self._table, partition, wait=wait, timeout_ms=timeout_ms)

    def analyze(
        self, *, columns: Sequence[str] | None = None, partition: PartitionSpec | None = None
    ) -> TableStatistics:
        """Count rows, files and bytes and tell the metastore, as `AcidSession.analyze`."""
        return self._acid.analyze(self._table, columns=columns, partition=partition)

    def partitions(self) -> list[str]:
        """The names of the table's partitions, ``k=v/…``, as the metastore knows them now."""
        found = self._acid._lookup(self._table)
        return sorted(self._acid.connection.partition_names(found)) if found.partition_keys else []


def as_table(frame: DataFrame | None, acid: TableVerbs, table: Table, pushdown: Pushdown | None = None) -> AcidTable:
    """`frame` as the frame of `table`: a true DataFrame of its own kind, classic or Connect, with the verbs.

    Without a `frame` it is a classic one, which is planned when it is first used, by `pushdown`.
    """
    made = unplanned(AcidTable, acid.spark) if frame is None else of_kind(AcidTable, frame)
    made._acid, made._table, made._pushdown = acid, table, pushdown
    return made
