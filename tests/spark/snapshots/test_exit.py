"""A Spark program that ends with frames still in its variables holds back no cleaning."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from hive_acid.connection import connect

PROGRAM = """
import sys
import hive_acid.spark
from tests.spark.conftest import started

acid = hive_acid.spark.session(started(), sys.argv[1])
acid.create_database("d")
acid.create_table("d.t", {"id": "int"})
acid.insert("d.t", acid.spark.range(3).selectExpr("int(id) id"))
frames = [acid.table("d.t") for _ in range(3)]
derived = frames[0].filter("id > 0")
assert derived.count() == 2
open_now = acid.connection.call("get_open_txns_info").open_txns
assert len(open_now) == 3, open_now
"""


@pytest.mark.slow
def test_a_spark_program_ends_its_snapshots(metastore: Callable[..., str]) -> None:
    uri = metastore()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, uri], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    with connect(uri) as connection:
        assert connection.call("get_open_txns_info").open_txns == [], "neither open nor aborted"
