"""Files that become a table's as they are: whole directories put into place below a table and its partitions.

LOAD DATA and the writes of insert-only tables end here: their files have no ACID columns, so all that says which write
they are of is the directory (acid-format.md §2.4, §5.5). Those of plain tables end here, too, and go file by file
among the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hive_acid.catalog.table import Table
from hive_acid.errors import UnsupportedTableError
from hive_acid.spark.conditions.unfit_settings import refuse_unfit_settings
from hive_acid.spark.read.listing import directory_of
from hive_acid.spark.values.types import row_type
from hive_acid.spark.write.statement import Context
from hive_acid.write.same_partitions import values_of
from hive_acid.write.staging import INSERT, StagedFiles, Staging, Values
from hive_acid.write.table_write import TableWrite


class Placement:
    """One write of whole files to a table, which has begun.

    What is made before `publish` lies below its hidden directory, `location`.
    """

    def __init__(self, context: Context, begun: TableWrite) -> None:
        """Raises TimeZoneMismatchError, UnsupportedTableError for a plain table in which places of files tell rows."""
        _refuse_placed(begun.table)
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

    def publish(self, made: Mapping[Values, str], emptied: Iterable[Values] = ()) -> None:
        """Put directories into place: `made` is from partition to the directory, below `location`, with its files.

        Of a plain table the files go among the others, and an overwrite leaves none in the partitions that are
        `emptied`, either. Raises what `TableWrite.publish` and `TableWrite.mix_in` raise.
        """
        if self.table.is_plain:
            filled = set(map(self._meaning, made))
            self._begun.mix_in(
                self._staging, made, (one for one in emptied if self._meaning(one) not in filled), directory_of
            )
            self._staging.remove()
            return
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
        self._begun.publish(self._staging, found, self.context.check_keys(self._begun))
        self._staging.remove()

    def _meaning(self, values: Values) -> Values:
        """A partition's values as the texts that we have for them."""
        return values_of(self.table, self.table.partition_name(values)) if values else values


def _refuse_placed(table: Table) -> None:
    """Raise UnsupportedTableError for a plain table in which a file's place, or name, tells what rows it has."""
    if not table.is_plain:
        return
    if table.skew is not None and table.skew.in_directories:
        raise UnsupportedTableError(
            f"{table.full_name} is STORED AS DIRECTORIES: its skewed values have directories, which Hive "
            "alone reads and writes"
        )
    if table.bucket_columns:
        raise UnsupportedTableError(f"{table.full_name} is CLUSTERED BY: Spark would not write its buckets")
