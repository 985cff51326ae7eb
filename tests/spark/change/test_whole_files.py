"""DELETE of all rows of files, which tails tell: the rows, and what reads them later, are those without skipping."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.errors import ColumnError, WriteConflictError
from hive_acid.spark import AcidSession
from hive_acid.spark.write.stage import SparkStaging
from tests.spark.by_spark import WRITTEN, limited
from tests.spark.checker import check_table, location_of
from tests.spark.compaction import compact_table

COLUMNS = {"id": "bigint", "n": "int", "s": "string", "d": "date", "m": "decimal(8,2)", "c": "char(3)"}
KEYS: tuple[dict[str, str], ...] = (
    {}, {"p": "int"}, {"p": "date"}, {"p": "string", "q": "int"}, {"p": "char(4)"}, {"p": "timestamp"},
)  # fmt: skip
OF_KEYS = {
    "int": ("CAST(nullif(id % 4, 3) AS int)", ("1", "2", "0")),
    "date": ("nullif(date_add(date'2024-02-28', CAST(id % 4 AS int)), date'2024-02-28')",
             ("date'2024-02-29'", "'2024-03-01'", "current_date() - 5")),
    "string": ("element_at(array('a b', 'ä/%', 'x', NULL), CAST(id % 4 AS int) + 1)", ("'x'", "'a b'", "'ä/%'")),
    "char(4)": ("element_at(array('a', 'bb', NULL), CAST(id % 3 AS int) + 1)", ("'a'", "'bb'", "'bb  '")),
    "timestamp": ("timestamp'2024-01-01 00:00:00' + make_interval(0, 0, 0, id % 3)",
                  ("timestamp'2024-01-02 00:00:00'",)),
}  # fmt: skip
ROWS = """
SELECT id, CAST(nullif(id % 7, 6) * 10 AS int) AS n, concat('s', id % 5) AS s,
  element_at(array(date'2020-01-01', date'9999-12-31', current_date(), NULL), CAST(id % 4 AS int) + 1) AS d,
  CAST(id / 4 AS decimal(8,2)) AS m, element_at(array('a', 'ab', NULL), CAST(id % 3 AS int) + 1) AS c
  {keys}
