"""Hive 4's reader classes in a JVM of their own, and the data path's Spark session and metastore."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.java.client import JavaHive
from tests.clients.java.maven import HIVE_4_READERS, NotFetchedError, jars_of
from tests.hive_readers.readers import HiveReaders
from tests.spark.compact.test_bucket_merge import by_bucket, kept, looked  # noqa: F401 - fixtures
from tests.spark.conftest import acid, spark  # noqa: F401 - fixtures


@pytest.fixture(scope="session")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveReaders]:
    """Skips when the classes are not on this machine and cannot be fetched."""
    try:
        jars = jars_of(HIVE_4_READERS)
    except NotFetchedError as error:
        pytest.skip(str(error))
    with JavaHive(4, jars, tmp_path_factory.mktemp("hive")) as running:
        yield HiveReaders(running)
