"""The life of one table: loaded, read, changed, read, compacted, read; each step timed, each state checked."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.bench.data.contestants import Contestant
from tests.bench.data.orders import COLUMNS, checksum, orders, products, upserts
from tests.bench.machine import peak_memory_mb, reset_peak_memory

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
CHANGES = ("UPDATE 1 %", "DELETE 1 %", "MERGE 1 %")


@dataclass(frozen=True)
class Cost:
    """What one step took: wall time, CPU time of the JVM, and of this process, which is its client; and memory.

    The peaks are of resident memory during the step, in MB; the JVM's has whatever its heap has grown to before.
    """

    wall_s: float
    jvm_cpu_s: float
    client_cpu_s: float
    jvm_peak_mb: float = 0.0
    client_peak_mb: float = 0.0

    @property
    def cpu_s(self) -> float:
        return self.jvm_cpu_s + self.client_cpu_s


class State(NamedTuple):
    """What a table is at some stage: its rows and a checksum of them, and the sizes in bytes of the files it has."""

    rows: int
    checksum: str
    files: list[int]


class Clock:
    """Times a step by the wall, and by the CPU of the JVM and of this process, which is its client."""

    def __init__(self, jvm: int) -> None:
        self._jvm = jvm
        self._stat = Path(f"/proc/{jvm}/stat")

    def cost(self, step: Callable[[], object]) -> Cost:
        processes = self._jvm, os.getpid()
        for process in processes:
            reset_peak_memory(process)
        jvm_s, client_s, started = self._jvm_cpu_s(), time.process_time(), time.monotonic()
        step()
        took = time.monotonic() - started, self._jvm_cpu_s() - jvm_s, time.process_time() - client_s
        return Cost(*took, *map(peak_memory_mb, processes))

    def _jvm_cpu_s(self) -> float:
        fields = self._stat.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def live(
    spark: SparkSession, contestant: Contestant, clock: Clock, rows: int, *, reads: int, changes: int
) -> Iterator[tuple[str, Cost | State]]:
    """One life with so many runs of each read and change; yields (step, cost), and (stage, its state) for checks."""
    contestant.new_table()
    source = orders(spark, rows)
    yield "load", clock.cost(lambda: contestant.load(source))
    yield "loaded", _state(contestant)
    yield from _reads("clean", contestant, clock, rows, reads)
    if contestant.changes:
        yield from _changes(spark, contestant, clock, rows, changes)
        yield "changed", _state(contestant)
        yield from _reads("changed", contestant, clock, rows, reads)
    yield "compaction", clock.cost(contestant.compact)
    if contestant.changes:
        yield "compacted", _state(contestant)
    yield from _reads("compacted", contestant, clock, rows, reads)


def _state(contestant: Contestant) -> State:
    rows, total = checksum(contestant.frame())
    return State(rows, str(total), contestant.data_files())


def deleted(
    spark: SparkSession, contestant: Contestant, clock: Clock, rows: int, reads: int
) -> Iterator[tuple[str, Cost]]:
    """Reads with 1 % deleted everywhere, with 1 % deleted in a tenth of the files, and with 10 % deleted."""
    for step, where in (
        ("1 % deleted", "o_id % 100 = 13"),
        ("1 % in a tenth of the files", f"o_id < {rows // 10} AND o_id % 10 = 3"),
        ("10 % deleted", "o_id % 10 = 3"),
    ):
        contestant.new_table()
        for tenth in range(10):
            contestant.load(orders(spark, rows // 10, tenth * (rows // 10), tasks=2))
        if contestant.changes:
            contestant.delete(where)
        yield from _reads(step, contestant, clock, rows, reads)


def _changes(
    spark: SparkSession, contestant: Contestant, clock: Clock, rows: int, times: int
) -> Iterator[tuple[str, Cost]]:
    """Each change `times`, each time of other rows, after once untimed: its plans and classes are known then."""
    for turn in range(times + 1):
        source = upserts(spark, rows, turn).cache()
        source.count()
        update, delete = f"o_id % 100 = {10 + turn}", f"o_id % 100 = {20 + turn}"
        costs = (
            ("UPDATE 1 %", clock.cost(lambda where=update: contestant.update(where))),
            ("DELETE 1 %", clock.cost(lambda where=delete: contestant.delete(where))),
            ("MERGE 1 %", clock.cost(lambda frame=source: contestant.merge(frame))),
        )
        source.unpersist()
        if turn:
            yield from costs


def _reads(stage: str, contestant: Contestant, clock: Clock, rows: int, times: int) -> Iterator[tuple[str, Cost]]:
    low, brand = rows // 2, products(contestant.spark, contestant.root).where("brand = 7")
    span = f"o_id BETWEEN {low} AND {low + rows // 1000 - 1}"
    steps: dict[str, Callable[[], object]] = {
        "all columns": lambda: _scan(contestant.frame()),
        "two columns": lambda: contestant.frame().agg(F.sum("quantity"), F.max("tax")).collect(),
        "count": contestant.count,
        "count, min and max by SQL": lambda: contestant.sql(
            f"SELECT count(*), min(o_id), max(o_id) FROM {contestant.full_name}"
        ).collect(),
        "key range": lambda: _scan(contestant.frame(span)),
        "join with a small dimension": lambda: (
            contestant.frame().join(brand, "product").agg(F.sum("quantity")).collect()
        ),
    }
    for name, step in steps.items():
        step()
        for _ in range(times):
            yield f"{stage}: {name}", clock.cost(step)


def _scan(frame: DataFrame) -> None:
    """Every column of every row is read and hashed."""
    frame.agg(F.bit_xor(F.xxhash64(*COLUMNS))).collect()
