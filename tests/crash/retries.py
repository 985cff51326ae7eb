"""``python -m tests.crash.retries URI SCRATCH SEED``: all writers on a Spark whose tasks fail and are tried again.

A task fails by an exception, or its Python worker is killed, somewhere among its rows, at its first attempts. The seed
says which ones. Each statement is played on a model as well; at the end of each the table must hold its rows.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark import TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.spark import AcidSession
from hive_acid.spark.jvm.java import ensure_java
from hive_acid.spark.limits import DEFAULT
from tests.crash.cluster import SETTINGS
from tests.spark.by_spark import WRITTEN

ATTEMPTS = 4
ROWS = 120
SCHEMA = "id int, v int, p int"
TABLE, SECOND = "d.t", "d.u"

Model = dict[int, int]
"""The value of each id; its partition is the id by 3."""


def trouble(place: str, number: int) -> None:
    """Fail at this row, in a way of the row's own, unless this task has done so before, or this is its last attempt."""
    context = TaskContext.get()
    assert context is not None
    if context.attemptNumber() >= ATTEMPTS - 2:
        return
    chance = zlib.crc32(f"{Path(place).name} {number}".encode()) % 40
    if chance < 2:
        Path(place, f"{'raised' if chance else 'killed'}-{os.getpid()}-{number}").touch()
        if chance:
            raise RuntimeError("as if")
        os.kill(os.getpid(), signal.SIGKILL)


