"""Task retries, speculative tasks, stage retries and the loss of executors: each row is there exactly once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hive_acid.connection import connect
from tests.crash.steps import ALL_STEPS
from tests.spark.checker import check_snapshot, check_table, location_of


class Session:
    """As much of a session as the checker needs."""

    def __init__(self, uri: Any) -> None:
        self.connection = connect(uri)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not ALL_STEPS, reason="two executors of their own take minutes: `make crash` runs it")
def test_rows_are_there_once(metastore: Callable[..., str], tmp_path: Path) -> None:
    uri = metastore()
    acid = Session(uri)
    with acid.connection:
        acid.connection.create_database("d")
        command = [sys.executable, "-m", "tests.crash.cluster", uri, str(tmp_path / "scratch")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        (told,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        assert told == {"ok": True, "troubles": ["dies", "dies too", "fails", "slow"]}
        check_table(location_of(acid, "d.t"))
        assert sum(map(len, check_snapshot(acid, "d.t").values())) == 350
