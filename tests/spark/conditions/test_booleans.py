"""What is no condition is refused wherever one stands, in the user's words, and changes nothing."""

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hive_acid.errors import ColumnError
from hive_acid.spark import AcidSession

pytestmark = pytest.mark.spark

NO_CONDITIONS = ("'1'", "1", "'true'", "v", "n + 1", "NULL", "upper('true')", "coalesce(v, '1')", "(SELECT '1')")
CONDITIONS = ("n = 1", "NOT n = 2", "b", "coalesce(b, false)", "n IN (1)", "true", "n = 1 AND '1'", "isnan(n) OR n = 1")


@pytest.fixture
def table(spark: SparkSession, acid: AcidSession) -> Any:
    acid.create_table("d.t", {"n": "int", "v": "string", "b": "boolean"})
    acid.insert("d.t", _rows(spark))
    return "d.t"


def _rows(spark: SparkSession) -> Any:
    return spark.sql("SELECT * FROM VALUES (1, '1', true), (2, 'x', false) AS v(n, v, b)")


def _source(spark: SparkSession) -> Any:
    return spark.sql("SELECT * FROM VALUES (1, '1', true), (3, 'y', false) AS s(n, v, b)")


def _of_source(condition: Any) -> Any:
    """The same condition on rows of the source."""
    return condition.replace("n ", "s.n ").replace("(b", "(s.b").replace("(n)", "(s.n)").replace("(v", "(s.v")


def _verbs(spark: SparkSession, acid: AcidSession, table: Any, condition: Any) -> Any:
    source, rows = _source(spark), _rows(spark)
    of_both = {"v": "s.v", "b": "t.b", "n + 1": "s.n + 1"}.get(condition, _of_source(condition))
    merge = lambda: acid.merge(table, source, "t.n = s.n")  # noqa: E731 - one of many
    return {
        "table": lambda: acid.table(table, where=condition),
        "update": lambda: acid.update(table, {"n": "9"}, condition),
        "delete": lambda: acid.delete(table, condition),
        "overwrite": lambda: acid.overwrite(table, rows, where=condition),
        "update from": lambda: acid.update(table, {"n": "9"}, of_both, source=source, on="t.n = s.n"),
        "delete using": lambda: acid.delete(table, of_both, source=source, on="t.n = s.n"),
        "delete on": lambda: acid.delete(table, source=source, on=of_both),
        "merge on": lambda: acid.merge(table, source, of_both).whenMatchedDelete().execute(),
        "matched": lambda: merge().whenMatchedDelete(of_both).execute(),
        "not matched": lambda: merge().whenNotMatchedInsertAll(of_both.replace("t.", "s.")).execute(),
        "by source": lambda: merge().whenNotMatchedBySourceDelete(condition).execute(),
        "multi insert": lambda: acid.multi_insert(rows).into(table, where=condition).execute(),
        "SQL update": lambda: acid.sql(f"UPDATE {table} SET n = 9 WHERE {condition}"),
        "SQL delete": lambda: acid.sql(f"DELETE FROM {table} WHERE {condition}"),
        "SQL replace": lambda: acid.sql(f"INSERT INTO {table} REPLACE WHERE {condition} VALUES (1, 'a', true)"),
    }


@pytest.mark.parametrize("condition", NO_CONDITIONS)
def test_what_is_no_condition_changes_nothing(
    spark: SparkSession, acid: AcidSession, table: Any, condition: Any
) -> None:
    before = sorted(acid.table(table).collect())
    for name, verb in _verbs(spark, acid, table, condition).items():
        with pytest.raises(ColumnError) as refused:
            verb()
        said = str(refused.value)
        assert "is true or false, and" in said or "subquery" in said.lower(), f"{name}: {said}"
    assert sorted(acid.table(table).collect()) == before


def test_columns_are_asked_as_well(spark: SparkSession, acid: AcidSession, table: Any) -> None:
    source = _source(spark)
    for one in (F.lit("1"), F.col("v"), F.lit(1), F.concat(F.col("v"), F.lit(""))):
        with pytest.raises(ColumnError, match="is true or false, and"):
            acid.delete(table, one)
    with pytest.raises(ColumnError, match="is true or false, and"):
        acid.merge(table, source, "t.n = s.n").whenMatchedDelete(F.col("s.v")).execute()
    with pytest.raises(ColumnError, match="is true or false, and"):
        acid.merge(table, source, F.col("s.v")).whenMatchedDelete().execute()
    assert acid.table(table).count() == 2


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_are_taken(acid: AcidSession, table: Any, condition: Any) -> None:
    assert [row.n for row in acid.table(table, where=condition).collect()] in ([1], [1, 2])
    with pytest.raises(ColumnError), acid.transaction():
        assert acid.update(table, {"v": "'z'"}, condition) >= 1
        assert acid.delete(table, condition) >= 1
        raise ColumnError("given up")
