"""A real server, our Spark session on it, and the engines beside it; what cannot be had here is skipped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.demo.daemon import Daemon
from hive_acid.spark import AcidSession
from tests.clients.java.maven import NotFetchedError
from tests.databases import copied
from tests.engines.hive import HiveEngine
from tests.engines.javas import NoJavaError
from tests.engines.trino import TrinoEngine, served_trino
from tests.engines.values import COLUMNS, ROWS
from tests.spark.conftest import spark  # noqa: F401 - a fixture

SETTINGS = {
    "hive.compactor.initiator.on": "false",  # only what a test asks for is compacted
    "hive.compactor.cleaner.run.interval": "1s",
    "hive.users.in.admin.role": "root",
}


@dataclass(frozen=True)
class Ours:
    """``metastore serve`` as a user starts it, and our client on it."""

    uri: str
    warehouse: Path
    acid: AcidSession


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`make test` leaves them out."""
    if "engines" in config.getoption("markexpr"):
        return
    skipped = pytest.mark.skip(reason="engines are run by `make test-engines`")
    for item in items:
        if item.get_closest_marker("engines"):
            item.add_marker(skipped)


@pytest.fixture(scope="session")
def ours(
    postgres_url: str,
    template: str,
    spark: SparkSession,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Ours]:
    work = tmp_path_factory.mktemp("ours")
    with (
        copied(postgres_url, template) as url,
        Daemon(work, SETTINGS, url) as daemon,
        hive_acid.spark.session(spark, daemon.uri) as acid,
    ):
        yield Ours(daemon.uri, daemon.warehouse, acid)


@pytest.fixture
def acid(ours: Ours) -> AcidSession:
    return ours.acid


@pytest.fixture
def db(acid: AcidSession, request: pytest.FixtureRequest) -> str:
    """A database named after the test and its engine: both have tests of one name."""
    module, test = request.node.module.__name__.rpartition(".")[2], request.node.name
    name = re.sub(r"\W", "_", f"{module.removeprefix('test_')}_{test.removeprefix('test_')}")[:60].lower()
    acid.create_database(name)
    return name


@pytest.fixture
def written(acid: AcidSession, spark: SparkSession, db: str) -> str:  # noqa: F811
    """A table that our client has written, of all types."""
    acid.create_table(f"{db}.ours", COLUMNS)
    texts = re.sub(r"(var)?char\(\d+\)", "string", ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items()))
    acid.insert(f"{db}.ours", spark.createDataFrame(list(ROWS), texts))
    return f"{db}.ours"


@pytest.fixture(scope="session")
def hive(ours: Ours, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveEngine]:
    try:
        engine = HiveEngine(ours.uri, ours.warehouse, tmp_path_factory.mktemp("hive"))
    except (NotFetchedError, NoJavaError) as error:
        pytest.skip(f"Hive cannot be run here: {error}")
    with engine:
        yield engine


@pytest.fixture(scope="session")
def trino(ours: Ours, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrinoEngine]:
    try:
        with served_trino(ours.uri, tmp_path_factory.mktemp("trino")) as engine:
            yield engine
    except (NotFetchedError, NoJavaError) as error:
        pytest.skip(f"Trino cannot be run here: {error}")
