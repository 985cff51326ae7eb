"""``make bench-compaction``: compactions by the real server and its Spark, beside plain ORC rewrites.

One large table, with a base, ten deltas and 1 % of its rows deleted: a minor compaction beside reading and writing the
same files of its deltas as plain ORC, a major one beside those of the whole table; and both beside the same rows as
plain ORC, without ids. Then many small partitions, queued at once, and behind them one request of another table:
compactions per minute, and how long that one had to wait.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.demo.spark import start
from hive_acid.errors import CompactionFailedError
from hive_acid.format.orc.compression import DEFAULT_COMPRESSION
from hive_acid.spark import AcidSession
from hive_acid.wire import ttypes
from tests.bench.calls.servers import Machine
from tests.bench.data.orders import COLUMNS, orders
from tests.bench.machine import cpu_s
from tests.waiting import until

DELTAS = 10
IN_DELTAS = 5
"""One row in so many is in the deltas, the others in the base."""

_UNDER_WAY = ("initiated", "working")
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

    def request(self, table: str, kind: str, partitions: tuple[str, ...] = ()) -> list[int]:
        """Queue compactions."""
        return self.acid.connection.compact(*table.split("."), kind, partitions)  # type: ignore[call-arg]

    def wait(self, table: str, ids: list[int]) -> list[Any]:
        """Wait until all of `ids` have merged their files; what the server shows of them."""

        def merged() -> list[Any]:
            shown = [one for one in self.shown(table) if one.id in set(ids)]
            if failed := [one for one in shown if one.state not in (*_UNDER_WAY, *_MERGED)]:
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


def large(bench: Bench, rows: int, rounds: int) -> None:
    """Minor and major compactions of a large table."""
    in_base = rows - rows // IN_DELTAS
    bench.plain("all", rows)
    bench.plain("deltas", rows - in_base, in_base)
    costs: dict[tuple[str, str], list[Cost]] = {}
    for turn in range(rounds + 1):
        # The first round warms up both JVMs, on fewer rows.
        of_round = rows if turn else max(rows // 10, 1000)
        for kind, name in (("minor", "deltas"), ("major", "all")):
            table = f"bench.{kind}{turn}"
            bench.load(table, of_round)
            costs_of = {
                "same bytes": bench.same_bytes(table, deltas=kind == "minor"),
                "same rows": bench.same_rows(name),
                "compaction": bench.compacted(table, kind),
            }
            bench.acid.drop_table(table)
            for what, cost in costs_of.items() if turn else ():
                costs.setdefault((kind, what), []).append(cost)
    print(f"\n{rows:,} rows, a base and {DELTAS} deltas, 1 % deleted; medians of {rounds}: CPU s / wall s")
    print("| kind | compaction | plain ORC of the same bytes (ratios to it) | plain ORC of the same rows (ratios) |")
    print("|---|---|---|---|")
    for kind in ("minor", "major"):
        own = _median(costs[kind, "compaction"])
        beside = (_median(costs[kind, what]) for what in ("same bytes", "same rows"))
        cells = (
            f"{plain.cpu_s:.2f} / {plain.wall_s:.2f} ({own.cpu_s / plain.cpu_s:.2f} / {own.wall_s / plain.wall_s:.2f})"
            for plain in beside
        )
        print(f"| {kind} | {own.cpu_s:.2f} / {own.wall_s:.2f} | {' | '.join(cells)} |")


def many(bench: Bench, partitions: int) -> None:
    """Many small partitions at once, and one table behind them."""
    bench.acid.create_table("bench.small", {"id": "bigint", "text": "string"}, partitioned_by={"p": "int"})
    bench.acid.create_table("bench.other", {"id": "bigint", "text": "string"})
    for _ in range(2):
        rows = bench.spark.range(partitions * 20).selectExpr("id", "concat('text ', id) text")
        bench.acid.insert("bench.small", rows.withColumn("p", (F.col("id") % partitions).cast("int")))
        bench.acid.insert("bench.other", rows.limit(100))
    names = tuple(bench.acid.connection.partitions(bench.acid.connection.table("bench", "small")))
    began_at = time.monotonic()
    ids = bench.request("bench.small", "major", names)
    other = bench.request("bench.other", "major")
    queued_at = time.monotonic()
    bench.wait("bench.other", other)
    waited_s = time.monotonic() - queued_at
    before = sum(one.state not in _UNDER_WAY for one in bench.shown("bench.small"))
    bench.wait("bench.small", ids)
    seconds = time.monotonic() - began_at
    print(f"\n{len(ids):,} partitions with two small deltas, queued at once: {seconds:.0f} s,")
    print(f"{len(ids) / seconds * 60:.0f} compactions per minute; one of another table, queued behind them, was done")
    print(f"{waited_s:.1f} s later, when {before:,} of them were")


def _median(costs: list[Cost]) -> Cost:
    return Cost(*(statistics.median(column) for column in zip(*costs, strict=True)))


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-compaction", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=5_000_000, help="rows of the large table (5,000,000)")
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds, after one that warms up (3)")
    parser.add_argument("--partitions", type=int, default=1000, help="small partitions (1,000)")
    parser.add_argument("--slots", type=int, default=1, help="compactions at a time (1)")
    parser.add_argument("--only", choices=["large", "many"], help="one half alone")
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="hive-acid-bench-"))
    settings = {
        "metastore.compactor.initiator.on": "false",
        "metastore.compactor.worker.threads": str(options.slots),
        "hive.compactor.worker.sleep.time": "50ms",
    }
    try:
        with Machine(work) as machine, machine.daemon(machine.fresh_database(), settings) as daemon:
            spark = start("hive-acid bench", work, memory="4g")
            try:
                with hive_acid.spark.session(spark, daemon.uri) as acid:
                    acid.create_database("bench")
                    bench = Bench(spark, acid, daemon.pid, work)
                    if options.only != "many":
                        large(bench, options.rows, options.rounds)
                    if options.only != "large":
                        many(bench, options.partitions)
            finally:
                spark.stop()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
