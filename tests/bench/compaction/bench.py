"""A Spark of its own and a server with its Spark, and what each of them is given to do and takes for it."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

from hive_acid.errors import CompactionFailedError
from hive_acid.format.orc.compression import DEFAULT_COMPRESSION
from hive_acid.spark import AcidSession
from hive_acid.wire import ttypes
from tests.bench.data.orders import COLUMNS, orders
from tests.bench.machine import cpu_s
from tests.waiting import until

DELTAS = 10
IN_DELTAS = 5
"""One row in so many is in the deltas, the others in the base."""

UNDER_WAY = ("initiated", "working")
_MERGED = ("ready for cleaning", "succeeded")
_PATIENCE_S = 3600.0


class Cost(NamedTuple):
    """Seconds by the clock, and of processors."""

    wall_s: float
    cpu_s: float


class Bench:
    """A Spark of our own for loading and for plain files, and the server with its Spark."""

    def __init__(self, spark: SparkSession, acid: AcidSession, server: int, work: Path) -> None:
        self.spark = spark
        self.acid = acid
        self._server = server
        self._work = work
        self._jvm = int(spark.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]

    def load(self, table: str, rows: int) -> None:
        """A table of `rows` orders: a base, ten deltas, and 1 % deleted."""
        in_base, each = rows - rows // IN_DELTAS, rows // IN_DELTAS // DELTAS
        self.acid.create_table(table, COLUMNS)
        self.acid.overwrite(table, orders(self.spark, in_base))
        for delta in range(DELTAS):
            self.acid.insert(table, orders(self.spark, each, in_base + delta * each))
        self.acid.delete(table, "o_id % 100 = 7")

    def plain(self, name: str, rows: int, first: int = 0) -> None:
        """The same rows as plain ORC."""
        orders(self.spark, rows, first).write.option("compression", DEFAULT_COMPRESSION).orc(str(self._work / name))

    def rewritten(self, *directories: str) -> Cost:
        """What it costs to read and write ORC files as Spark does without us."""
        target = self._work / "rewritten"
        shutil.rmtree(target, ignore_errors=True)

        def rewrite() -> None:
            self.spark.read.orc(list(directories)).write.option("compression", DEFAULT_COMPRESSION).orc(str(target))

        return self._cost(self._jvm, rewrite)

    def same_rows(self, name: str) -> Cost:
        """What it costs to rewrite what `plain` made."""
        return self.rewritten(str(self._work / name))

    def same_bytes(self, table: str, *, deltas: bool) -> Cost:
        """What it costs to rewrite the files of the table's inserts, as they are."""
        location = Path(self.acid.connection.table(*table.split(".")).location.removeprefix("file:"))
        patterns = ["delta_*"] if deltas else ["base_*", "delta_*"]
        return self.rewritten(*(str(found) for pattern in patterns for found in location.glob(pattern)))

    def compacted(self, table: str, kind: str) -> Cost:
        """What a compaction costs the server, from the request until its files are merged."""
        return self._cost(self._server, lambda: self.wait(table, self.request(table, kind)))

    def read(self, do: Callable[[], object]) -> Cost:
        """What it costs Spark and its client to do something."""
        cpu, began_at = cpu_s([os.getpid()]), time.monotonic()
        do()
        return Cost(time.monotonic() - began_at, cpu_s([os.getpid()]) - cpu)

    def request(self, table: str, kind: str, partitions: tuple[str, ...] = ()) -> list[int]:
        """Queue compactions."""
        return self.acid.connection.compact(*table.split("."), kind, partitions)  # type: ignore[call-arg]

    def wait(self, table: str, ids: list[int]) -> list[Any]:
        """Wait until all of `ids` have merged their files; what the server shows of them."""

        def merged() -> list[Any]:
            shown = [one for one in self.shown(table) if one.id in set(ids)]
            if failed := [one for one in shown if one.state not in (*UNDER_WAY, *_MERGED)]:
                raise CompactionFailedError(f"compaction {failed[0].id} is {failed[0].state}: {failed[0].errorMessage}")
            return shown if all(one.state in _MERGED for one in shown) else []

        return until(merged, _PATIENCE_S, f"compactions of {table} did not end")

    def shown(self, table: str) -> list[Any]:
        """All compactions of a table."""
        database, _, name = table.partition(".")
        asked = ttypes.ShowCompactRequest(dbName=database, tbName=name)
        found: list[Any] = self.acid.connection.call("show_compact", asked).compacts
        return found

    def _cost(self, process: int, do: Callable[[], object]) -> Cost:
        cpu, began_at = cpu_s([process]), time.monotonic()
        do()
        return Cost(time.monotonic() - began_at, cpu_s([process]) - cpu)
