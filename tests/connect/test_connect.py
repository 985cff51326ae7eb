"""The data path as a client of Spark Connect, in a process of its own: a process has either kind of session."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

SELECTED = (
    ("test_session.py", "change/test_dml.py"),
    ("change/test_merge.py", "write/test_write.py", "enabled/test_behaviour.py"),
)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.sampled(days=2)
@pytest.mark.parametrize("selected", SELECTED)
def test_the_data_path_over_connect(selected: Any) -> None:
    """`make test-connect` runs all of them."""
    pytest.importorskip("grpc", reason="the client of Spark Connect needs grpcio, which is not installed here")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(f"tests/spark/{name}" for name in selected)]
    environment = {**os.environ, "HIVE_ACID_TEST_CONNECT": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-6000:]
