"""Several INSERTs of one frame, into one or several tables, in one transaction: all of them happen, or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from hive_acid.catalog.table import Table
from hive_acid.errors import ColumnError
from hive_acid.spark.conditions.booleans import refuse_non_boolean
from hive_acid.spark.conditions.expressions import Expression, expression
from hive_acid.spark.jvm.frames.kept_rows import kept_rows
from hive_acid.spark.values.argument_checks import check_condition, check_partition, check_values
from hive_acid.spark.values.specs import with_keys
from hive_acid.spark.values.types import check_distinct
from hive_acid.spark.verbs.changes import ChangeVerbs
from hive_acid.spark.write.statement import column_errors
from hive_acid.transactions.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Branch:
    """One destination: which rows of the frame go to `table`, and as what values."""

    table: Table
    values: Mapping[str, Expression] | None
    where: Expression | None
    overwrite: bool
    partition: Mapping[str, str | None] | None

    def rows(self, frame: DataFrame) -> DataFrame:
        """The rows of `frame` for this table, in its columns."""
        with column_errors(self.table):
            if self.where is not None:
                frame = frame.where(self.where)
                _ = frame.columns  # over Connect it is understood only now
            if self.values is None:
                return frame
            return frame.select(*(expression(value).alias(name) for name, value in self.values.items()))


@dataclass
class MultiInsert:
    """A multi-insert in the making: destinations are added with `into`, nothing happens before `execute`."""

    acid: ChangeVerbs
    lookup: Callable[[str | Table], Table]
    changing: Callable[[Callable[[Transaction], list[int]], list[str]], list[int]]
    frame: DataFrame
    branches: list[Branch] = field(default_factory=list)

    def into(
        self,
        table: str | Table,
        values: Mapping[str, Expression] | None = None,
        where: Expression | None = None,
        *,
        overwrite: bool = False,
        partition: Mapping[str, str | None] | None = None,
    ) -> MultiInsert:
        """Insert the rows for which `where` is true, all rows without it, into `table`.

        `values` give the table's columns, partition columns among them, as Columns or SQL text over the frame; without
        them the frame's columns meet the table's by name. `partition` gives the first partition columns, which the rows
        then have not. With `overwrite`, the rows replace what there is, as `AcidSession.overwrite` does. A table may be
        named more than once.
        """
        check_values("values", values)
        check_condition("where", where)
        check_partition(partition)
        found = self.lookup(table)
        self.acid._check_fillable(found)
        self.branches.append(Branch(found, values, where, overwrite, partition))
        return self

    def execute(self) -> list[int]:
        """Run it; the number of rows of each destination, in the order of `into`.

        The frame is computed once, whatever the number of destinations. Raises what `AcidTable.insert` raises; no
        table is changed then.
        """
        if not self.branches:
            raise ColumnError("a multi-insert has no destination: add into(…)")
        for branch in self.branches:
            refuse_non_boolean(branch.where, self.frame.columns, lambda: self.frame)
        return self.changing(lambda _: self._run(), [branch.table.full_name for branch in self.branches])

    def _run(self) -> list[int]:
        check_distinct(name.lower() for name in self.frame.columns)
        several = len(self.branches) > 1
        frame = kept_rows(self.frame) if several else self.frame
        return [self._insert(branch, branch.rows(frame)) for branch in self.branches]

    def _insert(self, branch: Branch, rows: DataFrame) -> int:
        if branch.overwrite:
            return self.acid.overwrite(branch.table, rows, partition=branch.partition)
        return self.acid.insert(branch.table, with_keys(branch.table, rows, branch.partition or {}))
