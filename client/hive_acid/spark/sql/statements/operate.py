"""The statements of operators, which `hive_acid.operators` understands."""

from __future__ import annotations

from pyspark.sql import DataFrame

from hive_acid.operators import execution as operators
from hive_acid.operators.statements import parse
from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.tokens import Cursor


def operate(run: Run, cursor: Cursor) -> DataFrame:
    """An operator's statement, such as ``ABORT TRANSACTIONS 1 2``: its result, by `hive_acid.operators.execution`."""
    asked = parse(cursor.text)
    return run.nothing() if run.explains else run.listing(operators.run(run.acid.connection, asked, run.names))
