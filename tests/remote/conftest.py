"""One S3-compatible server and one HDFS for all tests here; without Maven Central they are skipped."""

import os
from collections.abc import Iterator

import pytest

from tests.clients.maven import NotFetchedError
from tests.remote.hdfs import served_hdfs
from tests.remote.s3 import Store, served_store


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with pytest.MonkeyPatch.context() as patch:
        try:
            with served_store(tmp_path_factory.mktemp("s3")) as running:
                for name, value in running.environment.items():
                    patch.setitem(os.environ, name, value)
                import fsspec.config

                fsspec.config.set_conf_env(fsspec.config.conf)
                yield running
        except NotFetchedError as error:
            pytest.skip(str(error))
        finally:
            import fsspec.config

            fsspec.config.conf.pop("s3", None)


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of its root."""
    pytest.importorskip("hdfs_native", reason="HDFS needs hive-acid[hdfs], which is not installed here")
    try:
        with served_hdfs(tmp_path_factory.mktemp("hdfs")) as url:
            yield url
    except NotFetchedError as error:
        pytest.skip(str(error))
