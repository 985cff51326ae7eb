"""The Spark session of the data path's tests."""

from tests.spark.conftest import acid, spark  # noqa: F401 - fixtures
