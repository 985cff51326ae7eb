"""Times of one zone for every run of the tests; ``make walk-values ARGS=--zones`` takes many."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hive_acid.spark.values.timezone import has_one_offset
from tests.served import served


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("zone", "asked"),
    [("Europe/Amsterdam", ("5", "one", "by_time")), ("Asia/Kolkata", ("2", "one")), ("Africa/Cairo", ("2", "one"))],
)
@pytest.mark.sampled
def test_times_of_a_zone(
    postgres_url: str, template: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], zone: str, asked: Any
) -> None:
    """Summer time, before 1940 offsets of odd seconds, clocks put back before 1900, or forward by Java alone."""
    with served(postgres_url, template, tmp_path / "warehouse") as server:
        words = [sys.executable, "-m", "tests.values.sessions.zones", server.uri, zone, "1", *asked]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    with capsys.disabled():
        print(f"\nseed 1, {done.stdout.splitlines()[-1] if done.stdout else 'nothing'}")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "FINDING" not in done.stdout, done.stdout


def test_zones_that_differ_before_there_were_zones_are_not_the_same() -> None:
    assert has_one_offset("Etc/GMT+12")
    assert not has_one_offset("Africa/Abidjan")
