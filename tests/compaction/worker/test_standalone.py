"""Compactions submitted to a real standalone cluster of Spark: a master and a worker on this machine."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from metastore.compaction.config import CompactionConfig
from metastore.compaction.worker.executor import executor_for
from tests.compaction.world import World
from tests.ports import await_port, free_port
from tests.waiting import until

from .test_connect_backend import started
from .test_spark import minor_then_major
from .test_spark import spark_world as spark_world

HERE = ("--host", "127.0.0.1", "--webui-port", "0")
SMALL = {"SPARK_DAEMON_MEMORY": "256m"}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """The URL of a master that has a worker."""
    port, logs = free_port(), tmp_path / "logs"
    logs.mkdir()
    master = ("org.apache.spark.deploy.master.Master", "--port", str(port), *HERE)
    url = f"spark://127.0.0.1:{port}"
    worker = (
        *("org.apache.spark.deploy.worker.Worker", "--cores", "2", "--memory", "1g"),
        *("--work-dir", str(tmp_path / "work"), *HERE, url),
    )
    with started("spark-class", *master, log=logs / "master", **SMALL) as process:
        await_port(port, process, logs / "master")
        with started("spark-class", *worker, log=logs / "worker", **SMALL):
            log = logs / "worker"
            registered = "Successfully registered with master"
            until(lambda: registered in log.read_text(), told=lambda: log.read_text()[-3000:])
            yield url


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.sampled(of="Sparks that compact")
def test_minor_then_major_on_a_standalone_cluster(spark_world: World, cluster: str) -> None:
    launcher = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    command = [
        *(str(launcher), "--master", cluster, "--driver-memory", "512m", "--executor-memory", "512m"),
        *("--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"),
        *("--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=4"),
    ]
    with contextlib.closing(executor_for(CompactionConfig(spark_submit=shlex.join(command)))) as executor:
        done = minor_then_major(spark_world, executor)
    assert done.job_id is not None
    assert done.job_id.startswith("app-")
