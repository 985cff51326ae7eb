"""Rows that others have added since a statement looked for some: one that it would have found is to conflict with it.

Two merges that bring the same key would each insert it, and one that finds a key would miss the row that another one
has just given it; two statements that replace the rows of a condition would each leave theirs. So before the commit of
one that may insert, the rows of the writes that have become visible are asked what those were asked that it has seen,
in the partitions into which it has put something.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hive_acid.catalog.table import Table
from hive_acid.errors import HiveAcidError
from hive_acid.spark.jvm.session_settings import SessionSettings
from hive_acid.spark.keys.rows_since import MOST_WRITES, rows_since
from hive_acid.spark.write.statement import Context
from hive_acid.transactions.changed_rows import Since
from hive_acid.wire import table_name
from hive_acid.write.table_write import TableWrite

Found = Callable[[DataFrame], DataFrame]
"""Gives those of some rows of a table that a statement would have found."""


@dataclass(frozen=True)
class NewMatches:
    """What a statement asks of rows that it has not seen."""

    context: Context
    table: Table
    found: Found
    settings: SessionSettings | None
    """Those of the statement; None if it is all that its transaction does, so that they stay until the commit."""

    @classmethod
    def look(cls, context: Context, begun: TableWrite, found: Found) -> None:
        """Have the commit of a write look for them, as they are `found` under the settings of now."""
        table, transaction = begun.table, begun.transaction
        is_alone = transaction.may_begin_again
        of = cls(context, table, found, None if is_alone else SessionSettings.asked(context.spark))
        transaction.changed.look_before_commit(table_name(table.database, table.name), of.why_not_apart)

    def why_not_apart(self, since: Since, places: Mapping[str, str]) -> str | None:
        """Why it may find a row of others, of the writes that have become visible `since`; None if it finds none.

        `places` are the partitions to look in, by their names, "" for an unpartitioned table's one. Raises OSError
        where files cannot be read.
        """
        writes = since.others(MOST_WRITES)
        if writes is None:
            return "there are too many new rows to compare them"
        if not writes or not places:
            return None
        context = self.context
        if self.settings is not None and not self.settings.are(SessionSettings.asked(context.spark)):
            return "settings have been changed since the statement, so that its condition may mean something else"
        try:
            rows = rows_since(
                *(context.spark, self.table, since, writes, places), skipping=context.skipping, limits=context.limits
            )
            some = self.found(rows).limit(1).select(F.lit(1)).collect()
        except (HiveAcidError, PySparkException) as error:  # such as for a subquery, whose tables had names meanwhile
            return f"new rows cannot be compared: {error}"
        return "another transaction has added a row that the statement would have found" if some else None
