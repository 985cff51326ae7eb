"""Files that become a table's as they are: whole directories put into place below a table and its partitions.

LOAD DATA and the writes of insert-only tables end here: their files have no ACID columns, so all that says which write
they are of is the directory (acid-format.md §2.4, §5.5).
"""

from __future__ import annotations

from collections.abc import Mapping

from hive_acid.catalog.table import Table
from hive_acid.errors import TableNotAcidError
from hive_acid.spark.conditions.unfit_settings import refuse_unfit_settings
from hive_acid.spark.values.types import row_type
from hive_acid.spark.write.statement import Context
from hive_acid.write.staging import INSERT, StagedFiles, Staging, Values
from hive_acid.write.table_write import TableWrite


class Placement:
    """One write of whole files to a transactional table, which has begun.

    What is made before `publish` lies below its hidden directory, `location`.
    """

    def __init__(self, context: Context, begun: TableWrite) -> None:
        """Raises TableNotAcidError for a plain table, TimeZoneMismatchError."""
        check_writable(begun.table)
        context.zones.check(row_type(begun.table.columns))
        refuse_unfit_settings(context.spark, begun.table)
        self.context = context
        self.table = begun.table
        self._begun = begun
        self._staging = begun.stage(Staging)

    @property
    def location(self) -> str:
        """The hidden directory."""
        return self._staging.location

    def publish(self, made: Mapping[Values, str]) -> None:
        """Put directories into place: `made` is from partition to the directory, below `location`, with its files.

        Raises what `TableWrite.publish` raises.
        """
        _, statement_id = self._begun.ids()
        found = [
            StagedFiles(
                INSERT,
                values,
                {},
                statement_id=statement_id,
                directory=source.removeprefix(self.location).strip("/"),
                is_marked=False,
            )
            for values, source in made.items()
        ]
        self._begun.publish(self._staging, found)
        self._staging.remove()


def check_writable(table: Table) -> None:
    """Raise TableNotAcidError for a plain table."""
    if not table.is_transactional:
        raise TableNotAcidError(
            f"{table.full_name} is not an ACID table: its property 'transactional' is not 'true'. Write to it with "
            "Spark, or make it one with acid.convert_table"
        )
