"""SQL over ACID tables: `Sql` is what `acid.sql` calls. Each family of statements has a file of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from hive_acid.spark.blocks import Blocks
from hive_acid.spark.sql.arguments import Arguments
from hive_acid.spark.sql.names import CurrentDatabase
from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.statements import run_statement

if TYPE_CHECKING:
    from hive_acid.spark.session import AcidSession


class Sql:
    """Runs statements for a session; each thread has a current database of its own."""

    def __init__(self, acid: AcidSession, blocks: Blocks) -> None:
        self._acid = acid
        self._blocks = blocks
        self._current = CurrentDatabase()

    def run(self, text: str, arguments: Arguments = None) -> DataFrame:
        """The rows of the one statement that `text` is. Raises SqlError for what is not understood."""
        return run_statement(Run(self._acid, self._blocks, self._current, arguments), text)