def _troubled(place: str) -> Callable[[Iterator[Any]], Iterator[Any]]:
    def run(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for number in batch["id"]:
                trouble(place, int(number))
            yield batch

    return run


class Play:
    """One run over all writers, on one table."""

    def __init__(self, acid: AcidSession, scratch: Path, seed: int) -> None:
        self.acid = acid
        self.spark = acid.spark
        self.chance = random.Random(seed)
        self.scratch = scratch / str(seed)
        self.model: Model = {}
        self.wrong: list[str] = []
        self.name = ""

    def place(self) -> str:
        """Where the troubles of a statement are noted."""
        place = self.scratch / f"{len(list(self.scratch.iterdir()))}-{self.name.replace(' ', '-')}"
        place.mkdir()
        return str(place)

    def frame(self, rows: Model) -> DataFrame:
        """A source of these rows in four parts, whose tasks fail."""
        values = [(number, value, number % 3) for number, value in rows.items()]
        frame = self.spark.createDataFrame(values, SCHEMA).repartition(4)
        return frame.mapInPandas(_troubled(self.place()), SCHEMA)

    def value(self, of: str) -> Column:
        """A number column as it is, by tasks that fail."""
        place = self.place()

        def run(number: int) -> int:
            trouble(place, number)
            return number

        return F.udf(run, "int")(F.col(of))

    def some(self, first: int, last: int) -> Model:
        return {number: self.chance.randrange(1000) for number in range(first, last) if self.chance.random() < 0.5}

    def insert(self) -> int:
        first = max(self.model, default=0) + 1
        rows = self.some(first, first + ROWS)
        self.model |= rows
        return self.acid.insert(TABLE, self.frame(rows)) - len(rows)

    def overwrite(self) -> int:
        rows = {number: value for number, value in self.some(1, ROWS).items() if number % 3 == 1}
        rows[1] = 5
        self.model = {number: value for number, value in self.model.items() if number % 3 != 1} | rows
        return self.acid.overwrite(TABLE, self.frame(rows)) - len(rows)

    def update(self) -> int:
        hit = [number for number in self.model if number % 5 < 2]
        self.model |= {number: number + 7 for number in hit}
        return self.acid.update(TABLE, {"v": self.value("id") + 7}, "id % 5 < 2") - len(hit)

    def update_from(self) -> int:
        rows = self.some(1, 2 * ROWS)
        hit = rows.keys() & self.model.keys()
        self.model |= {number: rows[number] for number in hit}
        changed = self.acid.update(TABLE, {"v": "s.v"}, source=self.frame(rows), on="t.id = s.id")
        return changed - len(hit)

    def delete(self) -> int:
        hit = [number for number in self.model if number % 11 == 4]
        for number in hit:
            del self.model[number]
        return self.acid.delete(TABLE, self.value("id") % 11 == 4) - len(hit)

    def delete_using(self) -> int:
        rows = {number: value for number, value in self.some(1, ROWS).items() if number % 4 == 0}
        hit = rows.keys() & self.model.keys()
        for number in hit:
            del self.model[number]
        return self.acid.delete(TABLE, source=self.frame(rows), on="t.id = s.id") - len(hit)

    def merge(self) -> int:
        rows = self.some(1, max(self.model, default=0) + 50)
        matched = rows.keys() & self.model.keys()
        builder = self.acid.merge(TABLE, self.frame(rows), "t.id = s.id")
        builder.whenMatchedDelete("s.v % 5 = 0").whenMatchedUpdateAll().whenNotMatchedInsertAll()
        counts = builder.execute()
        self.model |= rows
        for number in matched:
            if rows[number] % 5 == 0:
                del self.model[number]
        return sum(counts) - len(rows)

    def multi_insert(self) -> int:
        first = max(self.model, default=0) + 1
        rows = self.some(first, first + ROWS)
        self.model |= rows
        self.acid.truncate(SECOND)
        counts = self.acid.multi_insert(self.frame(rows)).into(TABLE).into(SECOND).execute()
        if sorted(row.id for row in self.acid.table(SECOND).select("id").collect()) != sorted(rows):
            self.wrong.append(f"{self.name}: the second table has other rows")
        return sum(counts) - 2 * len(rows)

    def batch(self) -> int:
        """A micro-batch of a sink, that is given twice, as after a restart."""
        sink = self.acid.sink(TABLE, query="q", mode="upsert", keys=["id"])
        rows = self.some(1, max(self.model, default=0) + 50)
        self.model |= rows
        number = self.chance.randrange(1_000_000) + 1_000_000 * len(list(self.scratch.iterdir()))
        for _ in range(2):
            sink(self.frame(rows), number)
        return 0

    def run(self, steps: int) -> None:
        """Play so many statements."""
        self.scratch.mkdir(parents=True)
        verbs = [
            self.insert, self.overwrite, self.update, self.update_from, self.delete, self.delete_using, self.merge,
            self.multi_insert, self.batch,
        ]  # fmt: skip
        order = [self.insert, *self.chance.sample(verbs, len(verbs))]
        for step, verb in enumerate((order * (steps // len(order) + 1))[:steps]):
            by_spark = self.chance.random() < 0.5
            self.acid.limits = replace(DEFAULT, **WRITTEN) if by_spark else DEFAULT
            self.name = f"{step} {verb.__name__} {'by Spark' if by_spark else 'by the client'}"
            off = verb()
            found = sorted((row.id, row.v, row.p) for row in self.acid.table(TABLE).collect())
            if off or found != sorted((number, value, number % 3) for number, value in self.model.items()):
                self.wrong.append(f"{self.name}: {off} rows told too many; {len(found)} are there of {len(self.model)}")
                return


def main(uri: str, scratch: str, seed: str, steps: str = "10") -> None:
    """Play it, and print what was wrong, and how many tasks failed by what."""
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[2,{ATTEMPTS}]").appName("retries")
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    spark = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "20").getOrCreate()
    with hive_acid.spark.session(spark, uri) as acid:
        for table in (TABLE, SECOND):
            acid.create_table(table, {"id": "int", "v": "int"}, partitioned_by={"p": "int"})
        play = Play(acid, Path(scratch), int(seed))
        play.run(int(steps))
    failed = [file.name.partition("-")[0] for file in Path(scratch).rglob("*-*-*") if file.is_file()]
    told = {"wrong": play.wrong, "raised": failed.count("raised"), "killed": failed.count("killed")}
    print(json.dumps(told), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
