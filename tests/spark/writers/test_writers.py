"""Each writer at each of its moments beside another client; `make walk-writers` plays all cases."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.served import served
from tests.spark.writers.case import SETTINGS, Case, Stage, sample
from tests.spark.writers.statements import WRITERS

SEED = int(os.environ.get("HIVE_ACID_TEST_SEED", "1"))
READ_BY_SPARK_EVERY = 3

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def stage(spark: SparkSession, postgres_url: Any, template: Any, tmp_path_factory: Any) -> Iterator[Stage]:
    room = tmp_path_factory.mktemp("writers")
    with served(postgres_url, template, room / "warehouse", SETTINGS) as server:
        yield Stage(spark, server.uri, room / "rooms")


@pytest.mark.parametrize("writer", WRITERS)
def test_a_statement_happens_on_the_table_of_now_or_not_at_all(stage: Stage, writer: str) -> None:
    print(f"seed {SEED}")
    chosen = [case for case in sample(SEED) if case.writer == writer]
    verdicts = [stage.play(case, by_spark=_is_read(case)) for case in chosen]
    assert any(verdict.came for verdict in verdicts)
    assert not [verdict for verdict in verdicts if verdict.wrong]


def _is_read(case: Case) -> bool:
    return sum(str(case).encode()) % READ_BY_SPARK_EVERY == 0
