"""The Spark session of all tests, joined to a metastore of the test's own until its end."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.spark import EnabledSession


@pytest.fixture
def joined(spark: SparkSession, metastore: Callable[..., str]) -> Iterator[EnabledSession]:
    """`spark` joined to a fresh metastore with an empty database ``d``; views of a test go with it."""
    with hive_acid.spark.enable(spark, metastore()) as session:
        session.create_database("d")
        yield session
    for table in spark.catalog.listTables():
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)
    assert type(spark).__mro__[0].__name__ == "SparkSession"


@pytest.fixture
def numbers(joined: EnabledSession, spark: SparkSession) -> Any:
    """Tables ``d.t`` (id, n) and, by day, ``d.p`` (id, day)."""
    joined.create_table("d.t", {"id": "int", "n": "int"})
    joined.insert("d.t", spark.createDataFrame([(1, 10), (2, 20), (3, 30)], "id int, n int"))
    joined.create_table("d.p", {"id": "int", "day": "int"}, partitioned_by=["day"])
    joined.insert("d.p", spark.createDataFrame([(1, 1), (2, 1), (3, 2)], "id int, day int"))
    return joined
