"""The data path as a client of Spark Connect, in a process of its own: a process has either kind of session."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

SELECTED = (
    ("test_session.py", "change/test_dml.py"),
    ("change/test_merge.py", "write/test_write.py"),
)
IN_ALL_WAYS = "enabled/test_behaviour.py"


pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.sampled(days=2)
@pytest.mark.parametrize("selected", SELECTED)
def test_the_data_path_over_connect(selected: Sequence[str]) -> None:
    """`make test-connect` runs all of them."""
    _passes(*(f"tests/spark/{name}" for name in selected))


def test_what_all_ways_do_is_done_over_connect(request: pytest.FixtureRequest) -> None:
    """The same cases with what is expected of them; of each, on a day, in another way than without Connect."""
    day = request.config.getoption("--sample")
    _passes(f"tests/spark/{IN_ALL_WAYS}", *([] if day is None else [f"--sample={day + 1}"]))


def _passes(*arguments: str) -> None:
    pytest.importorskip("grpc", reason="the client of Spark Connect needs grpcio, which is not installed here")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "HIVE_ACID_TEST_CONNECT": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-6000:]
