"""One Spark session for all tests here, and an `AcidSession` over a metastore of each test's own."""

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.spark import AcidSession
from hive_acid.spark.java import ensure_java

pytest.register_assert_rewrite("tests.spark.checker")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    ensure_java()
    builder = SparkSession.builder.master("local[2]").appName("hive-acid tests")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.log.level": "OFF",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def acid(spark: SparkSession, metastore: Callable[..., str]) -> Iterator[AcidSession]:
    """A session on a fresh metastore with an empty database ``d``."""
    with hive_acid.spark.session(spark, metastore()) as session:
        session.create_database("d")
        yield session
