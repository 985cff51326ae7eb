"""A client killed before every step of every write: nothing lost, doubled or half visible, and nothing left behind."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import NoSuchObjectError
from hive_acid.filesystem import files
from hive_acid.format.names import parse_directory
from hive_acid.format.properties import SUCCESSOR
from hive_acid.spark import AcidSession
from tests.crash.client import Clients, Outcome
from tests.crash.statements import STATEMENTS, KilledStatement
from tests.crash.steps import ALL_STEPS
from tests.sampling import Sample
from tests.served import Served, served
from tests.spark.checker import check_snapshot, check_table, location_of
from tests.spark.house import House

COMMITS = ("metastore.commit_txn", "metastore.hive_acid_commit_rows", "metastore.hive_acid_replace_table")
STEP_TURNS = 2
"""Within so many turns of a statement each step has its own."""

_names = itertools.count(1)


@pytest.fixture(scope="module")
def server(postgres_url: str, template: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(postgres_url, template, tmp_path_factory.mktemp("crash") / "warehouse") as running:
        yield running


@pytest.fixture(scope="module")
def clients(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    with Clients(spark, tmp_path_factory.mktemp("clients")) as running:
        yield running


@pytest.fixture
def world(spark: SparkSession, server: Served, clients: Clients, tmp_path: Path) -> Iterator[World]:
    with hive_acid.spark.session(spark, server.uri) as acid:
        yield World(acid, server, clients, tmp_path)


def is_chosen(statement: KilledStatement) -> bool:
    return ALL_STEPS or not statement.only_in_long_runs


class World:
    """Databases with the same tables, in each of which the same statement can be run."""

    def __init__(self, acid: AcidSession, server: Served, clients: Clients, scratch: Path) -> None:
        self.acid = acid
        self.house = House(server.db, scratch / "warehouse", acid.spark)
        self._uri, self._db = server.uri, server.db
        self._clients = clients
        self._scratch = scratch

    def prepared(self, statement: KilledStatement) -> str:
        """A new database with what the statement finds."""
        database = f"crash_{next(_names)}"
        self.acid.create_database(database, location=str(self._scratch / database))
        statement.prepare(self.acid, database, self._scratch)
        return database

    def run(self, name: str, database: str, last: int | None = None) -> Outcome:
        return self._clients.run(self._uri, name, database, self._scratch, last)

    def content(self, statement: KilledStatement, database: str) -> dict[str, object]:
        """Rows of each table and partition that has some, by the checker's own reader."""
        found: dict[str, object] = {}
        for table in statement.tables:
            try:
                seen = check_snapshot(self.acid, f"{database}.{table}")
            except NoSuchObjectError:
                continue
            found |= {f"{table}/{at}": sorted(event.row for event in rows) for at, rows in seen.items() if rows}
        return found

    def successors(self, database: str) -> set[str]:
        """Tables that are to take the place of others, and their directories."""
        with self._db.engine.connect() as connection:
            query = "SELECT name FROM tbl WHERE database = %s AND starts_with(name, %s)"
            found = set(connection.exec_driver_sql(query, (database, SUCCESSOR)).scalars())
        return found | {entry.name for entry in (self._scratch / database).iterdir() if ".v" in entry.name}

    def directories(self, statement: KilledStatement, database: str) -> set[str]:
        """All data and staging directories of the tables."""
        found = set()
        for table in statement.tables:
            try:
                location = str(location_of(self.acid, f"{database}.{table}"))
            except NoSuchObjectError:
                continue
            for entry in files.list_tree(location):
                name = entry.path.rstrip("/").rpartition("/")[2]
                if entry.is_directory and (parse_directory(name) or name.startswith((".", "_"))):
                    found.add(f"{table}/{entry.path}")
        return found


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [name for name, one in STATEMENTS.items() if is_chosen(one)])
def test_kill(world: World, name: str, sample: Sample) -> None:
    statement = STATEMENTS[name]
    dry = world.prepared(statement)
    before, directories = world.content(statement, dry), world.directories(statement, dry)
    steps = world.run(name, dry).steps
    after = world.content(statement, dry)
    # The service commits what it does by itself, as TRUNCATE, in the one call that asks for it.
    commit = max((number for number, step in enumerate(steps) if step in COMMITS), default=len(steps) - 1)
    database = world.prepared(statement)
    for last in _chosen(steps, commit, sample):
        if last > commit or statement.makes_table:
            database = world.prepared(statement)
        outcome = world.run(name, database, last)
        if outcome.status == 0:
            # Earlier kills have left less to do, as partitions that are registered: on new tables it is long enough.
            assert world.content(statement, database) == after
            database = world.prepared(statement)
            outcome = world.run(name, database, last)
        assert outcome.status == -9
        if statement.locks_out:
            world.house.time_out()
        assert world.content(statement, database) == (after if last > commit else before), outcome.steps
        if last == commit:
            _clean_up(world, statement, database, before, directories)
            if statement.makes_table:  # it cannot be made again where an empty one has been left
                database = world.prepared(statement)
            assert world.run(name, database).status == 0
            assert world.content(statement, database) == after


def _clean_up(world: World, statement: KilledStatement, database: str, before: Any, directories: set[str]) -> None:
    """All have died: after the time-out nothing of theirs is left."""
    world.house.time_out()
    world.house.tidy()
    run = world.house.clean()
    assert not run.failed
    assert world.successors(database) == set()
    assert world.content(statement, database) == before
    assert world.directories(statement, database) == directories
    check_table(location_of(world.acid, f"{database}.t"))


def _chosen(steps: list[str], commit: int, sample: Sample) -> list[int]:
    """The steps before which to kill; in a short run the first and last of each name of the day, and the commit."""
    if ALL_STEPS:
        return list(range(len(steps)))
    last = len(steps) - 1
    of_day = sample.of(dict.fromkeys(steps), turns=STEP_TURNS)
    return sorted({commit, *(n for name in of_day for n in (steps.index(name), last - steps[::-1].index(name)))})
