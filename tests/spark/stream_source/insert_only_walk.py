"""A writer adds to an insert-only table and overwrites it, while compactions and the Cleaner run and streams follow it.

A query that runs has each row once, however late it looks. One that is stopped meanwhile has so, too, or ends by an
error if a compaction has come before it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import hive_acid.spark
from tests.served import Served
from tests.spark.house import House
from tests.spark.stream_source.taken import Row
from tests.spark.stream_source.walk import Follower, Writer
from tests.waiting import until


class GrowingWriter(Writer):
    """A table that only grows, compacted by the metastore's own services."""

    _properties: Mapping[str, str] = {"transactional_properties": "insert_only"}
    compactions = 0

    def steps(self, number: int) -> None:
        verbs = [self.insert] * 5 + [self.compact] * 3 + [self.clean] * 3
        verbs += [self.begin, self.end, self.abort, self.overwrite]
        for _ in range(number):
            self._chance.choice(verbs)()

    def compact(self) -> None:
        partitions = self._acid.table("d.t").partitions() if self._keyed else [None]
        self._house.compact("d.t", self._chance.choice(("major", "minor")), partitions)
        self.compactions += 1


class GrowingWalk:
    """One walk on a fresh server."""

    def __init__(self, spark: SparkSession, server: Served, room: Path, seed: int) -> None:
        self._chance = random.Random(seed)
        self._sessions = [hive_acid.spark.session(spark, server.uri) for _ in range(3)]
        acid, other, reader = self._sessions
        acid.create_database("d")
        house = House(server.db, room / "warehouse", spark)
        self._writer = GrowingWriter(acid, other, house, self._chance, self._chance.random() < 0.5)
        self._steady = Follower(reader, room / "steady", self._chance)
        self._running = Follower(reader, room / "running", self._chance)
        self.lost = False
        """Whether the steady one has come too late."""

    def play(self, rounds: int) -> None:
        """Change, follow and compare."""
        self._running.run(self._chance.choice(("0 seconds", "2 seconds")))
        compacted, known = 0, Counter(self._steady.came)
        for _ in range(rounds):
            self._writer.steps(self._chance.randint(2, 6))
            self._running.check_running()
            if self.lost or self._chance.random() < 0.4:
                continue
            try:
                new = self._steady.drain()
            except StreamingQueryException as error:
                assert "a compaction has put rows" in str(error)  # noqa: PT017
                assert self._writer.compactions > compacted
                self.lost = True
                continue
            compacted = self._writer.compactions
            assert not new & known
            known += new
            assert not Counter(self._writer.rows.values()) - known
        self._writer.end()
        until(lambda: not self._missing() or self._running.check_running())
        self._running.stop()
        came = self._running.came
        assert not self._missing()
        assert not [row for row, times in came.items() if times > 1]
        assert not came - Counter(self._writer.ever.values())

    def _missing(self) -> Counter[Row]:
        return Counter(self._writer.rows.values()) - self._running.came

    def close(self) -> None:
        """End what runs."""
        self._steady.stop()
        self._running.stop()
        self._writer.abort()
        for session in self._sessions:
            session.close()
