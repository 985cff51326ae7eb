"""One S3-compatible server and one HDFS for all tests here; without Maven Central they are skipped."""

from collections.abc import Iterator

import pytest

from tests.clients.java.maven import NotFetchedError
from tests.remote.hdfs import served_hdfs
from tests.remote.s3 import Store, served_store


@pytest.fixture(scope="session")
def running_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    try:
        with served_store(tmp_path_factory.mktemp("s3")) as running:
            yield running
    except NotFetchedError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def store(running_store: Store) -> Iterator[Store]:
    """Known to fsspec while a module here runs: tests elsewhere in this process have no store and no keys."""
    import fsspec
    import fsspec.config

    with pytest.MonkeyPatch.context() as patch:
        for name, value in running_store.environment.items():
            patch.setenv(name, value)
        fsspec.config.set_conf_env(fsspec.config.conf)
        yield running_store
        fsspec.config.conf.pop("s3", None)
        fsspec.get_filesystem_class("s3").clear_instance_cache()


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of its root."""
    pytest.importorskip("hdfs_native", reason="HDFS needs hive-acid[hdfs], which is not installed here")
    try:
        with served_hdfs(tmp_path_factory.mktemp("hdfs")) as url:
            yield url
    except NotFetchedError as error:
        pytest.skip(str(error))
