"""A short walk of verbs for every run of the tests; ``make walk-values ARGS=--verbs`` makes long ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.served import served
from tests.values.verbs import Verbs

SAMPLE = {
    21: ("partitions", "char(4)"),
    22: ("partitions", "timestamp"),
    23: ("partitions", "double"),
    24: ("buckets", "decimal(38,18)"),
    25: ("columns", "date"),
    26: ("insert only parquet", "boolean"),
    27: ("plain orc", "float"),
}
"""Seeds, and the tables and types of keys that statements are made for."""

LEAST = 400
"""So many rows are compared at least."""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_all_verbs_do_as_the_model(
    spark: SparkSession, postgres_url: str, template: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(postgres_url, template, tmp_path / "warehouse") as server:
        verbs = Verbs(spark, server.uri)
        for seed, (form, kind) in SAMPLE.items():
            verbs.step(seed, form, kind, statements=5)
        verbs.close()
    with capsys.disabled():
        print(f"\nverbs, seeds {min(SAMPLE)} to {max(SAMPLE)}: {verbs.findings}")
    assert not verbs.findings.found, "\n".join(map(str, verbs.findings.found))
    assert verbs.findings.compared.total() > LEAST
