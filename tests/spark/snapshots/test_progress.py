"""What a terminal shows while a statement runs."""

import sys
import time
from types import SimpleNamespace

import pytest
from pyspark.sql import functions as f

from hive_acid.display import status_line
from hive_acid.spark import AcidSession
from tests.spark.conftest import OVER_CONNECT
from tests.terminal import Terminal


def test_long_statements_say_how_far_they_are(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    acid.create_table("d.t", {"id": "bigint"})
    slow = f.udf(lambda number: time.sleep(0.5) or number, "bigint")
    terminal = Terminal()
    monkeypatch.setattr(status_line, "sys", SimpleNamespace(stderr=terminal, modules=sys.modules))
    monkeypatch.setattr(status_line, "SILENT_S", 0.05)
    monkeypatch.setattr(status_line, "EACH_S", 0.05)
    acid.insert("d.t", acid.spark.range(8, numPartitions=4).select(slow("id").alias("id")))
    assert "d.t: " in terminal.getvalue()
    assert OVER_CONNECT or " of 4 tasks" in terminal.getvalue()
    assert acid.table("d.t").count() == 8
