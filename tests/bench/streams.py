"""``make bench-streams``: commits and rows per second of streams, beside plain ORC files that hold the same rows.

Each figure is a median over rounds that alternate between the stream and the plain files; ratios are of the time and of
the CPU time that this process and its JVM take for a commit, without the metastore's.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import orc

import hive_acid.spark
from hive_acid.catalog.table import Column, Table
from hive_acid.connection import Connection, connect
from hive_acid.demo import spark
from hive_acid.format.orc.compression import DEFAULT_COMPRESSION
from hive_acid.streaming import (
    ArrowWriter,
    DelimitedWriter,
    JsonWriter,
    RecordWriter,
    StreamingConnection,
    keep_freed_memory,
)
from tests.bench.calls.servers import Machine, Server
from tests.bench.machine import cpu_s

COLUMNS = {
    "id": "bigint", "customer": "int", "day": "string", "status": "string", "price": "double", "amount": "int",
    "city": "string", "note": "string",
}  # fmt: skip
SPARK_SCHEMA = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())


class Rate(NamedTuple):
    """What was done in how many seconds, and in how many of a processor."""

    commits: int
    rows: int
    seconds: float
    cpu_seconds: float


class Bench:
    """The metastore, a directory, and how often to measure."""

    def __init__(self, server: Server, connection: Connection, work: Path, rounds: int) -> None:
        self.connection = connection
        self.work = work
        self._server = server
        self._rounds = rounds

    def timed(self, commits: int, rows: int, do: Callable[[], None]) -> Rate:
        """Do something once."""
        started, busy = time.monotonic(), self._busy_s()
        do()
        return Rate(commits, rows, time.monotonic() - started, self._busy_s() - busy)

    def line(self, what: str, stream: Callable[[], Rate], plain: Callable[[], Rate]) -> str:
        """Both in turns, and what came of it."""
        measured = [(stream(), plain()) for _ in range(self._rounds + 1)][1:]
        ours, theirs = (_median([pair[at] for pair in measured]) for at in (0, 1))
        of_time, of_cpu = (
            getattr(ours, name) / ours.commits / max(getattr(theirs, name) / theirs.commits, 1e-9)
            for name in ("seconds", "cpu_seconds")
        )
        return (
            f"{what}: {ours.commits / ours.seconds:,.1f} commits/s, {ours.rows / ours.seconds:,.0f} rows/s; plain ORC "
            f"{theirs.commits / theirs.seconds:,.1f} files/s, {theirs.rows / theirs.seconds:,.0f} rows/s; "
            f"a commit takes {of_time:.2f} × the time of a file, {of_cpu:.2f} × its CPU time"
        )

    def _busy_s(self) -> float:
        return cpu_s([os.getpid()]) - sum(self._server.cpu_s())


def main() -> int:
    """Print the rates."""
    parser = argparse.ArgumentParser(prog="make bench-streams", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each, after one that warms up (5)")
    parser.add_argument("--only", choices=["client", "sink"], help="one of the two: without Spark, or its sink")
    options = parser.parse_args()
    keep_freed_memory()
    work = Path(tempfile.mkdtemp(prefix="hive-acid-bench-"))
    try:
        with Machine(work) as machine, machine.server() as server, connect(server.uri) as connection:
            connection.create_database("bench")
            bench = Bench(server, connection, work, options.rounds)
            parts = {"client": _client_lines, "sink": _sink_lines}
            for name, lines in parts.items():
                if options.only in (None, name):
                    for line in lines(bench):
                        print(line, flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return 0


# --- without Spark --------------------------------------------------------------------------------


def _client_lines(bench: Bench) -> Iterator[str]:
    for rows, commits in ((100, 40), (10_000, 10), (200_000, 2)):
        table = _rows(rows)
        plain = _plain_files(bench, table, commits)
        for threads in (1, 4) if rows < 100_000 else (1,):
            with _table(bench.connection) as name:
                stream = _stream_rounds(bench, name, ArrowWriter(), table, rows, commits, threads)
                yield bench.line(f"Arrow, {rows:,} rows a commit, {threads} at a time", stream, plain)
    table = _rows(10_000)
    delimited = "\n".join(",".join(map(str, row.values())) for row in table.to_pylist()).encode()
    lines = "\n".join(json.dumps(row) for row in table.to_pylist()).encode()
    for kind, writer, records in (
        ("delimited", DelimitedWriter(","), delimited), ("JSON", JsonWriter(), lines)
    ):  # fmt: skip
        with _table(bench.connection) as name:
            stream = _stream_rounds(bench, name, writer, records, 10_000, 10, 1)
            yield bench.line(f"{kind}, 10,000 rows a commit, 1 at a time", stream, _plain_files(bench, table, 10))


def _stream_rounds(
    bench: Bench, name: str, writer: RecordWriter, records: Any, rows: int, commits: int, threads: int
) -> Callable[[], Rate]:
    def one(stream: StreamingConnection) -> None:
        for _ in range(commits):
            stream.begin_transaction()
            stream.write(records)
            stream.commit_transaction()

    def run() -> Rate:
        streams = [
            StreamingConnection(bench.connection, name, writer, transaction_batch_size=10) for _ in range(threads)
        ]
        workers = [threading.Thread(target=one, args=(stream,)) for stream in streams]

        def work() -> None:
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()

        rate = bench.timed(commits * threads, commits * threads * rows, work)
        for stream in streams:
            stream.close()
        return rate

    return run


def _plain_files(bench: Bench, table: pa.Table, commits: int) -> Callable[[], Rate]:
    def run() -> Rate:
        directory = Path(tempfile.mkdtemp(dir=bench.work))

        def work() -> None:
            for number in range(commits):
                orc.write_table(
                    table, directory / f"{number}.orc", compression=DEFAULT_COMPRESSION,
                    compression_block_size=256 * 1024, dictionary_key_size_threshold=0.8,
                )  # fmt: skip

        rate = bench.timed(commits, commits * table.num_rows, work)
        shutil.rmtree(directory)
        return rate

    return run


# --- the sink -------------------------------------------------------------------------------------


def _sink_lines(bench: Bench) -> Iterator[str]:
    work = bench.work
    session = spark.start("hive-acid bench", work)
    acid = hive_acid.spark.session(session, bench.connection)
    try:
        for rows, batches in ((100, 10), (50_000, 5)):
            arriving = work / f"arriving-{rows}"
            arriving.mkdir()
            for number in range(batches):
                orc.write_table(_rows(rows), arriving / f"{number}.orc")
            with _table(bench.connection) as name:
                numbers = iter(range(1_000))
                plain = str(work / f"plain-{rows}")

                def sunk(name: str = name, numbers: Iterator[int] = numbers) -> Callable[[Any, int], None]:
                    return acid.sink(name, query=f"q{next(numbers)}")

                def plainly(to: str = plain) -> Callable[[Any, int], None]:
                    return lambda frame, _: (
                        frame.write.mode("append").option("compression", DEFAULT_COMPRESSION).orc(to)
                    )

                stream = _query_rounds(bench, session, arriving, sunk, rows, batches)
                beside = _query_rounds(bench, session, arriving, plainly, rows, batches)
                yield bench.line(f"sink, {rows:,} rows a batch", stream, beside)
    finally:
        acid.close()
        session.stop()


def _query_rounds(
    bench: Bench, session: Any, arriving: Path, batch: Callable[[], Callable[[Any, int], None]], rows: int, batches: int
) -> Callable[[], Rate]:
    def run() -> Rate:
        read = session.readStream.schema(SPARK_SCHEMA).option("maxFilesPerTrigger", 1).orc(str(arriving))
        noted = tempfile.mkdtemp(dir=bench.work)
        writer = read.writeStream.foreachBatch(batch()).option("checkpointLocation", noted).trigger(availableNow=True)
        return bench.timed(batches, batches * rows, lambda: writer.start().awaitTermination())

    return run


# --- both -----------------------------------------------------------------------------------------


def _median(rates: Sequence[Rate]) -> Rate:
    return rates[0]._replace(
        seconds=statistics.median(rate.seconds for rate in rates),
        cpu_seconds=statistics.median(rate.cpu_seconds for rate in rates),
    )


def _rows(count: int) -> pa.Table:
    numbers = range(count)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "customer": pa.array((n * 7919 % 50_000 for n in numbers), pa.int32()),
            "day": pa.array(f"2024-{n % 12 + 1:02d}-{n % 28 + 1:02d}" for n in numbers),
            "status": pa.array(("open", "paid", "sent", "back")[n % 4] for n in numbers),
            "price": pa.array(n * 37 % 10_000 / 100 for n in numbers),
            "amount": pa.array((n % 9 + 1 for n in numbers), pa.int32()),
            "city": pa.array(f"city {n * 31 % 997}" for n in numbers),
            "note": pa.array(f"order {n * 2_654_435_761 % 4_294_967_296:x} of a customer" for n in numbers),
        }
    )


@contextmanager
def _table(connection: Connection) -> Iterator[str]:
    columns = tuple(Column(name, kind) for name, kind in COLUMNS.items())
    connection.create_table(Table("bench", "t", columns, parameters={"transactional": "true"}))
    yield "bench.t"
    connection.drop_table("bench", "t")


if __name__ == "__main__":
    sys.exit(main())