FROM range({first}, {last}, 1, {tasks})
"""
OF_COLUMNS = (
    "id >= {n}", "id < {n}", "id BETWEEN {n} AND {m}", "id >= {n} AND n IS NULL", "m < {n} / 4", "n IN (0, 10, NULL)",
    "d < date'2020-01-02'", "d <= current_date()", "c = 'ab'", "s >= 's0' AND id < {m}", "true",
    "NOT (id > {n} OR id IS NULL)",
)  # fmt: skip
OF_PLACES = (
    "{p} = {v}",
    "{p} IN ({v}, {w})",
    "{p} <> {v}",
    "{p} <= {v}",
    "{p} IS NULL",
    "{p} IS NOT NULL",
    "NOT {p} = {v}",
)


class World:
    """A table of random rows, changed at random, and its twin, which is changed by a session that reads all."""

    def __init__(self, acid: AcidSession, spark: SparkSession, seed: int) -> None:
        self.acid, self.spark, self.chance = acid, spark, random.Random(seed)
        self.everything = hive_acid.spark.session(spark, acid.connection, skipping=False)
        self.keys = self.chance.choice(KEYS)
        for name in ("d.t", "d.twin"):
            acid.create_table(name, COLUMNS, partitioned_by=self.keys)
        self.last = 0

    def insert(self) -> None:
        first = self.last
        self.last += self.chance.choice((3, 40, 300))
        keys = "".join(f", {OF_KEYS[kind][0]} AS {name}" for name, kind in self.keys.items())
        text = ROWS.format(keys=keys, first=first, last=self.last, tasks=self.chance.choice((1, 2, 3)))
        with limited(self.acid, **self.chance.choice(({}, WRITTEN))):
            for name in ("d.t", "d.twin"):
                self.acid.insert(name, self.spark.sql(text))

    def condition(self) -> str | None:
        n = self.chance.randrange(-5, self.last + 5)
        values = {"n": n, "m": self.chance.randrange(n, self.last + 9)}
        found = []
        for _ in range(self.chance.choice((1, 1, 2))):
            if self.keys and self.chance.random() < 0.6:
                name, kind = self.chance.choice(list(self.keys.items()))
                v, w = (self.chance.choice(OF_KEYS[kind][1]) for _ in range(2))
                found.append(self.chance.choice(OF_PLACES).format(p=name, v=v, w=w))
            else:
                found.append(self.chance.choice(OF_COLUMNS).format(**values))
        if self.chance.random() < 0.08:
            return None
        return self.chance.choice((" AND ", " OR ")).join(f"({of})" for of in found)

    def step(self) -> str:
        kind = self.chance.choice(("insert", "insert", "delete", "delete", "delete", "update", "compact", "replace"))
        if kind == "insert" or not self.last:
            self.insert()
            return "insert"
        where = self.condition()
        if kind == "delete":
            with limited(self.acid, **self.chance.choice(({}, {}, {"driver_deletes": 5}))):
                deleted = self.acid.delete("d.t", where)
            assert deleted == self.everything.delete("d.twin", where), where
        elif kind == "update":
            for session, name in ((self.acid, "d.t"), (self.everything, "d.twin")):
                session.update(name, {"n": "n + 1"}, where or "id % 3 = 0")
        elif kind == "replace":
            within = "id >= 5 AND id < 9"
            text = ROWS.format(
                keys="".join(f", {OF_KEYS[of][0]} AS {name}" for name, of in self.keys.items()),
                first=5,
                last=9,
                tasks=1,
            )
            for session, name in ((self.acid, "d.t"), (self.everything, "d.twin")):
                session.sql(f"INSERT INTO {name} BY NAME REPLACE WHERE {within} {text}")
            return "replace"
        else:
            compact_table(self.spark, self.acid, "d.t", self.chance.choice(("minor", "major")))
            return kind
        return f"{kind} {where}"

    def compare(self) -> None:
        def told(session: AcidSession, name: str, where: str | None = None) -> list[tuple[Any, ...]]:
            frame = session.table(name)
            return sorted(map(tuple, (frame.where(where) if where else frame).collect()), key=repr)

        expected = told(self.everything, "d.twin")
        assert told(self.everything, "d.t") == expected
        assert told(self.acid, "d.t") == expected
        with limited(self.acid, delete_events=0):  # joined, but for what tails tell
            assert told(self.acid, "d.t") == expected
        assert self.acid.table("d.t").count() == len(expected)
        found = self.acid.sql("SELECT count(*), min(id), max(id), count(n) FROM d.t").collect()[0]
        ids = [row[0] for row in expected] or [None]
        assert tuple(found) == (len(expected), min(ids), max(ids), sum(row[1] is not None for row in expected))
        where = self.condition() or "true"
        assert told(self.acid, "d.t", where) == told(self.everything, "d.twin", where), where


@pytest.mark.parametrize("seed", range(8))
def test_rows_are_those_of_a_session_that_reads_all(acid: AcidSession, spark: SparkSession, seed: int) -> None:
    world = World(acid, spark, seed)
    done = []
    for _ in range(9):
        done.append(world.step())
        try:
            world.compare()
        except AssertionError as error:
            raise AssertionError("; ".join(done)) from error
    check_table(location_of(acid, "d.t"))
    world.everything.close()


@pytest.fixture
def filled(acid: AcidSession, spark: SparkSession) -> AcidSession:
    """A table of four days with 500 rows each, in several files, and rows without a day."""
    acid.create_table("d.t", {"id": "bigint", "s": "string"}, partitioned_by={"day": "date"})
    days = "nullif(date_add(date'2024-01-01', CAST(id % 5 AS int)), date'2024-01-05')"
    for first in (0, 1250):
        frame = spark.range(first, first + 1250, 1, 2).selectExpr("id", "string(id) AS s", f"{days} AS day")
        with limited(acid, **WRITTEN):
            acid.insert("d.t", frame)
    return acid


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("rows were looked for")


@pytest.mark.parametrize(
    ("where", "deleted"),
    [
        (None, 2500),
        ("day = date'2024-01-02'", 500),
        ("day <= '2024-01-02'", 1000),
        ("day < current_date() - INTERVAL 30 DAYS", 2000),
        ("day IS NULL OR day = date'2024-01-01'", 1000),
        ("id < 1250", 1250),
        ("id >= 1250 AND day > date'2024-01-02' AND day IS NOT NULL", 500),
    ],
)
def test_nothing_is_read(filled: AcidSession, monkeypatch: pytest.MonkeyPatch, where: str | None, deleted: int) -> None:
    acid = filled
    with monkeypatch.context() as patch:
        patch.setattr("hive_acid.spark.change.dml.driver_deletes", never)
        patch.setattr(SparkStaging, "write", never)
        assert acid.delete("d.t", where) == deleted
        assert acid.delete("d.t", where) == 0
    left = acid.table("d.t")
    assert left.count() == 2500 - deleted
    assert left.where(where or "true").count() == 0
    assert len(left.collect()) == 2500 - deleted


def test_files_that_have_lost_all_rows_are_not_read(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    acid.create_table("d.t", {"id": "bigint"}, partitioned_by={"day": "int"})
    acid.insert("d.t", acid.spark.range(0, 50_000, 1, 1).selectExpr("id", "CAST(id % 2 AS int) AS day"))
    assert acid.delete("d.t", "day = 0") == 25_000
    assert acid.delete("d.t", "id % 50 = 1") == 1_000
    monkeypatch.setattr("hive_acid.spark.change.dml.driver_deletes", never)
    assert acid.delete("d.t") == 24_000
    assert acid.table("d.t").count() == len(acid.table("d.t").collect()) == 0


def test_rows_of_other_files_are_found_beside(filled: AcidSession) -> None:
    acid = filled
    assert acid.delete("d.t", "day = date'2024-01-01' AND id % 2 = 0") == 250
    text = "DELETE FROM d.t WHERE day <= date'2024-01-02' OR id = 3"
    plan = "\n".join(row[0] for row in acid.sql(f"EXPLAIN {text}").collect())
    assert "written by: the client: all rows of 4 files, which footers tell, and up to 200,000 rows of others" in plan
    assert acid.delete("d.t", "day <= date'2024-01-02' OR id = 3") == 751
    assert acid.table("d.t").count() == 1499
    assert sorted(row.id for row in acid.table("d.t").where("id < 10").collect()) == [2, 4, 7, 8, 9]


def test_what_is_wrong_with_the_condition_is_told(filled: AcidSession) -> None:
    with pytest.raises(ColumnError, match="nowhere"):
        filled.delete("d.t", "day <= date'2024-01-02' OR nowhere = 3")
    assert filled.table("d.t").count() == 2500


@pytest.mark.parametrize("first", ["delete", "update"])
def test_a_row_that_another_has_changed_is_a_conflict(filled: AcidSession, first: str) -> None:
    other = hive_acid.spark.session(filled.spark, filled.connection)
    changes = {
        "delete": lambda acid: acid.delete("d.t", "day = date'2024-01-02'"),
        "update": lambda acid: acid.update("d.t", {"s": "'other'"}, "id = 6"),
    }
    last = "update" if first == "delete" else "delete"
    block = filled.transaction()
    block.__enter__()
    changes[last](filled)
    assert in_thread(lambda: changes[first](other)) in (500, 1)
    with pytest.raises(WriteConflictError, match="day=2024-01-02"):
        block.__exit__(None, None, None)
    assert filled.table("d.t").count() == (2000 if first == "delete" else 2500)
    assert filled.table("d.t").where("s = 'other'").count() == (first == "update")


def in_thread(work: Callable[[], Any]) -> Any:
    """Its result, outside of the transaction of this thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()
