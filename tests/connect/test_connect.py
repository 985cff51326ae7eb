"""The data path as a client of Spark Connect, in a process of its own: a process has either kind of session."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

from tests.sampling import Sample

DATA_PATH = ("test_session.py", "change/test_dml.py", "change/test_merge.py", "write/test_write.py")
IN_ALL_WAYS = "enabled/test_behaviour.py"
OF_BOTH_KINDS = ("test_what_comes", "test_all_values", "test_a_process_that_is_killed", "test_what_ends_a_stream")
STREAMS = ("stream_source/test_over_connect.py", *(f"stream_source/test_stream.py::{name}" for name in OF_BOTH_KINDS))

pytestmark = [
    *(pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)),
    pytest.mark.sampled(of="tests over Connect", days=2),
]


def test_the_data_path_over_connect(sample: Sample) -> None:
    """`make test-connect` runs all of them."""
    _passes(DATA_PATH, sample)


def test_what_all_ways_do_is_done_over_connect(sample: Sample) -> None:
    """The same cases with what is expected of them."""
    _passes([IN_ALL_WAYS], sample)


def test_tables_are_streams_over_connect(sample: Sample) -> None:
    _passes(STREAMS, sample)


def _passes(files: Sequence[str], sample: Sample) -> None:
    """Of these files pass the tests that have their turn when those here have theirs."""
    pytest.importorskip("grpc", reason="the client of Spark Connect needs grpcio, which is not installed here")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *(f"tests/spark/{name}" for name in files)]
    if sample.turn is not None:
        command.append(f"--sample={sample.turn}")
    environment = {**os.environ, "HIVE_ACID_TEST_CONNECT": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-6000:]
