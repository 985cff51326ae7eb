"""The Spark session of the data path's tests."""

from tests.spark.conftest import spark  # noqa: F401 - a fixture
