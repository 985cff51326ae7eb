"""A table on S3 or HDFS is written, read, compacted and cleaned as one on a disk is."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.clients.java.maven import NotFetchedError
from tests.jvm import IN_UTC
from tests.remote.s3 import Store

TIMEOUT_S = 480
pytestmark = [pytest.mark.maven, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(TIMEOUT_S + 60)]

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": IN_UTC,
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
    "spark.log.level": "OFF",
}


@pytest.mark.sampled(of="stores beside the disk")
def test_on_s3(store: Store, db_url: str, tmp_path: Path) -> None:
    try:
        settings = store.spark_settings()
    except NotFetchedError as error:
        pytest.skip(str(error))
    holds(db_url, f"s3a://{store.bucket}/warehouse", settings, tmp_path)


@pytest.mark.sampled(of="stores beside the disk")
def test_on_hdfs(hdfs: str, db_url: str, tmp_path: Path) -> None:
    holds(db_url, f"{hdfs}/warehouse", {}, tmp_path)


def holds(db_url: str, warehouse: str, settings: Mapping[str, str], scratch: Path) -> None:
    """Tell the story, and see that readers saw what they ought to."""
    conf = scratch / "conf"
    conf.mkdir()
    lines = (f"{key} {value}\n" for key, value in {**SETTINGS, **settings}.items())
    (conf / "spark-defaults.conf").write_text("".join(lines))
    told = subprocess.run(
        [sys.executable, "-m", "tests.remote.story", db_url, warehouse],
        env={**os.environ, "SPARK_CONF_DIR": str(conf)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert told.returncode == 0, told.stderr[-4000:]
    later, kept = [6, "later", "x"], [7, "kept", "x"]
    merged = [[2, "m", "x"], [3, "C", "y z"], [4, "n", "x"]]
    overwritten = [[3, "C", "y z"], [5, "o", "x"]]
    assert [json.loads(line) for line in told.stdout.splitlines() if line.startswith("[")] == [
        ["inserted", [[1, "a", "x"], [2, "b", "x"], [3, "c", "y z"]], []],
        ["changed", [[2, "B", "x"], [3, "C", "y z"]], []],
        ["merged", merged, []],
        ["aborted", merged, []],
        ["files by bucket", 2],
        ["compacted by bucket", merged, []],
        ["written by Spark", 0],
        ["compacted as it is", [*merged, kept], []],
        ["compacted", [*merged, later, kept], []],
        ["older snapshot", [*merged, later, kept]],
        ["overwritten", overwritten, []],
        ["streamed", [*overwritten, [8, "streamed", "x"]], []],
        ["loaded", [*overwritten, [8, "streamed", "x"], [10, "loaded", "z"], [11, "loaded", "z"]], []],
    ]
