"""``make bench-commits``: thousands of commits into one table that the server compacts meanwhile, and what each takes.

Commits are those of a stream, of 100 rows each. Each tenth of them has a line: the median and the 95th percentile of a
commit, and how many directories of data the table had when it ended. The figure is the last tenth's median beside the
second's: the first one warms up.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa

from hive_acid.catalog.table import Column, Table
from hive_acid.connection import connect
from hive_acid.streaming import ArrowWriter, StreamingConnection, keep_freed_memory
from tests.bench.calls.servers import Machine

ROWS = 100
SETTINGS = {
    "hive.compactor.initiator.on": "true",
    "hive.compactor.check.interval": "10s",
    "hive.compactor.cleaner.run.interval": "5s",
}
"""As by default, but sooner: Hive looks for work each five minutes, which are as long as the whole run."""


def main() -> int:
    """Print a line for each tenth, and the ratio."""
    parser = argparse.ArgumentParser(prog="make bench-commits", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--commits", type=int, default=10_000, help="commits, one after the other (10,000)")
    options = parser.parse_args()
    keep_freed_memory()
    work = Path(tempfile.mkdtemp(prefix="hive-acid-bench-"))
    try:
        with Machine(work) as machine, machine.daemon(machine.fresh_database(), SETTINGS) as daemon:
            _run(daemon.uri, max(options.commits // 10, 1))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0


def _run(uri: str, each: int) -> None:
    medians = []
    with connect(uri) as connection:
        connection.create_database("bench")
        columns = Column("id", "bigint"), Column("note", "string")
        connection.create_table(Table("bench", "t", columns, parameters={"transactional": "true"}))
        location = Path(connection.table("bench", "t").location.removeprefix("file:"))
        rows = pa.table({"id": pa.array(range(ROWS), pa.int64()), "note": [f"note {n}" for n in range(ROWS)]})
        with StreamingConnection(connection, "bench.t", ArrowWriter(), transaction_batch_size=10) as stream:
            for tenth in range(1, 11):
                times = [_commit_ms(stream, rows) for _ in range(each)]
                medians.append(statistics.median(times))
                directories = sum(1 for found in location.iterdir() if found.name.startswith(("base_", "delta_")))
                print(
                    f"{tenth * each:,} commits: {medians[-1]:.2f} ms each, 95 % below "
                    f"{statistics.quantiles(times, n=20)[-1]:.2f} ms; {directories} directories",
                    flush=True,
                )
    print(f"The last tenth takes {medians[-1] / medians[1]:.2f} times as long as the second.")


def _commit_ms(stream: StreamingConnection, rows: pa.Table) -> float:
    began = time.perf_counter()
    stream.begin_transaction()
    stream.write(rows)
    stream.commit_transaction()
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    sys.exit(main())
