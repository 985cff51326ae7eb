"""What a reader pays for files, delete events and bytes, and a compaction for jobs, files and bytes: the figures of
`tests.compaction.simulator.costs`, in CPU seconds.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import functions as F

from tests.bench.compaction.bench import Bench, Cost
from tests.bench.data.orders import COLUMNS, orders

_ROWS = 2_000_000
_SMALL = 1_000
"""Rows of a small delta."""
_WARM_UP = 2
"""Readings that do not count."""


class Place(NamedTuple):
    """What was read, or compacted, and what it took."""

    what: str
    cost: Cost


def measure(bench: Bench, rounds: int) -> None:
    """Print what each reading and each compaction takes."""
    for _ in range(2):
        _after_deletes(bench, 100, 1, 1)  # warms up
        _after_an_insert(bench, 1)
    found = [place for deltas in (20, 100) for place in _small_deltas(bench, deltas, rounds)]
    for part, statements in ((0, 0), (1000, 1), (1000, 20), (100, 1), (10, 1)):
        found += _after_deletes(bench, part, statements, rounds)
    found.append(_after_an_insert(bench, rounds))
    print("\n| what | CPU s | wall s |\n|---|---|---|")
    for what, cost in found:
        print(f"| {what} | {cost.cpu_s:.3f} | {cost.wall_s:.3f} |")


def _small_deltas(bench: Bench, deltas: int, rounds: int) -> list[Place]:
    """A table of small deltas alone: reading and merging them."""
    what = f"{deltas} deltas of {_SMALL:,} rows"
    merged: list[Cost] = []
    read: list[Place] = []
    for turn in range(2):
        table = f"bench.small{deltas}"
        bench.acid.create_table(table, COLUMNS)
        for delta in range(deltas):
            bench.acid.insert(table, orders(bench.spark, _SMALL, delta * _SMALL, tasks=1))
        if turn:
            read = _read(bench, table, what, rounds)
        merged.append(bench.compacted(table, "minor"))
        bench.acid.drop_table(table)
    return [*read, Place(f"minor compaction of {what}", merged[-1])]


def _after_deletes(bench: Bench, part: int, statements: int, rounds: int) -> list[Place]:
    """A large base of which one row in `part` is deleted, a little by each statement or much by one."""
    table = "bench.deleted"
    bench.acid.create_table(table, COLUMNS)
    bench.acid.overwrite(table, orders(bench.spark, _ROWS))
    for number in range(statements):
        bench.acid.delete(table, f"o_id % {part * statements} = {number}")
    events = _ROWS // part if part else 0
    what = f"{_ROWS:,} rows, {events:,} deleted by {statements} statements"
    found = _read(bench, table, what, rounds)
    if statements > 1:
        found.append(Place(f"minor compaction of {what}", bench.compacted(table, "minor")))
    if statements:
        found.append(Place(f"major compaction of {what}", bench.compacted(table, "major")))
    bench.acid.drop_table(table)
    return found


def _after_an_insert(bench: Bench, rounds: int) -> Place:
    """A large base with a small delta, again and again: the base's files are copied."""
    table = "bench.clean"
    bench.acid.create_table(table, COLUMNS)
    bench.acid.overwrite(table, orders(bench.spark, _ROWS))
    costs = []
    for turn in range(rounds):
        bench.acid.insert(table, orders(bench.spark, _SMALL, _ROWS + turn * _SMALL, tasks=1))
        costs.append(bench.compacted(table, "major"))
    bench.acid.drop_table(table)
    return Place(f"major compaction of {_ROWS:,} rows and {_SMALL:,} more in a delta", _middle(costs))


def _read(bench: Bench, table: str, what: str, rounds: int) -> list[Place]:
    """All columns and two of them; a row is inserted before each, so that each is planned anew."""
    return [
        _median(bench, table, ["*"], f"all columns of {what}", rounds),
        _median(bench, table, ["customer", "price"], f"two columns of {what}", rounds),
    ]


def _median(bench: Bench, table: str, columns: list[str], what: str, rounds: int) -> Place:
    costs = []
    for turn in range(rounds + _WARM_UP):
        bench.acid.insert(table, orders(bench.spark, 1, -1 - turn, tasks=1))
        cost = bench.read(lambda: bench.acid.table(table).select(F.hash(*columns).alias("h")).agg(F.sum("h")).collect())
        if turn >= _WARM_UP:
            costs.append(cost)
    return Place(what, _middle(costs))


def _middle(costs: Sequence[Cost]) -> Cost:
    return Cost(*(statistics.median(column) for column in zip(*costs, strict=True)))
