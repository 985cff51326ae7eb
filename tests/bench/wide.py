"""``make bench-wide``: statements on tables of 100, 300 and 1,000 columns, beside plain ORC of the same rows.

A figure is the median of some runs, in CPU seconds of the JVM and the client. Ten times the columns are to cost at most
twelve times as much; the last column says how many times it is.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from hive_acid.format.orc.compression import DEFAULT_COMPRESSION
from hive_acid.spark import AcidSession
from tests.bench.machine import cpu_s
from tests.bench.session import bench

ROWS = 2_000
KINDS = {
    "text": ("string",),
    "bigint": ("bigint",),
    "mixed": ("string", "bigint", "varchar(20)", "char(8)", "decimal(12,2)", "double", "date", "int"),
}
VALUES = {
    "bigint": "id * {0}",
    "double": "id / {0}",
    "decimal(12,2)": "cast(id % 1000 + {0} AS decimal(12,2))",
    "date": "date_add(date'2020-01-01', int((id + {0}) % 500))",
    "int": "int(id % 1000 + {0})",
}
TEXT = "concat('text ', (id + {0}) % 97)"
STEPS = ("plain write", "INSERT", "plain read", "SELECT", "UPDATE", "DELETE", "MERGE")


def main() -> int:
    """Print a table for each kind of columns."""
    parser = argparse.ArgumentParser(prog="make bench-wide", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--columns", default="100,300,1000", help="numbers of columns (100,300,1000)")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"of {', '.join(KINDS)} (all)")
    parser.add_argument("--rounds", type=int, default=3, help="measured runs of each statement, after another (3)")
    options = parser.parse_args()
    widths = [int(width) for width in options.columns.split(",")]
    with bench() as (acid, session, work):
        for kind in options.kinds.split(","):
            _print(kind, widths, [_costs(acid, session, kind, width, options.rounds, work) for width in widths])
    return 0


def _print(kind: str, widths: list[int], costs: list[dict[str, float]]) -> None:
    """A line for each statement: CPU seconds by width, and the last as so many times the first."""
    print(f"| {kind}, CPU s | {' | '.join(f'{width:,} columns' for width in widths)} | × |")
    print(f"|---|{'---|' * (len(widths) + 1)}")
    for step in STEPS:
        figures = [found[step] for found in costs]
        print(f"| {step} | {' | '.join(f'{found:.2f}' for found in figures)} | {figures[-1] / figures[0]:.1f} |")
    print(flush=True)


def _costs(acid: AcidSession, spark: SparkSession, kind: str, width: int, rounds: int, work: Path) -> dict[str, float]:
    kinds = KINDS[kind]
    columns = {f"c{at}": kinds[at % len(kinds)] for at in range(width)}
    name, plain = f"bench.{kind}_{width}", str(work / f"{kind}_{width}")
    acid.create_table(name, {"id": "bigint", **columns})
    found: dict[str, list[float]] = {step: [] for step in STEPS}
    for round_ in range(rounds + 1):
        for step, run in _steps(acid, spark, columns, name, plain, round_):
            before = cpu_s([os.getpid()])
            run()
            found[step].append(cpu_s([os.getpid()]) - before)
    acid.drop_table(name)
    return {step: statistics.median(costs[1:]) for step, costs in found.items()}


def _steps(
    acid: AcidSession, spark: SparkSession, columns: dict[str, str], name: str, plain: str, round_: int
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each statement of a round, on a table with the rows of this round alone: 2,000 are written and read."""
    first = round_ * ROWS
    new = _rows(spark, columns, first, ROWS)
    writer = new.write.mode("overwrite").option("compression", DEFAULT_COMPRESSION)
    yield "plain write", lambda: writer.orc(plain)
    acid.delete(name, f"id < {first}")
    yield "INSERT", lambda: acid.insert(name, new)
    yield "plain read", lambda: _read(spark.read.orc(plain))
    yield "SELECT", lambda: _read(acid.table(name))
    yield "UPDATE", lambda: acid.update(name, {"c0": "c0", "c1": "c1"}, f"id = {first + 17}")
    yield "DELETE", lambda: acid.delete(name, f"id = {first + 18}")
    source = _rows(spark, columns, first + ROWS - 10, 20)
    merging = acid.merge(name, source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    yield "MERGE", merging.execute


def _rows(spark: SparkSession, columns: dict[str, str], first: int, number: int) -> DataFrame:
    values = (f"{VALUES.get(kind, TEXT).format(at + 1)} AS {name}" for at, (name, kind) in enumerate(columns.items()))
    return spark.range(first, first + number, numPartitions=1).selectExpr("id", *values)


def _read(frame: DataFrame) -> None:
    """Every column of every row is read, nothing is kept."""
    frame.write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    sys.exit(main())
