"""A short walk for every run of the tests; ``make walk-values`` makes long ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.served import served
from tests.values.findings import Finding
from tests.values.walk import Walk

SAMPLE = {11: "changed", 12: "partitions by char(4)", 13: "groups", 14: "one", 15: "filtered"}
"""Seeds and the tables that they are asked of."""

LEAST = 100_000
"""So many comparisons the sample makes at least."""

KNOWN: dict[str, str] = {}
"""Findings that are known, by a word of theirs, and why they stay."""


@pytest.fixture(scope="module")
def walk(
    spark: SparkSession, postgres_url: str, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Walk]:
    place = tmp_path_factory.mktemp("values")
    with served(postgres_url, template, place / "warehouse") as server:
        walk = Walk(spark, server.uri, place)
        yield walk
        walk.close()


@pytest.mark.sampled(of="stories of minutes")
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_all_ways_agree(walk: Walk, capsys: pytest.CaptureFixture[str]) -> None:
    for seed, layout in SAMPLE.items():
        walk.step(seed, layout, conditions=100, asked=8)
    with capsys.disabled():
        print(f"\nseeds {min(SAMPLE)} to {max(SAMPLE)}: {walk.findings}")
    assert not (new := [str(finding) for finding in walk.findings.found if not _is_known(finding)]), "\n".join(new)
    assert walk.findings.compared.total() > LEAST


def _is_known(finding: Finding) -> bool:
    return any(word in str(finding) for word in KNOWN)
