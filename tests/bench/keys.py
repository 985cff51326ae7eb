"""``make bench-keys``: a table with a primary key beside the same one without: load, upsert of 1 %, look-up by key.

CPU seconds are of the JVM and the client, each the median of some runs; rows come in no order. What a look-up reads is
counted in rows that Spark's scan gives out, which are those of the row groups that it has read.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from hive_acid.spark import AcidSession
from tests.bench.machine import cpu_s
from tests.bench.session import bench
from tests.spark.plans import scans

COLUMNS = "id bigint, customer bigint, city string, total decimal(12,2), day date"
TABLES = {"bench.plain": "", "bench.keyed": ", PRIMARY KEY (id) ENFORCED"}
LOOK_UPS = 12
GROUP = 10_000
"""Rows of a row group."""


def main() -> int:
    """Print a line for each measured step."""
    parser = argparse.ArgumentParser(prog="make bench-keys", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the table (1,000,000)")
    parser.add_argument("--rounds", type=int, default=3, help="measured runs of each step, after another (3)")
    options = parser.parse_args()
    with bench() as (acid, session, _):
        found = _costs(acid, session, options.rows, options.rounds)
    print(f"| {options.rows:,} rows | without a key | with a key |\n|---|---|---|")
    for step in found["bench.plain"]:
        print(f"| {step} | {' | '.join(found[name][step] for name in TABLES)} |")
    return 0


def _costs(acid: AcidSession, spark: SparkSession, rows: int, rounds: int) -> dict[str, dict[str, str]]:
    """Of each table what each step costs; the tables take turns, so that none has the colder JVM."""
    found: dict[tuple[str, str], list[float]] = {}

    def measured(name: str, step: str, run: Callable[[], object]) -> None:
        before = cpu_s([os.getpid()])
        run()
        found.setdefault((name, step), []).append(cpu_s([os.getpid()]) - before)

    for round_ in range(rounds + 1):
        for name, key in TABLES.items():
            acid.sql(f"DROP TABLE IF EXISTS {name}")
            acid.sql(f"CREATE TABLE {name} ({COLUMNS}{key})")
            measured(name, "load, CPU s", partial(acid.insert, name, _rows(spark, rows, 0, rows)))
            changed = _rows(spark, rows, rows - rows // 200 + round_, rows // 100)
            measured(name, "upsert of 1 %, half of it new, CPU s", partial(_upsert, acid, name, changed))
    told: dict[str, dict[str, str]] = {name: {} for name in TABLES}
    for (name, step), costs in found.items():
        told[name][step] = f"{statistics.median(costs[1:]):.2f}"
    wanted = range(7, rows, rows // (LOOK_UPS + 1))
    looked_up: dict[str, list[float]] = {name: [] for name in TABLES}
    read: dict[str, list[float]] = {name: [] for name in TABLES}
    for id_ in wanted:
        for name in TABLES:
            before = cpu_s([os.getpid()])
            query = f"SELECT * FROM {name} WHERE id = {id_}"
            acid.sql(query).collect()
            looked_up[name].append(cpu_s([os.getpid()]) - before)
            read[name].append(sum(scan.rows for scan in scans(acid.sql(query))) / GROUP)
    for name in TABLES:
        told[name]["look-up by key, CPU s"] = f"{statistics.median(looked_up[name][2:]):.2f}"
        told[name]["row groups that it reads"] = f"{statistics.mean(read[name]):.1f} of {rows * 1.005 / GROUP:.0f}"
    return told


def _rows(spark: SparkSession, rows: int, first: int, number: int) -> DataFrame:
    """Rows of the next ids from `first` on, in no order."""
    frame = spark.range(first, first + number).selectExpr(
        "id",
        f"id * 7919 % {rows} AS customer",
        "concat('city ', id % 997) AS city",
        "cast(id % 100000 / 100 AS decimal(12,2)) AS total",
        "date_add(date'2020-01-01', int(id % 1000)) AS day",
    )
    return frame.repartition(2, "city").sortWithinPartitions("customer")


def _upsert(acid: AcidSession, name: str, changed: DataFrame) -> None:
    if TABLES[name]:
        acid.upsert(name, changed)
    else:
        acid.merge(name, changed, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()


if __name__ == "__main__":
    sys.exit(main())
