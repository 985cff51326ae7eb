"""Tasks that fail and are tried again, and Python workers that are killed: each row is there exactly once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.test_cluster import Session
from tests.spark.checker import check_snapshot, check_table, location_of


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.sampled(of="programs that are killed")
def test_what_failed_tasks_have_written_is_nowhere(metastore: Callable[..., str], tmp_path: Path) -> None:
    uri = metastore()
    acid = Session(uri)
    with acid.connection:
        acid.connection.create_database("d")
        command = [sys.executable, "-m", "tests.crash.retries", uri, str(tmp_path / "scratch"), "5"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        (told,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        assert told["wrong"] == []
        assert told["raised"] > 1
        assert told["killed"] > 1
        check_table(location_of(acid, "d.t"))
        check_snapshot(acid, "d.t")
