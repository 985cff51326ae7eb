"""One thing done in all ways: they leave the same rows, and say the same where they fail. Over Connect it is the same
file (`make test-connect`).
"""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from hive_acid.errors import AlreadyExistsError, ColumnError, HiveAcidError, MergeCardinalityError, WriteConflictError
from hive_acid.spark import EnabledSession
from tests.spark.enabled.ways import WAYS

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
    way.merge("d.t", frame(way, [(1, 5, 1), (2, -1, 1), (9, 90, 9)]))
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
    way.create("d.t", frame(way))
    for given, names in (
        ([("x", 1, 1)], "id string, n int, day int"),
        ([(1, 2**40, 1)], "id int, n bigint, day int"),
    ):
        with pytest.raises((HiveAcidError,)):
            way.append("d.t", frame(way, given, names))
    assert rows(way.read("d.t")) == ROWS


def _in_a_thread(work: Any) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pool.submit(work).result()
