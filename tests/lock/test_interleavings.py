"""All orders of the steps of two and three sessions (`tests/lock/specs`), over the wire."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.caller import Caller
from tests.lock.scenarios import Scenario, instances, play, problems, read
from tests.served import served

SIDE_BY_SIDE = 24
SPECS = sorted((Path(__file__).parent / "specs").glob("*.spec"))
SCENARIOS = [scenario for path in SPECS for scenario in read(path)]


@pytest.fixture(scope="module")
def callers(postgres_url: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Caller]]:
    with ExitStack() as stack:
        server = stack.enter_context(served(postgres_url, template, tmp_path_factory.mktemp("warehouse")))
        yield [stack.enter_context(server.caller(f"lane{number}")) for number in range(SIDE_BY_SIDE)]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.title.replace(" ", "_"))
def test_all_orders(scenario: Scenario, callers: list[Caller]) -> None:
    chosen = instances(scenario)
    assert chosen, "nothing to play"
    play(chosen, callers)
    wrong = problems(chosen)
    assert not wrong, f"{len(wrong)} of {len(chosen)}:\n" + "\n".join(wrong[:10])
