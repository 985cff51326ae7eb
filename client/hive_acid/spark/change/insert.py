"""INSERT: rows of a frame become a delta of the table.

Those that stand in the statement, as of ``INSERT … VALUES``, are written by the client; all others by a Spark job.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from hive_acid.spark.change.driver_write import GaveUp, driver_inserts, why_not_written_here
from hive_acid.spark.change.given_rows import given_rows
from hive_acid.spark.plans.change_plan import InsteadPlan
from hive_acid.spark.plans.telling import tell
from hive_acid.spark.write.insert import new_rows, plan_of, stored
from hive_acid.spark.write.planned import Planned
from hive_acid.spark.write.statement import Context, Statement, column_errors
from hive_acid.write.table_write import TableWrite


def insert(context: Context, begun: TableWrite, frame: DataFrame) -> Planned[int]:
    """Insert the rows of `frame`, whose columns meet the table's by name, in any case and order.

    The partition of each row comes from its partition columns; new partitions are registered. Raises ColumnError for
    columns or values that do not fit, UnsupportedTableError for a table CLUSTERED BY an older hash. Gives the number
    of rows.
    """
    statement, table = Statement(context, begun), begun.table
    statement.refuse_clustered("INSERT")
    values = stored(table, frame)
    why_not = why_not_written_here(context.spark, table)
    given = given_rows(values, frame, table) if why_not is None else None
    estimate = given.estimate if given is not None else None
    plan = plan_of(context, "INSERT into", table, values, estimate=estimate, unwritable=lambda: why_not)

    def run() -> int:
        write = statement.write()
        if plan.by_client:
            with column_errors(table):
                inserts = given.inserts(context.limits) if given is not None else None
                if inserts is None:
                    inserts = driver_inserts(values, table, context.limits)
            if not isinstance(inserts, GaveUp):
                return statement.change({}, inserts, write).inserts
            tell(InsteadPlan(plan.verb, plan.table, inserts.why))
        return statement.run(new_rows(table, values, write, plan), write).inserts

    return Planned(plan, run, 0)
