"""The hostile values are what they say, in Spark too; what ORC cannot hold is marked."""

import pytest
from pyspark.sql import SparkSession

from tests.values.rows.exact import exactly, rows_of
from tests.values.rows.hostile import TYPES, day, hostile, is_storable, micros, stored

pytestmark = pytest.mark.spark


def test_spark_reads_each_value_as_the_model_has_it(spark: SparkSession) -> None:
    for kind in TYPES:
        values = hostile(kind)
        frame = spark.sql(f"SELECT explode(array({', '.join(value.sql for value in values)})) AS v")
        found = [exactly(model) for (model,) in rows_of(frame, [kind])]
        assert found == [exactly(value.model) for value in values], kind
        assert len(set(found)) == len(values), kind


def test_what_orc_cannot_hold_is_marked() -> None:
    assert not is_storable("date", day("1582-10-10"))
    assert is_storable("date", day("1582-10-04"))
    assert is_storable("date", day("1582-10-15"))
    assert not is_storable("timestamp", micros("1969-12-31 23:59:59.001"))
    assert is_storable("timestamp", micros("1969-12-31 23:59:59.000999"))
    assert not is_storable("struct<a:float,b:array<timestamp>>", (0.0, (None, -1)))
    for kind in TYPES:
        lost = len(hostile(kind)) - len(stored(kind))
        assert bool(lost) == ("date" in kind or "timestamp" in kind), kind
