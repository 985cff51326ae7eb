"""Statements that the life of a table lacks: conditions of all types, forms of MERGE, small ones, first ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import partial

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.bench.data.contestants import Contestant
from tests.bench.data.lifecycle import Clock, Cost
from tests.bench.data.orders import COLUMNS, orders, upserts

SMALL_ROWS = 1_000
FIRST = ("SELECT", "UPDATE 1 %", "MERGE 1 %")

_DAY, _DAYS = date(2020, 1, 1), 15
_CONDITIONS: dict[str, Callable[[int], str]] = {
    "whole number": lambda turn: f"o_id % 100 = {turn}",
    "date": lambda turn: f"ordered BETWEEN DATE '{_day(turn)}' AND DATE '{_day(turn + 1) - timedelta(1)}'",
    "date as text": lambda turn: f"ordered >= '{_day(turn)}' AND ordered < '{_day(turn + 1)}'",
    "decimal": lambda turn: f"price >= {turn * 1000}.00 AND price < {turn * 1000 + 1000}.00",
    "hash": lambda turn: f"pmod(xxhash64(o_id, 77), 100) = {turn}",
    "text": lambda turn: f"clerk LIKE '%0{turn:02}'",
    "IN": lambda turn: f"product IN ({', '.join(str(200 * turn + number) for number in range(200))})",
    "sum": lambda turn: f"o_id + 1 >= {turn * 1000} AND pmod(o_id + 7, 100) = {turn}",
}
"""Each of about 1 % of the orders, by a turn from 0 to 98; the last may fail, since a sum may be too large."""


def conditions(
    spark: SparkSession, contestant: Contestant, clock: Clock, rows: int, times: int
) -> Iterator[tuple[str, Cost]]:
    """UPDATE and DELETE of 1 % by conditions of each kind, each time of other rows, after once untimed."""
    contestant.new_table()
    contestant.load(orders(spark, rows))
    for place, (kind, condition) in enumerate(_CONDITIONS.items()):
        for turn in range(times + 1):
            number = 10 + place * 11 + turn * 2
            changed, gone = condition(number), condition(number + 1)
            costs = (
                (f"UPDATE by {kind}", clock.cost(partial(contestant.update, changed))),
                (f"DELETE by {kind}", clock.cost(partial(contestant.delete, gone))),
            )
            if turn:
                yield from costs


def merges(
    spark: SparkSession, contestant: Contestant, clock: Clock, root: str, rows: int, times: int
) -> Iterator[tuple[str, Cost]]:
    """MERGE of 1 %: two columns or all of them, from a frame that is cached or from Parquet."""
    contestant.new_table()
    contestant.load(orders(spark, rows))
    for all_columns in (False, True):
        for turn in range(times + 1):
            made = upserts(spark, rows, turn + all_columns * 10)
            cached, path = made.cache(), f"{root}/{contestant.name}-source-{all_columns}-{turn}"
            cached.write.parquet(path)
            what = "all columns" if all_columns else "two columns"
            costs = []
            for source, frame in (("a cached frame", cached), ("Parquet", spark.read.parquet(path))):
                step = clock.cost(partial(contestant.merge, frame, all_columns=all_columns))
                costs.append((f"MERGE of {what} from {source}", step))
            cached.unpersist()
            if turn:
                yield from costs


def bulk(
    spark: SparkSession, contestant: Contestant, clock: Clock, root: str, rows: int, times: int
) -> Iterator[tuple[str, Cost]]:
    """MERGE of a third as many rows as there are, half of them new; and INSERT of queries. All read Parquet."""
    parquet = f"{root}/{contestant.name}-bulk"
    orders(spark, rows).write.parquet(f"{parquet}/all")
    orders(spark, rows // 3, rows - rows // 6).write.parquet(f"{parquet}/third")
    spark.range(0, rows, 3).withColumnRenamed("id", "key").write.parquet(f"{parquet}/keys")
    every, third, keys = (spark.read.parquet(f"{parquet}/{name}") for name in ("all", "third", "keys"))
    groups = [F.max(name).alias(name) for name in every.columns if name != "o_id"]
    queries = {
        "a third by a condition": every.where("o_id % 3 = 1"),
        "a third by a broadcast join": every.join(F.broadcast(keys), every["o_id"] == keys["key"]).drop("key"),
        "groups of all columns": every.groupBy("o_id").agg(*groups),
    }
    for turn in range(times + 1):
        costs = []
        for what, all_columns in (("two columns", False), ("all columns", True)):
            contestant.new_table()
            contestant.load(every)
            step = clock.cost(partial(contestant.merge, third, all_columns=all_columns))
            costs.append((f"MERGE of a third as many rows, {what}", step))
        for what, frame in queries.items():
            contestant.new_table()
            costs.append((f"INSERT of {what}", clock.cost(partial(contestant.load, frame.select(*COLUMNS)))))
        if turn:
            yield from costs


def small(spark: SparkSession, contestant: Contestant, clock: Clock, times: int) -> Iterator[tuple[str, Cost]]:
    """Statements on a table of `SMALL_ROWS` rows."""
    contestant.new_table()
    contestant.load(orders(spark, SMALL_ROWS, tasks=1))
    values = ", ".join(f"CAST({_value(name)} AS {kind})" for name, kind in COLUMNS.items())
    for turn in range(3 * times):
        source = upserts(spark, 20 * 100, 0).where(F.col("o_id") < SMALL_ROWS).cache()
        source.count()
        new = values.replace("{id}", str(SMALL_ROWS + turn))
        costs = (
            ("small: INSERT of a row", clock.cost(partial(contestant.insert_row, new))),
            ("small: UPDATE of a row", clock.cost(partial(contestant.update, f"o_id = {turn}"))),
            ("small: DELETE of a row", clock.cost(partial(contestant.delete, f"o_id = {500 + turn}"))),
            ("small: MERGE", clock.cost(partial(contestant.merge, source))),
            ("small: SELECT", clock.cost(lambda turn=turn: contestant.frame(f"o_id = {turn}").collect())),
        )
        source.unpersist()
        if turn >= times:
            yield from costs


def first(
    spark: SparkSession, contestant: Contestant, clock: Clock, rows: int, what: str
) -> Iterator[tuple[str, Cost]]:
    """The first statement of this session, on the table that another one has made."""
    contestant.attach()
    steps: dict[str, Callable[[], object]] = {
        "SELECT": lambda: contestant.frame("o_id = 7").collect(),
        "UPDATE 1 %": lambda: contestant.update("o_id % 100 = 11"),
        "MERGE 1 %": lambda: contestant.merge(upserts(spark, rows, 1)),
    }
    yield f"first of a session: {what}", clock.cost(steps[what])


def _value(name: str) -> str:
    return {
        "o_id": "{id}", "ordered": "date'2024-01-01'", "shipped": "timestamp'2024-01-01 00:00:00'",
        **dict.fromkeys(("status", "channel", "clerk", "comment"), "'new'"),
    }.get(name, "1")  # fmt: skip


def _day(turn: int) -> date:
    return _DAY + timedelta(turn * _DAYS)
