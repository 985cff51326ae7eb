"""A driver killed with its JVM in the middle of a job: what the tasks have left goes with the transaction."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hive_acid.filesystem import files
from hive_acid.spark import AcidSession
from tests.crash.test_cluster import Session
from tests.served import served
from tests.spark.checker import check_snapshot, check_table, location_of
from tests.spark.house import House
from tests.waiting import until

DRIVER = """
import sys
import hive_acid.spark
from tests.spark.conftest import started
spark = started()
with hive_acid.spark.session(spark, sys.argv[1]) as acid:
    acid.create_database("d")
    acid.create_table("d.t", {"id": "int", "v": "int"})
    acid.insert("d.t", spark.sql("SELECT * FROM VALUES (1, 10), (2, 20) AS g(id, v)"))
    print("ready", flush=True)
    slow = "int(coalesce(java_method('java.lang.Thread', 'sleep', 100L), id)) v"
    acid.insert("d.t", spark.range(1000).repartition(2).selectExpr("int(id) id", slow))
"""
PATIENCE_S = 120


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.sampled(of="programs that are killed")
def test_a_killed_driver_leaves_nothing(postgres_url: str, template: str, tmp_path: Path) -> None:
    with served(postgres_url, template, tmp_path / "warehouse") as server:
        command = [sys.executable, "-c", DRIVER, server.uri]
        with (
            (tmp_path / "driver.log").open("w") as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True) as driver,
        ):
            try:
                assert any("ready" in line for line in iter(driver.stdout.readline, "")), (  # type: ignore[union-attr]
                    tmp_path / "driver.log"
                ).read_text()[-3000:]
                acid = Session(server.uri)
                location = location_of(acid, "d.t")
                until(lambda: any("_temporary" in entry.path for entry in files.list_tree(str(location))))
            finally:
                os.killpg(driver.pid, signal.SIGKILL)
        house = House(server.db, tmp_path / "warehouse", None)  # type: ignore[arg-type]
        before = {"": [(1, 10), (2, 20)]}
        assert content(acid) == before  # type: ignore[arg-type]
        house.time_out()
        house.clean()
        assert content(acid) == before  # type: ignore[arg-type]
        assert not [entry.path for entry in files.list_tree(str(location)) if "_tmp_" in entry.path]
        check_table(location)
        acid.connection.close()


def content(acid: AcidSession) -> Any:
    return {at: sorted(event.row for event in rows) for at, rows in check_snapshot(acid, "d.t").items()}
