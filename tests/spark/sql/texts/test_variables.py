"""``${name}`` means in our statements what it means in Spark's."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import SqlError
from hive_acid.spark import AcidSession


@pytest.fixture
def named(acid: AcidSession, spark: SparkSession) -> Iterator[Any]:
    acid.create_table("d.t", {"id": "int", "s": "string"})
    acid.insert("d.t", spark.createDataFrame([(1, "one"), (2, "two"), (3, "${unknown}")], "id int, s string"))
    settings = {"wanted": "two", "table_of_day": "d.t", "inner": "${wanted}"}
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield acid
    for key in settings:
        spark.conf.unset(key)
    spark.conf.unset("spark.sql.variable.substitute")


def ids(frame: Any) -> Any:
    return sorted(row.id for row in frame.collect())


def test_variables_are_replaced(named: Any, spark: SparkSession) -> None:
    assert ids(named.sql("SELECT id FROM ${table_of_day} WHERE s = '${hiveconf:wanted}'")) == [2]
    named.sql("UPDATE ${table_of_day} SET s = concat(s, '!') WHERE s = '${inner}'")
    assert ids(named.sql("SELECT id FROM d.t WHERE s = '${wanted}!'")) == [2]
    assert named.update("d.t", {"s": "'${wanted}?'"}, "s = '${wanted}!'") == 1
    assert ids(named.table("d.t").where("s = '${wanted}?'")) == [2]
    named.sql("DELETE FROM d.t WHERE s = '${unknown}${env:NOBODY_HAS_IT}' OR s = concat('${unknown}', '${env:HOME}')")
    assert ids(named.table("d.t")) == [1, 2, 3]
    spark.conf.set("spark.sql.variable.substitute", "false")
    named.sql("DELETE FROM d.t WHERE s = '${wanted}?'")
    assert ids(named.table("d.t")) == [1, 2, 3]


def test_a_parameter_is_a_value(named: Any) -> None:
    assert ids(named.sql("SELECT id FROM d.t WHERE s = :text", {"text": "${unknown}"})) == [3]
    named.sql("DELETE FROM d.t WHERE s = :text", {"text": "${unknown}"})
    assert ids(named.table("d.t")) == [1, 2]


def test_a_variable_of_itself_is_refused(named: Any, spark: SparkSession) -> None:
    spark.conf.set("inner", "${inner}")
    with pytest.raises(SqlError, match="inner stands for itself"):
        named.sql("SELECT '${inner}' FROM d.t")
