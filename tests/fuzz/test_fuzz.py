"""A sample of `make fuzz` by seed: each answer to a hostile call is a result, or a typed error with a sentence."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hive_acid.wire import service, ttypes
from tests.caller import Caller
from tests.fuzz.run import SERVED, FuzzReport, run
from tests.fuzz.stage import furnish
from tests.fuzz.values import Values
from tests.served import Served, served

SETTINGS = {"metastore.acid.truncate.wait": "0ms"}
MESSAGES = 4_000


@pytest.fixture(scope="module")
def server(postgres_url: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = tmp_path_factory.mktemp("fuzz")
    before = Path.cwd()
    os.chdir(home)  # a name taken for a place is one below it
    try:
        with served(postgres_url, template, home / "warehouse", SETTINGS) as running:
            yield running
    finally:
        os.chdir(before)


@pytest.mark.sampled(of="walks of the service")
def test_no_answer_is_without_a_sentence(server: Served, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(run, server.uri, seed, MESSAGES // 2, str(tmp_path)) for seed in (11, 12)]
        reports: list[FuzzReport] = [one.result() for one in runs]
    findings = [str(finding) for report in reports for finding in report.findings]
    assert not findings, "\n".join(findings[:20])
    outcomes = sum((report.outcomes for report in reports), start=type(reports[0].outcomes)())
    assert outcomes["fine"] > MESSAGES / 10, outcomes
    assert len(reports[0].fine | reports[1].fine) > len(SERVED) / 3


@pytest.mark.parametrize("method", ["get_table", "create_table_req", "lock", "add_partitions_req"])
def test_a_seed_tells_the_same_story(method: str, tmp_path: Path) -> None:
    import random

    told = [str(Values(random.Random("7/3"), str(tmp_path), [5]).arguments(method, service)) for _ in range(2)]
    assert told[0] == told[1]


def test_patterns_and_filters_without_end(server: Served) -> None:
    """As they were found: 5,000 wild cards, 20,000 structs, conditions nested without end."""
    with server.caller() as ann:
        furnish(ann)
        structs = ",".join(f"const struct({number},'a')" for number in range(20_000))
        for text in (f"(struct(p, q)) in ({structs})", "(" * 5000 + "p = 1" + ")" * 5000, "not " * 5000 + "p = 1"):
            answered(ann, "get_partitions_by_filter", "d", "t", text, -1)
        for pattern in ("*" * 5000, "a*" * 5000, "a|" * 5000, "(" * 5000, "[" * 5000):
            for method in ("get_databases", "get_tables", "get_functions", "get_table_meta"):
                arguments = {"get_databases": (pattern,), "get_table_meta": ("*", pattern, [])}  # type: ignore[var-annotated]
                answered(ann, method, *arguments.get(method, ("d", pattern)))
        answered(ann, "get_partitions_by_names", "d", "t", ["\0"])
        answered(ann, "seed_write_id", ttypes.SeedTableWriteIdsRequest(dbName="nix", tableName="\0", seedWriteId=2**62))


def answered(caller: Caller, method: str, *arguments: object) -> None:
    """With a result, or an error with a sentence, within seconds."""
    try:
        caller.call(method, *arguments)
    except Exception as error:
        words = str(error)
        assert "has failed in the metastore" not in words
        assert not words.endswith(f"Internal error processing {method}")
        assert len(words) > 20, words
