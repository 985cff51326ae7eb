"""INSERT and INSERT OVERWRITE: rows of a frame become a delta of the table, or bases, which replace what it held.

Those that stand in the statement, as of ``INSERT … VALUES``, are written by the client, and so are others of which
Spark says that they are few: a job that writes takes longer than one that brings them, most of all with partitions.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from hive_acid.format.orc.bloom_filters import COLUMNS, asked_filters
from hive_acid.format.partitions import parse_partition_name
from hive_acid.spark.change.driver_write import GaveUp, driver_inserts, why_not_written_here
from hive_acid.spark.change.given_rows import given_rows
from hive_acid.spark.plans.change_plan import InsteadPlan
from hive_acid.spark.plans.telling import tell
from hive_acid.spark.values.specs import PartitionSpec, with_constants
from hive_acid.spark.write.insert import new_rows, plan_of, stored
from hive_acid.spark.write.planned import Planned
from hive_acid.spark.write.statement import Context, Overwrite, Statement, column_errors
from hive_acid.write.table_write import TableWrite


def insert(context: Context, begun: TableWrite, frame: DataFrame) -> Planned[int]:
    """Insert the rows of `frame`, whose columns meet the table's by name, in any case and order.

    The partition of each row comes from its partition columns; new partitions are registered. Raises ColumnError for
    columns or values that do not fit, UnsupportedTableError for a table CLUSTERED BY an older hash. Gives the number
    of rows.
    """
    statement = Statement(context, begun)
    statement.refuse_clustered("INSERT")
    return _planned(statement, "INSERT into", frame)


def overwrite(
    context: Context,
    begun: TableWrite,
    frame: DataFrame,
    partition: PartitionSpec | None = None,
    *,
    everything: bool = False,
) -> Planned[int]:
    """Replace rows by those of `frame`; gives their number.

    Of an unpartitioned table all rows are replaced, of a partitioned one those of each partition that rows of `frame`
    fall into, or `everything`. `partition` gives values of the first partition columns, which `frame` then need not
    have, and no other ones: with all of them, that partition is replaced even if `frame` is empty.

    How other engines are kept from the bases is told by `hive_acid.spark.write.overwrite`. Raises ColumnError for
    columns, values or a `partition` that do not fit, UnsupportedTableError for a table CLUSTERED BY an older hash.
    """
    statement, table = Statement(context, begun), begun.table
    statement.refuse_clustered("INSERT OVERWRITE")
    given, whole = with_constants(table, frame, partition)

    def replaced() -> Overwrite:
        if everything and table.partition_keys:
            names = context.connection.partition_names(table)
            return Overwrite([tuple(value for _, value in parse_partition_name(name)) for name in names])
        return Overwrite([] if whole is None else [whole])

    return _planned(statement, "INSERT OVERWRITE of", given, replaced)


def _planned(
    statement: Statement, verb: str, frame: DataFrame, replaced: Callable[[], Overwrite] | None = None
) -> Planned[int]:
    """Writes the rows of `frame`, which replace what is `replaced`, if anything; gives their number."""
    context, table = statement.context, statement.table
    values = stored(table, frame)
    why_not = why_not_written_here(context.spark, table)
    given = given_rows(values, frame, table) if why_not is None else None
    if given is None and why_not is None and COLUMNS in asked_filters(table.parameters):
        why_not = "the client makes no bloom filters"
    plan = plan_of(
        context,
        verb,
        table,
        values,
        in_one_directory=replaced is not None,
        estimate=given.estimate if given is not None else None,
        unwritable=lambda: why_not,
    )

    def run() -> int:
        write = statement.write()
        overwrites = replaced() if replaced is not None else None
        if plan.by_client:
            with column_errors(table):
                inserts = given.inserts(context.limits) if given is not None else None
                if inserts is None:
                    with statement.reading():  # which rows that are given have no use for
                        inserts = driver_inserts(values, table, context.limits)
            if not isinstance(inserts, GaveUp):
                return statement.change({}, inserts, write, overwrite=overwrites).inserts
            tell(InsteadPlan(plan.verb, plan.table, inserts.why))
        return statement.run(new_rows(table, values, write, plan), write, overwrite=overwrites).inserts

    return Planned(plan, run, 0)
