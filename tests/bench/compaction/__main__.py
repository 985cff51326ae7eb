"""``make bench-compaction``: compactions by the real server and its Spark, beside plain ORC rewrites.

One large table, with a base, ten deltas and 1 % of its rows deleted: a minor compaction beside reading and writing the
same files of its deltas as plain ORC, a major one beside those of the whole table; and both beside the same rows as
plain ORC, without ids. Then many small partitions, queued at once, and behind them one request of another table:
compactions per minute, and how long that one had to wait. And what readings and compactions take of small deltas and of
deleted rows, by which `tests.compaction.simulator` reckons.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import functions as F

import hive_acid.spark
from hive_acid.demo.spark import start
from tests.bench.calls.servers import Machine
from tests.bench.compaction import reading
from tests.bench.compaction.bench import DELTAS, IN_DELTAS, UNDER_WAY, Bench, Cost


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
    before = sum(one.state not in UNDER_WAY for one in bench.shown("bench.small"))
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
    parser.add_argument("--only", choices=["large", "many", "reading"], help="one part alone")
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
                    if options.only in (None, "large"):
                        large(bench, options.rows, options.rounds)
                    if options.only in (None, "many"):
                        many(bench, options.partitions)
                    if options.only in (None, "reading"):
                        reading.measure(bench, options.rounds)
            finally:
                spark.stop()
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
