"""Statements of all kinds whose processes are killed at random moments, one after the other on the same tables."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.format.names import STAGING_PREFIX
from tests.crash.kills.chooser import Chooser, Order
from tests.crash.kills.client import Moment, Outcome, Victims
from tests.crash.kills.content import FLAT, INSERT_ONLY, KEYED, PARTITIONED, TABLES, Content, canonical_content
from tests.crash.kills.statements import STATEMENTS
from tests.served import Served
from tests.spark.checker import check_table, location_of
from tests.spark.house import House
from tests.spark.reading import Reader
from tests.waiting import at_rest, until

TIDY_EVERY = 15
"""After so many statements tables are compacted and cleaned."""

READ_EVERY = 5
"""After so many statements the product reads the tables too."""

USUAL = (12, 1.0)
"""How many steps, and seconds, a statement is thought to take that has not run yet."""

PATIENCE_S = 60
QUIET_S = 2.0
"""A call that is not over by then is thought to have been lost."""


class Kills:
    """One run, in a database of its own."""

    def __init__(self, spark: SparkSession, server: Served, victims: Victims, room: Path, seed: int) -> None:
        self.database = f"kills_{seed}"
        self.outcomes: Counter[str] = Counter()
        self._spark = spark
        self._victims = victims
        self._uri = server.uri
        self._room = room
        self._chooser = Chooser(seed)
        self._chance = self._chooser.chance
        self._house = House(server.db, room, spark)
        self._lengths: dict[str, tuple[int, float]] = {}
        self._content: Content = {table: {} for table in TABLES}
        (room / "loose").mkdir(parents=True)

    def run(self, kills: int, say: Callable[[str], None] = lambda line: None) -> None:
        """Kill so many. Raises AssertionError when rows are not what they have to be."""
        with hive_acid.spark.session(self._spark, self._uri) as self.acid:
            self._reader = Reader(self.acid.connection, self.database)
            self._create()
            number = killed = 0
            while killed < kills:
                number += 1
                order = self._chooser.order(self._content)
                outcome = self._play(order, self._moment(order.kind))
                killed += outcome.status != 0
                self._settle(order, outcome, number)
                say(f"{killed:4} {order.kind}: {self._shown(outcome)}")
            self._tidy()

    def _create(self) -> None:
        self.acid.create_database(self.database, location=f"file:{self._room / 'home'}")
        for table in TABLES:
            kind = {"transactional_properties": "insert_only"} if table == INSERT_ONLY else {}
            keys = {"p": "int"} if table in KEYED else {}
            self.acid.create_table(
                f"{self.database}.{table}", {"id": "int", "v": "int"}, partitioned_by=keys, properties=kind
            )

    def _moment(self, kind: str) -> Moment:
        steps, seconds = self._lengths.get(kind, USUAL)
        return Moment(self._chance.randint(0, steps), self._chance.uniform(0, 2 * seconds / (steps + 1)))

    def _play(self, order: Order, moment: Moment) -> Outcome:
        began = time.monotonic()
        outcome = self._victims.run(
            {
                "uri": self._uri,
                "database": self.database,
                "loose": str(self._room / "loose"),
                "kind": order.kind,
                "arguments": order.arguments,
                "by_spark": order.by_spark,
            },
            moment,
        )
        assert outcome.status in (0, -9), f"{order}: {self._victims.complaint()}"
        if outcome.status == 0:
            self._lengths[order.kind] = len(outcome.told), time.monotonic() - began
        return outcome

    def _settle(self, order: Order, outcome: Outcome, number: int) -> None:
        """Find out in which of its states the statement has left the tables."""
        states = [self._content, *STATEMENTS[order.kind].states(self._content, **order.arguments)]
        last = len(states) - 1
        possible = states[min(outcome.answered, last) : min(outcome.sent, last) + 1] if outcome.status else [states[-1]]
        if outcome.status and outcome.sent > outcome.answered:
            self._house.time_out()  # what it has asked for last may wait for those who died before
        found = self._found(outcome)
        fitting = [state for state in possible if canonical_content(state) == found]
        wanted = " or ".join(str(canonical_content(state)) for state in possible)
        assert fitting, f"{number}: {order}: {outcome}: rows are {found}, should be {wanted}"
        self._content = fitting[-1]
        self.outcomes[self._shown(outcome)] += 1
        if outcome.status and (order.kind in ("overwrite", "truncate") or self._chance.random() < 0.5):
            self._house.time_out()  # its locks keep others out until then
            assert self._reader.content() == found, f"{number}: {order}: rows changed when its transaction timed out"
        if not number % READ_EVERY:
            assert self._reader.content_by(self.acid) == found, f"{number}: the product reads something else"
        if not number % TIDY_EVERY:
            self._tidy()

    def _found(self, outcome: Outcome) -> dict[str, list[str]]:
        """The rows; what a dead client has asked for last, the server may be carrying out still."""
        may_be_under_way = outcome.status and outcome.sent > outcome.answered
        return at_rest(self._reader.content, QUIET_S) if may_be_under_way else self._reader.content()

    @staticmethod
    def _shown(outcome: Outcome) -> str:
        if not outcome.status:
            return "it was done before"
        if outcome.sent == outcome.answered:
            return "killed before a commit" if not outcome.sent else "killed behind a commit"
        return "killed in a commit"

    def _tidy(self) -> None:
        """All dead clients are timed out, tables compacted and cleaned: rows stay, and nothing of the dead does."""
        until(lambda: not self._jobs_of_the_dead(), PATIENCE_S, "a job of a dead client does not end")
        self._house.time_out()
        for table in (PARTITIONED, FLAT):
            name = f"{self.database}.{table}"
            definition = self.acid.connection.table(self.database, table)
            places: list[Any] = [*self.acid.connection.partitions(definition)] if table in KEYED else [None]
            self._house.compact(name, self._chance.choice(("minor", "major")), places)
        run = self._house.clean()
        assert not run.failed, run.failed
        assert self._reader.content() == canonical_content(self._content), "compaction has changed rows"
        for table in (PARTITIONED, FLAT):
            location = location_of(self.acid, f"{self.database}.{table}")
            for staged in location.glob(f"{STAGING_PREFIX}*"):
                shutil.rmtree(
                    staged
                )  # what a dead client has staged goes when its table is cleaned, which may be later
            check_table(location)
        shutil.rmtree(self._room / "loose")
        (self._room / "loose").mkdir()

    def _jobs_of_the_dead(self) -> list[int]:
        """Jobs go on whose driver is dead, since all share a JVM."""
        return list(self._spark.sparkContext.statusTracker().getActiveJobsIds())
