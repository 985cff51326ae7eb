"""A writer changes a table in any way while streams follow it, and each row that a write has put there comes once.

A version of a row has a number of its own (`v`), so that what has come can be counted. Streams are stopped, killed in
the middle of a batch, and begun again from their checkpoint.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession

import hive_acid.spark
from hive_acid.spark import AcidSession
from tests.served import Served
from tests.spark.compaction import compact_table
from tests.spark.conftest import OVER_CONNECT
from tests.spark.house import House
from tests.spark.stream_source.taken import Row, Taken

TELLS_SOURCES = not OVER_CONNECT or not pyspark.__version__.startswith("4.1")
"""Whether Spark tells a source where its stream is: without that, batches are not limited."""

_ABANDONED = RuntimeError("the writer has changed its mind")


class Writer:
    """Changes to ``d.t``, and what is in it by now: the rows by their ids, and all versions that there ever were."""

    _properties: Mapping[str, str] = {}

    def __init__(self, acid: AcidSession, other: AcidSession, house: House, chance: random.Random, keyed: bool) -> None:
        self._acid = acid
        self._other = other
        self._house = house
        self._chance = chance
        self._keyed = keyed
        self._version = 0
        self._columns = 0
        self._open: tuple[ExitStack, list[Row]] | None = None
        self.rows: dict[int, Row] = {}
        self.ever: dict[int, Row] = {}
        self.columns_added = 0
        columns = {"id": "int", "v": "int", "s": "string"} | ({"p": "int"} if keyed else {})
        acid.create_table("d.t", columns, partitioned_by=["p"] if keyed else (), properties=self._properties)

    def steps(self, number: int) -> None:
        """Some changes, each any of the verbs."""
        verbs = [self.insert] * 4 + [self.update] * 2 + [self.delete, self.merge, self.merge]
        verbs += [self.compact] * 3 + [self.begin, self.end, self.abort, self.overwrite, self.clean, self.add_column]
        for _ in range(number):
            self._chance.choice(verbs)()

    def insert(self) -> None:
        made = self._new(self._chance.randint(1, 4))
        self._acid.insert("d.t", self._frame(made))
        self._stored(made)

    def update(self) -> None:
        if self._open is None and self.rows:
            row = self._again(self._chance.choice(sorted(self.rows)))
            self._acid.table("d.t").update({"v": str(row[1])}, f"id = {row[0]}")
            self._stored([row])

    def delete(self) -> None:
        if self._open is None and self.rows:
            gone = self._chance.choice(sorted(self.rows))
            self._acid.delete("d.t", f"id = {gone}")
            del self.rows[gone]

    def merge(self) -> None:
        if self._open is not None:
            return
        made = self._new(2) + [self._again(one) for one in sorted(self.rows)[:1]]
        source = self._frame(made)
        merge = self._acid.table("d.t").merge(source, "t.id = s.id")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        self._stored(made)

    def overwrite(self) -> None:
        if self._open is not None or self._chance.random() < 0.5:
            return
        made = self._new(3)
        self._acid.overwrite("d.t", self._frame(made))
        if self._keyed:  # only the partitions of the new rows
            keys = {row[3] for row in made}
            self.rows = {id_: row for id_, row in self.rows.items() if row[3] not in keys}
        else:
            self.rows.clear()
        self._stored(made)

    def compact(self) -> None:
        kind = self._chance.choice(("major", "minor", "major"))
        compact_table(self._acid.spark, self._acid, "d.t", kind)

    def clean(self) -> None:
        self._house.clean()

    def add_column(self) -> None:
        if self._open is None and self._chance.random() < 0.3:
            self._columns += 1
            self._acid.sql(f"ALTER TABLE d.t ADD COLUMNS (c{self._columns} INT)")
            self.columns_added += 1

    def begin(self) -> None:
        """A transaction that commits late, or not at all: its write id is older than those of others meanwhile."""
        if self._open is None:
            made = self._new(2)
            stack = ExitStack()
            stack.enter_context(self._other.transaction())
            self._other.insert("d.t", self._frame(made))
            self._open = stack, made

    def end(self) -> None:
        if self._open is not None:
            (stack, made), self._open = self._open, None
            stack.close()
            self._stored(made)

    def abort(self) -> None:
        if self._open is not None:
            (stack, _), self._open = self._open, None
            with suppress(RuntimeError), stack:
                raise _ABANDONED

    def _new(self, number: int) -> list[Row]:
        made = []
        for _ in range(number):
            self._version += 1
            row: Row = (self._version, self._version, self._chance.choice(("a", "", None, "ü")))
            made.append((*row, self._chance.randint(0, 2)) if self._keyed else row)
        return made

    def _again(self, id_: int) -> Row:
        self._version += 1
        row = self.rows[id_]
        return (id_, self._version, *row[2:])

    def _stored(self, made: list[Row]) -> None:
        self.rows |= {row[0]: row for row in made}
        self.ever |= {row[1]: row for row in made}

    def _frame(self, made: list[Row]) -> DataFrame:
        kinds = "id int, v int, s string" + (", p int" if self._keyed else "")
        frame = self._acid.spark.createDataFrame(made, kinds)
        names = [*frame.columns[:3], *(f"CAST(NULL AS INT) c{n + 1}" for n in range(self._columns)), *frame.columns[3:]]
        return frame.selectExpr(*names)


class Follower:
    """A stream of ``d.t`` with its checkpoint, into a list of what has come for good: of each batch once.

    The last attempt at a batch counts, as a sink that knows the number of a batch has it.
    """

    def __init__(self, acid: AcidSession, checkpoint: Path, chance: random.Random) -> None:
        self._acid = acid
        self._checkpoint = str(checkpoint)
        self._place = Path(f"{checkpoint}.taken")
        self._chance = chance
        self._query: Any = None

    @property
    def came(self) -> Counter[Row]:
        return Counter(row for batch in Taken(self._place).batches.values() for row in batch)

    def drain(self) -> Counter[Row]:
        """All that is there, by a query that ends; what came new."""
        before = self.came
        self.stop()
        fails = self._chance.random() < 0.4
        if fails:
            with suppress(Exception):
                self._started(fails=True, availableNow=True).awaitTermination()
        self._started(availableNow=True).awaitTermination()
        return self.came - before

    def run(self, every: str = "0 seconds") -> None:
        """Follow until `drain`, as fast as may be, or so often."""
        if self._query is None or not self._query.isActive:
            self._query = self._started(processingTime=every)

    def check_running(self) -> None:
        """Raise what has ended a query that was to run."""
        if (error := self._query.exception()) is not None:
            raise error

    def stop(self) -> None:
        """In the middle of whatever it does."""
        if self._query is not None:
            self._query.stop()
            self._query = None

    def _started(self, *, fails: bool = False, **trigger: Any) -> Any:
        def look(frame: DataFrame) -> list[Row]:
            keys = [name for name in frame.columns if name == "p"]
            return [tuple(row) for row in frame.select("id", "v", "s", *keys).collect()]

        limit = self._chance.choice((None, None, 1, 3))
        frame = self._acid.read_stream("d.t", max_files=limit if TELLS_SOURCES else None)
        return (
            frame.writeStream.option("checkpointLocation", self._checkpoint)
            .trigger(**trigger)
            .foreachBatch(Taken(self._place, look, fails=fails))
            .start()
        )


class Walk:
    """One walk on a fresh server."""

    def __init__(self, spark: SparkSession, server: Served, room: Path, seed: int) -> None:
        self._chance = random.Random(seed)
        self._keyed = self._chance.random() < 0.5
        self._sessions = [hive_acid.spark.session(spark, server.uri) for _ in range(3)]
        acid, other, reader = self._sessions
        acid.create_database("d")
        self.writer = Writer(acid, other, House(server.db, room / "warehouse", spark), self._chance, self._keyed)
        self.steady = Follower(reader, room / "steady", self._chance)
        self.running = Follower(reader, room / "running", self._chance)

    def play(self, rounds: int) -> None:
        """Change, follow and compare."""
        known: set[int] = set()
        for _ in range(rounds):
            if self._chance.random() < 0.7:
                self.running.run()
            self.writer.steps(self._chance.randint(1, 6))
            if self._chance.random() < 0.3:
                self.running.stop()
            if self._chance.random() < 0.7:
                new = self.steady.drain()
                # What was put there since, and is there still, in the version that is there.
                wanted = [row for row in self.writer.rows.values() if row[1] not in known]
                assert new == Counter(wanted)
                known = set(self.writer.ever)
        self.writer.end()
        self.steady.drain()
        self.running.drain()
        for follower in (self.steady, self.running):
            came = follower.came
            assert not [row for row, times in came.items() if times > 1]
            assert not Counter(self.writer.rows.values()) - came
            assert not came - Counter(self.writer.ever.values())

    def close(self) -> None:
        """End what runs."""
        self.steady.stop()
        self.running.stop()
        self.writer.abort()
        for session in self._sessions:
            session.close()
