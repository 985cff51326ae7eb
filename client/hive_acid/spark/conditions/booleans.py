"""Whether what is given as a condition is one: true, false or null.

Spark asks that of a filter. But where conditions are joined by AND, it takes the text '1' for true, and so a statement
would change rows that nobody has named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t
from sqlglot import exp

from hive_acid.catalog.table import Table
from hive_acid.errors import ColumnError
from hive_acid.spark.conditions.expressions import Expression, expression
from hive_acid.spark.conditions.trees import condition_tree
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.values.assign import sql_type
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.types import spark_type

_EVIDENT = (exp.Predicate, exp.Connector, exp.Not, exp.Boolean, exp.RegexpLike)
_SHOWN_LENGTH = 80


def refuse_non_boolean(condition: Expression | None, names: Sequence[str], rows: Callable[[], DataFrame]) -> None:
    """Raise ColumnError for a condition that is not boolean.

    `rows` makes a frame of which it is asked if that is not evident, and `names` are those of its columns. What Spark
    does not understand there is for the statement to refuse.
    """
    if condition is None or _is_evident(condition, names):
        return
    try:
        kinds = [field.dataType for field in rows().select(expression(condition)).schema.fields]
    except PySparkException:
        return
    if len(kinds) == 1 and not isinstance(kinds[0], t.BooleanType):
        text = condition if isinstance(condition, str) else str(condition)
        raise ColumnError(
            f"a condition is true or false, and {text[:_SHOWN_LENGTH]} is of type {kinds[0].simpleString()}: compare "
            "it with something"
        )


def refuse_non_boolean_of(spark: SparkSession, condition: Expression | None, table: Table, alias: str) -> None:
    """As `refuse_non_boolean`, of a condition on rows of a table, which are called `alias`."""
    refuse_non_boolean(condition, names_of(table), lambda: no_rows(spark, table, alias))


def names_of(table: Table) -> list[str]:
    """The names of all columns."""
    return [column.name for column in table.all_columns]


def no_rows(spark: SparkSession, table: Table, alias: str) -> DataFrame:
    """A frame with the columns of a table and no row, under an alias."""
    columns = table.all_columns
    nulls = (f"CAST(NULL AS {sql_type(spark_type(one.type))}) AS {quoted(one.name)}" for one in columns)
    return projected(spark.range(0), *nulls).alias(alias)


def _is_evident(condition: Expression, names: Sequence[str]) -> bool:
    tree = condition_tree(condition, names)
    return tree is not None and isinstance(tree.unnest(), _EVIDENT)
