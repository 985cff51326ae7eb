"""One thing done in all ways: they leave the same rows, count the same, and say the same where they fail.

Over Connect it is the same file (`tests/connect`).
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from hive_acid.errors import AlreadyExistsError, ColumnError, MergeCardinalityError, WriteConflictError
from hive_acid.spark import EnabledSession
from tests.spark.enabled.ways import WAYS

pytestmark = pytest.mark.sampled(days=4)

ROWS = [(1, 10, 1), (2, 20, 1), (3, 30, 2)]


def rows(frame: DataFrame) -> Any:
    return sorted(tuple(row) for row in frame.collect())


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, joined: EnabledSession, spark: SparkSession) -> Any:
    return WAYS[request.param](joined, spark)


def frame(way: Any, given: Any = ROWS, names: str = "id int, n int, day int") -> DataFrame:
    made: DataFrame = way.spark.createDataFrame(given, names)
    return made


@pytest.mark.parametrize("keys", [(), ("day",)])
def test_a_table_is_made_and_read(way: Any, keys: Any) -> None:
    way.create("d.t", frame(way), keys)
    assert rows(way.read("d.t")) == ROWS
    assert way.columns("d.t") == [("id", "int"), ("n", "int"), ("day", "int")]
    assert way.tables("d") == ["t"]
    assert way.acid.connection.table("d", "t").is_full_acid
    assert way.partitions("d.t") == (["day=1", "day=2"] if keys else [])
    with pytest.raises(AlreadyExistsError):
        way.create("d.t", frame(way), keys)
    assert rows(way.read("d.t")) == ROWS


def test_rows_are_appended_by_name(way: Any) -> None:
    way.create("d.t", frame(way))
    way.append("d.t", frame(way, [(3, 4, 40)], "DAY int, id int, n int"))
    assert rows(way.read("d.t")) == [*ROWS, (4, 40, 3)]
    with pytest.raises(ColumnError):
        way.append("d.t", frame(way, [(5, 50, 1, "x")], "id int, n int, day int, name string"))
    way.evolve("d.t", frame(way, [(5, 50, 1, "x")], "id int, n int, day int, name string"))
    assert way.columns("d.t")[-1] == ("name", "string")
    assert (5, 50, 1, "x") in [tuple(row) for row in way.read("d.t").collect()]


def test_changes_count_their_rows(way: Any) -> None:
    way.create("d.t", frame(way, []))
    assert _told(way, way.append("d.t", frame(way))) == 3
    assert way.update("d.t", {"n": "n + id", "day": "NULL"}, "id > 1") == 2
    assert rows(way.read("d.t").where("day IS NULL")) == [(2, 22, None), (3, 33, None)]
    assert way.delete("d.t", "id IN (2, 7) OR n = 10") == 2
    assert way.delete("d.t", "n = 10") == 0
    assert rows(way.read("d.t")) == [(3, 33, None)]
    assert _told(way, way.overwrite("d.t", frame(way, ROWS[:2]))) == 2
    assert rows(way.read("d.t")) == ROWS[:2]


def _told(way: Any, count: Any) -> Any:
    """What a change tells of its rows; where it tells nothing, what it would."""
    assert (count is not None) is way.tells
    return way.read("d.t").count() if count is None else count


def test_partitions_are_replaced(way: Any) -> None:
    way.create("d.t", frame(way), ("day",))
    way.overwrite("d.t", frame(way, [(7, 70, 1)]))
    assert rows(way.read("d.t")) == [(3, 30, 2), (7, 70, 1)]
    way.overwrite_where("d.t", frame(way, [(8, 80, 2)]), "n > 60 OR day = 2")
    assert rows(way.read("d.t")) == [(8, 80, 2)]
    with pytest.raises(ColumnError, match="not one of those that it is to replace"):
        way.overwrite_where("d.t", frame(way, [(9, 90, 3)]), "id = 8")
    assert rows(way.read("d.t")) == [(8, 80, 2)]


def test_all_is_replaced(way: Any) -> None:
    way.create("d.t", frame(way))
    way.overwrite("d.t", way.read("d.t").where("id > 2"))
    assert rows(way.read("d.t")) == ROWS[2:]


def test_rows_are_merged(way: Any) -> None:
    way.create("d.t", frame(way, [*ROWS, (200, 5, 1)]))
    counts = way.merge("d.t", frame(way, [(1, 5, 1), (2, -1, 1), (9, 90, 9)]))
    assert counts == ((1, 2, 1) if way.tells else None)
    assert rows(way.read("d.t")) == [(1, 15, 1), (3, 30, 2), (9, 90, 9), (200, 0, 1)]
    with pytest.raises(MergeCardinalityError):
        way.merge("d.t", frame(way, [(1, 5, 1), (1, 6, 1)]))
    assert rows(way.read("d.t")) == [(1, 15, 1), (3, 30, 2), (9, 90, 9), (200, 0, 1)]


def test_a_snapshot_is_kept(way: Any) -> None:
    way.create("d.t", frame(way))
    before = way.read("d.t")
    derived = before.where("id > 1").select("id")
    before.createOrReplaceTempView("before")
    way.overwrite("d.t", frame(way, [(7, 70, 7)]))
    assert rows(before) == rows(way.spark.table("before")) == ROWS
    assert rows(derived) == [(2,), (3,)]
    assert rows(way.read("d.t")) == [(7, 70, 7)]


def test_a_block_is_one_transaction(way: Any) -> None:
    way.create("d.t", frame(way))
    with pytest.raises(ZeroDivisionError), way.acid.transaction():
        way.append("d.t", frame(way, [(7, 70, 7)]))
        way.merge("d.t", frame(way, [(7, 1, 7)]))
        assert (7, 71, 7) in rows(way.read("d.t"))
        raise ZeroDivisionError
    assert rows(way.read("d.t")) == ROWS


def test_of_two_writers_the_first_wins(way: Any) -> None:
    way.create("d.t", frame(way))
    with pytest.raises(WriteConflictError), way.acid.transaction():
        assert rows(way.read("d.t")) == ROWS
        _in_a_thread(lambda: way.acid.delete("d.t", "id = 1"))
        way.merge("d.t", frame(way, [(1, 1, 1)]))
    assert rows(way.read("d.t")) == ROWS[1:]


def test_what_does_not_fit_is_refused(way: Any) -> None:
    """In the same words, in whichever way it is said."""
    way.create("d.t", frame(way))
    one = frame(way, [(1, 1, 1)])
    for words, refused in (
        ("does not fit into d.t.n int: 1099511627776", lambda: way.append("d.t", one.withColumn("n", F.lit(2**40)))),
        ("does not fit into d.t.id int: x", lambda: way.overwrite("d.t", one.withColumn("id", F.lit("x")))),
        ("those of d.t (id, n, day); unknown: x", lambda: way.append("d.t", one.withColumn("x", F.lit(1)))),
        ("d.t.id is int: a value of type array<int>", lambda: way.append("d.t", one.withColumn("id", F.array("id")))),
        ("a condition is true or false, and id is of type int", lambda: way.delete("d.t", "id")),
        ("d.t has no column x", lambda: way.update("d.t", {"x": "1"}, "id = 1")),
        ("name `x` cannot be resolved", lambda: way.update("d.t", {"n": "1"}, "x = 1")),
        ("does not fit into d.t.n int: y", lambda: way.update("d.t", {"n": "'y'"}, "id = 1")),
        ("name `x` cannot be resolved", lambda: way.overwrite_where("d.t", one, "x = 1")),
    ):
        with pytest.raises(ColumnError, match=re.escape(words)):
            refused()
    assert rows(way.read("d.t")) == ROWS


def _in_a_thread(work: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()
