"""A leader that is paused for longer than its lease, at any step, and wakes up when others have done its work: no harm.

It is a process of its own, stopped by a signal; meanwhile a day passes and another server does all there is to do.
After it has been woken up, nothing has changed in the database or among the files, and it knows that it leads no more.
The steps are found by watching, as those of the kills are (tests/compaction/crash): none is left out, of no service.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hive_acid.connection import Connection
from hive_acid.filesystem import files
from metastore.compaction.states import CompactionState
from metastore.config import Config
from metastore.slices import Slices
from metastore.store.database import SCHEMA, Database
from tests.compaction.crash.processes.services import Order, Services
from tests.compaction.crash.scenarios import SCENARIOS, Scenario, settings_of
from tests.compaction.crash.steps import Point, points_of
from tests.compaction.crash.table import CrashTable, end_lease, pass_a_day
from tests.compaction.paused import PausedServices
from tests.crash.steps import ALL_STEPS
from tests.sampling import Sample
from tests.served import Served

TOLD_BY_THE_KILLS = {
    name for name, one in SCENARIOS.items() if one.first_killed_at or one.is_gone or one.waits_for_readers or one.stuck
}
"""Stories in which there is more harm than a pause."""
NAMES = (
    [name for name in SCENARIOS if name not in TOLD_BY_THE_KILLS]
    if ALL_STEPS
    else ["automatic", "dead writers", "history"]
)
STUCK = {CompactionState.INITIATED, CompactionState.WORKING, CompactionState.READY_FOR_CLEANING}
READERS = {"AcidMetrics", "AcidMetricLogger"}
"""Services that change nothing."""
OF_THEIR_OWN = ("Worker: ", "removals: ")
"""Services with claims of their own instead of the lease: a compaction by its transaction (test_fencing.py), and
directories of what was dropped (tests/catalog/definition/test_tables.py). What is theirs may end after the lease.
"""

_names = itertools.count(1)
_found: set[str] = set()
"""Steps, by name, at which one is paused; a short run does it once, on the day of the step."""


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with Services(tmp_path_factory.mktemp("others")) as running:
        yield running


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PausedServices]:
    with PausedServices(tmp_path_factory.mktemp("services")) as running:
        yield running


def everything(db: Database, root: str) -> list[str]:
    """All rows of the database but for the lease, and all files."""
    with db.engine.connect() as connection:
        query = f"SELECT tablename FROM pg_tables WHERE schemaname = '{SCHEMA}' AND tablename <> 'lease'"
        names = sorted(connection.exec_driver_sql(query).scalars())
        rows = [
            f"{name} {row}"
            for name in names
            for row in sorted(connection.exec_driver_sql(f"SELECT t::text FROM {SCHEMA}.{name} t").scalars())
        ]
    return rows + sorted(entry.path for entry in files.list_tree(root))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", NAMES)
def test_a_paused_leader_does_no_harm(
    name: str,
    server: Served,
    connection: Connection,
    others: Services,
    services: PausedServices,
    tmp_path: Path,
    sample: Sample,
) -> None:
    scenario = SCENARIOS[name]

    def made() -> tuple[CrashTable, Order]:
        where = f"t{next(_names)}"
        table = CrashTable(server.db, connection, tmp_path, where, scenario.partition, dict(scenario.parameters))
        scenario.prepare(table)
        end_lease(server.db)
        return table, _order(scenario, server, tmp_path)

    table, order = made()
    steps = others.run(order).steps
    table.drop()
    for point in _chosen(steps, sample):
        table, order = made()
        rows = table.rows()
        services.pause(replace(order, last=point))
        has_claims = point.step.startswith(OF_THEIR_OWN)
        for _ in range(2 if has_claims else 1):  # claims of the dead are taken away first
            pass_a_day(server.db, [])
            assert others.run(order).status == 0
        before = everything(server.db, table.root)
        is_told = services.wake()
        after = everything(server.db, table.root)
        assert table.rows() == rows, point
        if has_claims:
            pass_a_day(server.db, [])
            assert others.run(order).status == 0
            assert table.rows() == rows, point
        else:
            assert is_told, point
            assert after == before, point
        assert not {found.state for found in table.service.show(table=table.table)} & STUCK, point
        table.drop()


@pytest.mark.slow
def test_no_service_is_left_out(db: Database, tmp_path: Path) -> None:
    """After the tests above: there was a step of each service of a server at which one is paused."""
    known = {service.name for service in Slices(db, str(tmp_path), Config()).services()}
    if _found:
        assert {step.partition(":")[0] for step in _found} | READERS >= known


def _order(scenario: Scenario, server: Served, warehouse: Path) -> Order:
    settings = {**settings_of(scenario), "metastore.event.db.listener.timetolive": "0s"}
    return Order(server.db_url, str(warehouse), settings, scenario.executor)


def _chosen(steps: list[str], sample: Sample) -> list[Point]:
    """The points to pause at: in a short run the first of each name that has not been one before, if the day has it."""
    found = [point for point in points_of(steps) if not point.step.startswith("start: ")]
    if not ALL_STEPS:
        found = [point for point in found if point.number == 1 and point.step not in _found]
    _found.update(point.step for point in found)
    return found if ALL_STEPS else sample.of(found)
