"""Compactions on a Spark Connect server, one of its own as an operator would start it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from hive_acid.spark.jvm.java import ensure_java
from metastore.compaction.config import CompactionConfig
from metastore.compaction.worker.executor import executor_for
from metastore.compaction.worker.process import end_process
from tests.compaction.world import World
from tests.jvm import FOR_SPARK
from tests.ports import await_port, free_port

from .test_spark import minor_then_major
from .test_spark import spark_world as spark_world


@contextlib.contextmanager
def started(program: str, *arguments: str, log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program of Spark's ``bin``, and its whole session ended afterwards."""
    ensure_java()
    command = [str(Path(pyspark.__file__).parent / "bin" / program), *arguments]
    here = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment = {**os.environ, **FOR_SPARK, **here, **environment}
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment, start_new_session=True)
    try:
        yield process
    finally:
        end_process(process)


@pytest.fixture
def connect_server(tmp_path: Path) -> Iterator[str]:
    port, log = free_port(), tmp_path / "connect.log"
    arguments = [
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]"),
        *("--driver-memory", "1g", "--driver-java-options", "-Duser.timezone=UTC"),
        *(
            "--conf",
            f"spark.connect.grpc.binding.port={port}",
            "--conf",
            "spark.connect.grpc.binding.address=127.0.0.1",
        ),
        *("--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=4", "spark-internal"),
    ]
    with started("spark-submit", *arguments, log=log) as process:
        await_port(port, process, log)
        yield f"sc://127.0.0.1:{port}"


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.sampled(of="Sparks that compact")
def test_minor_then_major_on_a_connect_server(spark_world: World, connect_server: str) -> None:
    pytest.importorskip("grpc", reason="the client of Spark Connect needs grpcio, which is not installed here")
    with contextlib.closing(executor_for(CompactionConfig(spark_remote=connect_server))) as executor:
        done = minor_then_major(spark_world, executor)
    assert done.job_id is not None
    assert done.job_id.startswith("local-")
