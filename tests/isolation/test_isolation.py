"""Short runs against real servers: in order with every trouble at once, and not in order with careless clients."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.isolation.judging.history import Outcome
from tests.isolation.run import RunConfig, run
from tests.isolation.world.chaos import ChaosConfig

pytestmark = pytest.mark.sampled


@pytest.mark.slow
def test_two_servers_through_every_trouble(tmp_path: Path) -> None:
    config = RunConfig(
        transactions=600,
        seed=4,
        clients=10,
        fault_rate=0.03,
        pause_rate=0.003,
        lingering_rate=0.003,
        timeout_s=3.0,
        chaos=ChaosConfig(kill_every_s=6.0, restart_every_s=9.0, frozen_s=1.5, down_s=0.2),
    )
    result = run(config, tmp_path)
    assert result.is_clean, f"{result.summary()}\n{result.story()}"
    assert result.outcomes["committed"] > 250
    assert result.lost_answers


@pytest.mark.slow
def test_changes_of_other_rows_of_a_table_commit(tmp_path: Path) -> None:
    """Two that overlap in time and change lists of one table commit both, and no update is lost."""
    config = RunConfig(transactions=400, seed=6, clients=8, library_quarters=4, tables=2, width=30, fault_rate=0.01)
    result = run(config, tmp_path)
    assert result.is_clean, f"{result.summary()}\n{result.story()}"
    done = [of for of in result.report.history if of.kind == "library rows" and of.outcome is Outcome.COMMITTED]
    beside = [
        (one, other)
        for one, other in itertools.combinations(done, 2)
        if one.snapshot_at < other.committing and other.snapshot_at < one.committing
        if {table for table, _ in one.write_ids} & {table for table, _ in other.write_ids}
    ]
    assert len(beside) > 20, result.summary()


CARELESS = {
    "skips_check": "lost update",
    "ignores_conflicts": "lost update",
    "takes_no_snapshot": "non-repeatable read",
    "reads_everything": "aborted read",
    "looks_at_no_rows": "lost update",
}
"""A rule of the protocol that clients leave out, and what comes of it."""


@pytest.mark.slow
@pytest.mark.parametrize("habit", CARELESS)
def test_careless_clients_are_found(tmp_path: Path, habit: Any) -> None:
    """The checker's power, and that the rules are needed."""
    config = RunConfig(
        transactions=160,
        seed=5,
        clients=8,
        library_quarters=4 if habit == "looks_at_no_rows" else 0,
        servers=1,
        tables=1,
        width=4,
        fault_rate=0,
        habits={habit: True},
    )
    result = run(config, tmp_path)
    assert CARELESS[habit] in result.report.counts(), result.summary()
