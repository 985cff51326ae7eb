"""Rows that others have added since a MERGE looked for matches: one that its source matches is to conflict with it.

Two merges that bring the same key would each insert it, and one that finds a key would miss the row that another one
has just given it. So before the commit of a merge that may insert, the rows of the writes that have become visible are
joined with its source, in the partitions into which it has put something.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hive_acid.catalog.table import Table
from hive_acid.errors import HiveAcidError
from hive_acid.spark.change.source import Join, KeptSource
from hive_acid.spark.conditions.expressions import expression
from hive_acid.spark.jvm.session_settings import SessionSettings
from hive_acid.spark.keys.rows_since import MOST_WRITES, rows_since
from hive_acid.spark.read.undivided import beside
from hive_acid.spark.write.statement import Context
from hive_acid.transactions.changed_rows import Since


@dataclass(frozen=True)
class NewMatches:
    """What a merge compares with rows that it has not seen."""

    context: Context
    table: Table
    join: Join
    source: KeptSource
    settings: SessionSettings
    is_alone: bool
    """Whether it is all that its transaction does, so that settings stay what they are until the commit."""

    @classmethod
    def of(cls, context: Context, table: Table, join: Join, source: KeptSource, *, is_alone: bool) -> NewMatches:
        """Those of a merge under the settings of now."""
        return cls(context, table, join, source, SessionSettings.of(context.spark), is_alone)

    def why_not_apart(self, since: Since, places: Mapping[str, str]) -> str | None:
        """Why a row of others may match the source, of the writes that have become visible `since`; None if none does.

        `places` are the partitions to look in, by their names, "" for an unpartitioned table's one. Raises OSError
        where files cannot be read.
        """
        writes = since.others(MOST_WRITES)
        if writes is None:
            return "there are too many new rows to compare them"
        if not writes or not places:
            return None
        spark = self.context.spark
        is_same = self.is_alone if self.settings.values is None else self.settings.are_those_of(spark)
        if not is_same:
            return "settings have been changed since its MERGE, so that its ON may mean something else"
        try:
            matches = self._matches(spark, since, places, writes)
        except HiveAcidError as error:
            return f"new rows cannot be read: {error}"
        return "another transaction has added a row that its MERGE matches" if matches else None

    def _matches(self, spark: SparkSession, since: Since, places: Mapping[str, str], writes: list[int]) -> bool:
        context = self.context
        rows = rows_since(*(spark, self.table, since, writes, places), skipping=context.skipping, limits=context.limits)
        meant = self.join.meant(self.join.on, self.table)
        target = beside(rows, meant).alias(self.join.target_alias)
        found = target.join(self.source.joined(), expression(meant), "left_semi").limit(1)
        return bool(found.select(F.lit(1)).collect())
