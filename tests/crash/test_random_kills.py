"""Processes killed at random moments, a handful of them: `make kill` does it hundreds of times."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.crash.kills.client import Victims
from tests.crash.kills.run import Kills
from tests.crash.kills.streams import KILLED, SETTINGS, StreamKills
from tests.served import served

SEED = int(os.environ.get("HIVE_ACID_TEST_SEED", "1"))

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def victims(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victims]:
    with Victims(spark, tmp_path_factory.mktemp("victims")) as running:
        yield running


@pytest.mark.sampled(of="programs that are killed")
def test_statements_happen_whole_or_not_at_all(
    spark: SparkSession, postgres_url: str, template: str, tmp_path: Path, victims: Victims
) -> None:
    print(f"seed {SEED}")
    with served(postgres_url, template, tmp_path / "warehouse") as server:
        kills = Kills(spark, server, victims, tmp_path / "room", SEED)
        kills.run(6)
    assert sum(kills.outcomes.values()) >= 6


@pytest.mark.sampled(of="programs that are killed")
def test_each_row_of_a_stream_is_there_once(
    spark: SparkSession, postgres_url: str, template: str, tmp_path: Path, victims: Victims
) -> None:
    print(f"seed {SEED}")
    with served(postgres_url, template, tmp_path / "warehouse", SETTINGS) as server:
        streams = StreamKills(spark, server, victims, tmp_path / "room", SEED)
        streams.run(2)
    assert streams.lives[KILLED] == 2
