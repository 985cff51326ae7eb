"""After `spark.stop()`: each verb, handle and frame says so, and a new session in the same process works."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.served import served
from tests.spark.conftest import OVER_CONNECT

NEEDS_NO_SPARK = {"its end"}


@pytest.mark.slow
def test_everything_says_that_spark_has_stopped_and_a_new_session_works(
    postgres_url: Any, template: Any, tmp_path: Path
) -> None:
    with served(postgres_url, template, tmp_path / "warehouse") as server:
        command = [sys.executable, "-m", "tests.spark.stopped", server.uri]
        # A server of Connect has a free port then, beside that of the other tests.
        environment = os.environ | ({"SPARK_TESTING": "1"} if OVER_CONNECT else {})
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=600, check=True, env=environment)
        told = json.loads(done.stdout.splitlines()[-1])
    others = {name: error for name, error in told["errors"].items() if not error.startswith("SparkStoppedError: ")}
    assert others == dict.fromkeys(NEEDS_NO_SPARK, "")
    assert told["read"] == 2
    assert told["found"] == ["A", "B", "c"]
