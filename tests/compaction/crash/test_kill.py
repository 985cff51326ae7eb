"""Services killed at every step: no row lost or doubled, nothing stuck, and in the end all as if nothing had been.

Each case makes a table with a history, has the services of a server killed at one step (or the answer of the database
lost there, or a removal torn), and lets others follow: at once, beside a reader, a day later, and when the reader has
ended. What is left then must be what is left without the harm: the same rows with the same ids, the same directories,
the same outcome of the same compactions, as many rows in every table of the database.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hive_acid.connection import Connection
from metastore.compaction.states import CompactionState
from metastore.txn.states import TxnType
from tests.compaction.crash.points import UNREACHED, database_points, file_points
from tests.compaction.crash.processes.merging import identity
from tests.compaction.crash.processes.services import Order, Outcome, Services
from tests.compaction.crash.scenarios import SCENARIOS, Scenario, settings_of
from tests.compaction.crash.steps import CUT, KILL, TEAR, Point, points_of, writing_functions
from tests.compaction.crash.table import CrashTable, EndState, Snapshot, end_lease, pass_a_day
from tests.crash.steps import ALL_STEPS
from tests.sampling import Sample
from tests.served import Served

STUCK = {CompactionState.INITIATED, CompactionState.WORKING, CompactionState.READY_FOR_CLEANING}
STEP_TURNS = 2
"""Within so many turns of a scenario each step has its own."""
NO_ANSWER = frozenset({"hold_lease", "executor.run"})
"""Steps without an answer of the database, or whose loss ends the server (metastore/store/leases.py tries again)."""

UNKNOWN_TXN = (CUT, "Worker: open_txns")
"""Who waits for readers waits for the transaction whose number nobody has learned, too: until it has timed out, which
in a process that runs one service after the other does not happen meanwhile."""

MERGED = ("major", "minor", "rebalance", "automatic", "partition", "history")
"""How the names of scenarios begin in which every compaction is carried out."""

_names = itertools.count(1)
_harmed: set[tuple[str, str]] = set()
"""Steps, by name, and the harm that has been done there; a short run does it once."""


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with Services(tmp_path_factory.mktemp("services")) as running:
        yield running


class Case:
    """One table in one scenario, and the servers that come and go."""

    def __init__(
        self, scenario: Scenario, server: Served, connection: Connection, services: Services, warehouse: Path
    ) -> None:
        self._scenario, self._db, self._services = scenario, server.db, services
        self._order = Order(
            server.db_url, str(warehouse), settings_of(scenario), scenario.executor, stuck=scenario.stuck
        )
        name, parameters = f"t{next(_names)}", dict(scenario.parameters)
        self.table = CrashTable(server.db, connection, warehouse, name, scenario.partition, parameters)
        scenario.prepare(self.table)
        self._rows = self._read()

    def run(self, last: Point | None = None, harm: str = KILL) -> Outcome:
        """Run services to their end, or up to a point and the harm that is done there."""
        end_lease(self._db)
        return self._services.run(replace(self._order, last=last, harm=harm))

    def wait_a_day(self) -> None:
        """All that the dead had in hand is overdue, and the file system works again."""
        pass_a_day(self._db, [])
        self._order = replace(self._order, stuck="")

    def recover(self) -> EndState:
        """Let servers follow until nothing is left to do; everybody reads the same rows at all times."""
        self._check()
        self._order = replace(self._order, executor=self._scenario.later or self._scenario.executor)
        reader = self.table.open(TxnType.READ_ONLY)
        snapshot = self.table.snapshot()
        for waits in (False, True):
            if waits:
                pass_a_day(self._db, [reader])
                self._order = replace(self._order, stuck="")
            if self._scenario.waits_for_readers:
                continue
            assert self.run().status == 0
            self._check()
            assert self._scenario.is_gone or self._read(snapshot) == self._rows
        self.table.txns.commit_txn(reader)
        assert self.run().status == 0
        self._check()
        end = self.table.end_state()
        self.table.drop()
        return end.without_aborted() if self._scenario.keeps_aborted else end

    def _check(self) -> None:
        assert self._read() == self._rows

    def _read(self, snapshot: Snapshot | None = None) -> list[Any]:
        """The rows, each by the id that it was written with."""
        return [] if self._scenario.is_gone else sorted(map(identity, self.table.events(snapshot)))


class Cases:
    """Cases of each scenario, and what there is to know of it when no harm is done."""

    def __init__(self, server: Served, connection: Connection, services: Services, warehouse: Path) -> None:
        self._parts = (server, connection, services, warehouse)
        self._whole: dict[str, tuple[list[str], EndState]] = {}

    def new(self, name: str) -> Case:
        scenario = SCENARIOS[name]
        made = Case(scenario, *self._parts)
        if scenario.first_killed_at is not None:
            assert made.run(Point(scenario.first_killed_at)).status == -9
            made.wait_a_day()
        return made

    def whole(self, name: str) -> tuple[list[str], EndState]:
        """The steps of the services, and what is left in the end."""
        if name not in self._whole:
            case = self.new(name)
            self._whole[name] = case.run().steps, case.recover()
        return self._whole[name]


@pytest.fixture(scope="module")
def cases(
    server: Served, connection: Connection, services: Services, tmp_path_factory: pytest.TempPathFactory
) -> Cases:
    return Cases(server, connection, services, tmp_path_factory.mktemp("tables"))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.sampled
def test_kill(name: str, cases: Cases, sample: Sample) -> None:
    steps, end = cases.whole(name)
    _require_an_end(end)
    if name.startswith(MERGED):
        assert {found[1] for found in end.compactions} == {CompactionState.SUCCEEDED.name}, end.compactions
    wrong = []
    for harm in (KILL, CUT, TEAR):
        for point in _chosen(steps, harm, sample):
            if SCENARIOS[name].waits_for_readers and (harm, point.step) == UNKNOWN_TXN:
                continue
            case = cases.new(name)
            outcome = case.run(point, harm)
            assert outcome.status == (0 if harm == CUT else -9), (point, outcome)
            found = case.recover()
            _require_an_end(found)
            if found != end:
                wrong.append((harm, *point, found.differences(end)))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_step_is_left_out(cases: Cases) -> None:
    """What the code of the services can do is done in one scenario at least, or there is a reason why not."""
    steps = {step.partition(": ")[2] for name in SCENARIOS for step in cases.whole(name)[0]}
    reached = {step.partition(".<locals>")[0] for step in steps}
    left_out = (file_points() | database_points()) - reached
    missing = "\n".join(sorted(left_out - UNREACHED.keys()))
    assert not missing, missing
    assert not UNREACHED.keys() - left_out, f"no reason is needed for {sorted(UNREACHED.keys() - left_out)}"


def _require_an_end(state: EndState) -> None:
    """Nothing is stuck, nothing of the dead is left."""
    assert not [found for found in state.compactions if CompactionState[found[1]] in STUCK]
    assert not [path for path in state.directories if "/_tmp" in f"/{path}"]


def _chosen(steps: list[str], harm: str, sample: Sample) -> list[Point]:
    """Where the harm is done: wherever it can be; in a short run at the first step of each name that the day has."""
    fit = [point for point in points_of(steps) if _is_fit(point.step, harm)]
    if ALL_STEPS:
        return fit
    new = [point for point in fit if point.number == 1 and (point.step, harm) not in _harmed]
    _harmed.update((point.step, harm) for point in new)
    return sample.of(new, turns=STEP_TURNS)


def _is_fit(step: str, harm: str) -> bool:
    function = step.partition(": ")[2]
    if harm == CUT:
        return function in writing_functions() - NO_ANSWER
    return harm == KILL or function.startswith("files.remove ")
