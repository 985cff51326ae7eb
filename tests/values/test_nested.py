"""A short walk of verbs by nested values for every run; ``make walk-values ARGS=--nested`` makes long ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.served import served
from tests.values.nested import Nested

SAMPLE = {31: "char(4)", 32: "timestamp", 33: "double"}
"""Seeds, and the types of what lies in structs, arrays and maps."""

LEAST = 150
"""So many rows are compared at least."""


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_all_verbs_do_as_the_model(
    spark: SparkSession, postgres_url: str, template: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with served(postgres_url, template, tmp_path / "warehouse") as server:
        nested = Nested(spark, server.uri)
        for seed, kind in SAMPLE.items():
            nested.step(seed, kind, statements=6)
        nested.close()
    with capsys.disabled():
        print(f"\nnested, seeds {min(SAMPLE)} to {max(SAMPLE)}: {nested.findings}")
    assert not nested.findings.found, "\n".join(map(str, nested.findings.found))
    assert nested.findings.compared.total() > LEAST
