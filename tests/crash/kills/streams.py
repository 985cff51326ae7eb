"""A streaming query that is killed and restarted from its checkpoint, beside a MERGE writer and compactions.

The query writes rows with ids of their own, the writer counts in each row how often it has changed it. So a row that is
lost or there twice is seen by its id, and a change that is lost or a row that was written again by the sum of counts.
"""

from __future__ import annotations

import json
import random
import shutil
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import TransactionExpiredError, WriteConflictError
from hive_acid.format.names import STAGING_PREFIX
from hive_acid.spark import AcidSession
from metastore.housekeeping.config import HousekeepingConfig
from metastore.housekeeping.housekeeper import AcidHouseKeeper
from metastore.txn.config import TxnConfig
from tests.crash.kills.client import Moment, Victims
from tests.served import Served
from tests.spark.checker import check_table, location_of
from tests.spark.house import House
from tests.spark.reading import Reader, canonical

TIMEOUT_S = 15
SETTINGS = {"hive.txn.timeout": f"{TIMEOUT_S}s"}
"""Of the server: what the dead hold is free after a while, and the living have the time to say so."""

FILES_OF_A_LIFE = 6
STEPS_OF_A_LIFE = (1, 80)
PAUSE_S = 0.3
KILLED, ENDED = "killed", "it came to its end"
"""How a query may end, beside failing by itself, as when it meets other writers again and again."""

LAST_LIVES = 5
"""So often a query is started at most that is to go on to the end, since its batches may meet other writers."""


class StreamKills:
    """One run, in a database of its own."""

    def __init__(self, spark: SparkSession, server: Served, victims: Victims, room: Path, seed: int) -> None:
        self.table = f"stream_{seed}.t"
        self.lives: Counter[str] = Counter()
        self.compactions: Counter[str] = Counter()
        self.changes = 0
        self._spark = spark
        self._server = server
        self._victims = victims
        self._room = room
        self._chance = random.Random(seed)
        self._rows: list[dict[str, int]] = []
        self._ended = threading.Event()
        self._failures: list[BaseException] = []
        for name in ("arriving", "made"):
            (room / name).mkdir(parents=True)

    @property
    def summary(self) -> str:
        """What a run has done."""
        return (
            f"{dict(self.lives)}, {len(self._rows)} rows once each, {self.changes} changes by MERGE, "
            f"compactions {dict(self.compactions)}"
        )

    def run(self, kills: int, say: Callable[[str], None] = lambda line: None) -> None:
        """Kill it so often, then let it end. Raises AssertionError if the rows are not those that have arrived."""
        with hive_acid.spark.session(self._spark, self._server.uri) as acid:
            database, _, _ = self.table.partition(".")
            acid.create_database(database, location=f"file:{self._room / 'home'}")
            acid.create_table(self.table, {"id": "int", "v": "int", "n": "int"}, partitioned_by={"p": "int"})
            others = [threading.Thread(target=self._unless_ended, args=(work,)) for work in (self._merge, self._tidy)]
            for other in others:
                other.start()
            try:
                while self.lives[KILLED] < kills:
                    assert self.lives.total() < 2 * kills + LAST_LIVES, self._victims.complaint()
                    self._arrive()
                    moment = Moment(self._chance.randint(*STEPS_OF_A_LIFE), self._chance.uniform(0, 0.3))
                    say(f"{self.lives[KILLED]:4} query: {self._live(moment)}")
                self._end()
            finally:
                self._ended.set()
                for other in others:
                    other.join()
            assert not self._failures, self._failures
            self._check(acid)

    def _live(self, moment: Moment | None) -> str:
        """Start the query, and kill it unless it is to go on to its end."""
        outcome = self._victims.run(
            {
                "uri": self._server.uri,
                "kind": "query",
                "by_spark": self._chance.random() < 0.3,
                "arguments": {
                    "table": self.table,
                    "arriving": str(self._room / "arriving"),
                    "checkpoint": str(self._room / "checkpoint"),
                    "mode": self._chance.choice(("append", "upsert")),
                    "to_the_end": moment is None,
                },
            },
            moment,
        )
        how = {0: ENDED, -9: KILLED}.get(outcome.status, "it failed by itself")
        self.lives[how] += 1
        return f"{how} after {len(outcome.told)} steps and {outcome.answered} commits"

    def _end(self) -> None:
        for _ in range(LAST_LIVES):
            self._live(None)
            if self.lives[ENDED]:
                return
        raise AssertionError(f"the query does not come to its end: {self._victims.complaint()}")

    def _arrive(self) -> None:
        for _ in range(FILES_OF_A_LIFE):
            first = len(self._rows)
            rows = [
                {"id": number, "v": self._chance.randrange(100), "n": 0, "p": self._chance.randrange(3)}
                for number in range(first, first + self._chance.randint(1, 6))
            ]
            made = self._room / "made" / f"{first}.json"
            made.write_text("\n".join(map(json.dumps, rows)))
            made.rename(self._room / "arriving" / made.name)
            self._rows += rows

    # --- the others --------------------------------------------------------------------------------

    def _unless_ended(self, work: Callable[[AcidSession, random.Random], None]) -> None:
        """Do it again and again, in a session of its own."""
        chance = random.Random(self._chance.random())
        try:
            with hive_acid.spark.session(self._spark.newSession(), self._server.uri) as acid:
                while not self._ended.wait(PAUSE_S):
                    work(acid, chance)
        except BaseException as error:
            self._failures.append(error)

    def _merge(self, acid: AcidSession, chance: random.Random) -> None:
        """Count in some rows that they were changed."""
        if not self._rows:
            return
        ids = chance.sample(range(len(self._rows)), min(len(self._rows), 8))
        source = acid.spark.sql(f"SELECT * FROM VALUES {', '.join(f'({number})' for number in ids)} AS g(id)")
        builder = acid.merge(self.table, source, "t.id = s.id").whenMatchedUpdate(None, {"n": "t.n + 1"})
        try:
            self.changes += builder.execute().updated
        except (WriteConflictError, TransactionExpiredError):
            return

    def _tidy(self, acid: AcidSession, chance: random.Random) -> None:
        """Time out the dead, compact and clean."""
        AcidHouseKeeper(self._server.db, HousekeepingConfig(), TxnConfig(timeout_ms=TIMEOUT_S * 1000)).run_once()
        house = House(self._server.db, self._room, self._spark)
        definition = acid.connection.table(*self.table.split("."))
        places: list[Any] = [*acid.connection.partitions(definition)]
        if places:
            states = house.compact(self.table, chance.choice(("minor", "major")), [chance.choice(places)])
            self.compactions.update(state.name for state in states)
        house.clean()

    def _check(self, acid: AcidSession) -> None:
        reader = Reader(acid.connection, self.table.partition(".")[0])
        found = acid.table(self.table).collect()
        assert sorted(row.id for row in found) == [row["id"] for row in self._rows], "not each row is there once"
        assert sum(row.n for row in found) == self.changes, "changes of the other writer are lost, or there twice"
        wanted = canonical({**row, "n": None} for row in self._rows)
        assert canonical({**row.asDict(), "n": None} for row in found) == wanted
        assert reader.content() == {"t": canonical(row.asDict() for row in found)}
        for staged in location_of(acid, self.table).glob(f"{STAGING_PREFIX}*"):
            shutil.rmtree(staged)  # of a dead query: it goes when the table is cleaned, which may be later
        check_table(location_of(acid, self.table))
