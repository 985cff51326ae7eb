"""One Spark session for all tests here, and an `AcidSession` over a metastore of each test's own."""

import os
import sys
import traceback
from collections.abc import Callable, Iterator

import pytest
from pyspark.errors import PySparkAttributeError
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.spark import AcidSession
from hive_acid.spark.jvm.java import ensure_java
from tests.jvm import IN_UTC
from tests.ports import free_port
from tests.spark.by_spark import WRITTEN, limited

pytest.register_assert_rewrite("tests.spark.checker")

OVER_CONNECT = os.environ.get("HIVE_ACID_TEST_CONNECT") == "1"
"""Whether the tests run as a client of a Spark Connect server, as `make test-connect` has it."""

OF_ITS_OWN = {"test_spark_runs_on_the_wheels_java", "test_a_spark_program_ends_its_snapshots"}
"""Tests of processes with a Spark of their own; they would inherit the word for Connect."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Over Connect, a test that looks into the JVM is skipped; the product must not look there."""
    if OVER_CONNECT and item.name in OF_ITS_OWN:
        pytest.skip("a Spark of its own is started without Connect")
    try:
        return (yield)
    except PySparkAttributeError as error:
        ours = [
            frame.filename
            for frame in traceback.extract_tb(error.__traceback__)
            if "site-packages" not in frame.filename and frame.name != "__getattr__"
        ]
        if not OVER_CONNECT or "/tests/" not in ours[-1]:
            raise
        pytest.skip("a client of Spark Connect cannot look into the JVM")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = started()
    yield session
    session.stop()


def started(java_options: str = IN_UTC, zone: str = "UTC") -> SparkSession:
    """A session as the tests want it, which is in a zone; the options of Java say so, too."""
    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers would be started by the first Python of the path
    builder = SparkSession.builder.appName("hive-acid tests")
    builder = builder.remote("local[2]") if OVER_CONNECT else builder.master("local[2]")
    settings = _on_a_port_of_its_own() if OVER_CONNECT else {}
    settings |= {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": java_options,
        "spark.sql.session.timeZone": zone,
        "spark.sql.shuffle.partitions": "4",
        "spark.log.level": "OFF",
        "spark.sql.codegen.cache.maxEntries": "5000",  # of 100 many were made again for a later test
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _on_a_port_of_its_own() -> dict[str, str]:
    """The setting of a server of Connect by which several may run on one machine; its client is told, too."""
    from pyspark.sql.connect.client.core import DefaultChannelBuilder

    port = free_port()
    DefaultChannelBuilder.default_port = staticmethod(lambda: port)  # type: ignore[method-assign]
    return {"spark.connect.grpc.binding.port": str(port)}


@pytest.fixture
def acid(spark: SparkSession, metastore: Callable[..., str]) -> Iterator[AcidSession]:
    """A session on a fresh metastore with an empty database ``d``; views of a test go with it."""
    with hive_acid.spark.session(spark, metastore()) as session:
        session.create_database("d")
        yield session
    for view in temporary_views(spark):
        spark.catalog.dropTempView(view)


@pytest.fixture
def writers(spark: SparkSession, acid: AcidSession) -> Iterator[list[AcidSession]]:
    """Three sessions beside `acid`, each with a connection of its own."""
    made = [hive_acid.spark.session(spark, acid.connection.uri) for _ in range(3)]
    yield made
    for one in made:
        one.close()


def temporary_views(spark: SparkSession) -> list[str]:
    """The session's own views; to list all tables, as the catalogue does, is a query of 50 ms."""
    if OVER_CONNECT:
        return [table.name for table in spark.catalog.listTables() if table.isTemporary]
    found = spark._jsparkSession.sessionState().catalog().listLocalTempViews("*")
    return [found.apply(number).table() for number in range(found.size())]


@pytest.fixture(name="written_by_spark")
def _written_by_spark(acid: AcidSession) -> Iterator[None]:
    """Spark writes events, however few they are."""
    with limited(acid, **WRITTEN):
        yield
