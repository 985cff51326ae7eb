"""New rows of a frame as they are stored, and as events of a Spark job, in as few files as their size allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hive_acid.catalog.alterations import NewColumns
from hive_acid.catalog.table import Column, Table
from hive_acid.spark.conditions.char_conditions import without_blanks
from hive_acid.spark.conditions.expressions import Expression, expression
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.plans.change_plan import InsertPlan, insert_plan
from hive_acid.spark.plans.tasks import Estimate
from hive_acid.spark.values.assign import assigned, lacking, match_columns, sql_type, wider
from hive_acid.spark.values.completion import completed
from hive_acid.spark.values.hashing import bucket_of
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.texts import declared
from hive_acid.spark.values.types import check_distinct, spark_type
from hive_acid.spark.write.constraints import checked, filled
from hive_acid.spark.write.distribution import estimated, parts_of
from hive_acid.spark.write.events import Events, clustered_events, directory_keys, insert_events, sorted_by
from hive_acid.spark.write.layout import Layout, Write, layout_of
from hive_acid.spark.write.statement import Context, analysed, column_errors


def stored(table: Table, frame: DataFrame) -> DataFrame:
    """The columns and partition columns of `table` out of `frame`, as they are stored.

    One that `frame` lacks has its default. Rows that break a constraint will fail the statement.
    """
    given = filled(table, frame)
    names = match_columns(table, given.columns)
    return checked(table, assigned(table, table.all_columns, given, names))


def evolving(frame: DataFrame) -> NewColumns:
    """Gives the columns of `frame` that a table lacks.

    Raises ColumnError for a type that the table cannot have, and a name that is given twice.
    """

    def missing(table: Table) -> Sequence[Column]:
        check_distinct(name.lower() for name in frame.columns)
        fields = frame.schema.fields
        return [*lacking(table, fields), *wider(table, fields)]

    return missing


def with_nulls(table: Table, frame: DataFrame) -> DataFrame:
    """The rows of `frame` with null for those columns of the table, but its partition columns, that it lacks.

    So it is with the fields of structs.
    """
    given = {field.name.lower(): field for field in frame.schema.fields}
    types = {column.name: spark_type(column.type) for column in table.all_columns}
    values = [
        f"{completed(quoted(field.name), field.dataType, types[name])} AS {quoted(field.name)}"
        if name in types
        else quoted(field.name)
        for name, field in given.items()
    ]
    nulls = [
        f"CAST(NULL AS {sql_type(types[one.name])}) AS {quoted(one.name)}"
        for one in table.columns
        if one.name not in given and one.name not in table.defaults
    ]
    return projected(frame, *values, *nulls)


def only_where(table: Table, frame: DataFrame, where: Expression) -> DataFrame:
    """The rows of `frame` as `stored` has them; one for which `where` is not true fails the statement.

    The condition is asked where a column is computed: a filter, Spark might ask of rows that never become one of these.
    """
    with column_errors(table):
        columns = table.all_columns
        values = declared(stored(table, frame), columns).alias(table.name)
        first, *others = (F.col(quoted(column.name)) for column in columns)
        words = f"a new row of {table.full_name} is not one of those that it is to replace"
        refused = F.raise_error(F.lit(words)).cast(spark_type(table.columns[0].type))
        checked = (
            F.when(expression(without_blanks(where, table)), first).otherwise(refused).alias(table.columns[0].name)
        )
        return analysed(values.select(checked, *others))


def plan_of(
    context: Context,
    verb: str,
    table: Table,
    values: DataFrame,
    *,
    in_one_directory: bool,
    estimate: Estimate | None,
    unwritable: Callable[[], str | None],
) -> InsertPlan:
    """Who writes rows of `stored`, and in which tasks.

    `in_one_directory` says that there is no room for several statements, which the layout may want; `estimate` is what
    is known of them already, else Spark is asked; `unwritable` finds out why the client cannot write them.
    """

    @cache
    def known() -> Estimate:
        return estimated(values) if estimate is None else estimate

    return insert_plan(
        verb,
        table.full_name,
        clustered=bool(table.bucket_columns),
        one_file=in_one_directory and layout_of(table) is Layout.STATEMENTS,
        divided=bool(table.partition_keys),
        columns=len(table.all_columns),
        estimate=known,
        target_bytes=context.distributor.target_bytes,
        cores=context.distributor.cores,
        parts=lambda: parts_of(values, known().leaves),
        unwritable=unwritable,
        limits=context.limits,
    )


def new_rows(table: Table, values: DataFrame, write: Write, plan: InsertPlan) -> Events:
    """Rows of `stored` as events, in the tasks of the plan."""
    row = [column.name for column in table.columns]
    keys = directory_keys(table.partition_keys)
    if plan.distribution is None:
        bucket = bucket_of(table, {name: quoted(name) for name in table.bucket_columns})
        return clustered_events(values, row, keys, write, bucket, sorted_by(table))
    return insert_events(values, row, keys, write, plan.distribution, sorted_by(table))
