"""Arguments of a wrong kind: each verb says which one it is and what it should be, and changes nothing."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import pytest

from hive_acid.errors import ColumnError
from hive_acid.spark import AcidSession

ODD: list[Any] = [5, True, 1.5, b"id = 1", ["id = 1"], ("id", 1), object(), datetime.date(2020, 1, 1), lambda row: True]


@pytest.fixture
def table(acid: AcidSession) -> str:
    acid.create_table("d.t", {"id": "int", "n": "int"}, partitioned_by={"k": "string"})
    acid.insert("d.t", acid.spark.createDataFrame([(1, 1, "a"), (2, 2, "b")], "id int, n int, k string"))
    return "d.t"


def conditions(acid: AcidSession, table: str) -> dict[str, Callable[[Any], object]]:
    frame = acid.spark.createDataFrame([(1, 1, "a")], "id int, n int, k string")
    merging = acid.merge(table, frame, "t.id = s.id")
    return {
        "table": lambda odd: acid.table(table, where=odd),
        "update": lambda odd: acid.update(table, {"n": "0"}, odd),
        "update on": lambda odd: acid.update(table, {"n": "0"}, source=frame, on=odd),
        "delete": lambda odd: acid.delete(table, odd),
        "delete on": lambda odd: acid.delete(table, source=frame, on=odd),
        "overwrite": lambda odd: acid.overwrite(table, frame, where=odd),
        "merge on": lambda odd: acid.merge(table, frame, odd),
        "matched update": lambda odd: merging.whenMatchedUpdate(odd, {"n": "0"}),
        "matched delete": merging.whenMatchedDelete,
        "not matched": merging.whenNotMatchedInsertAll,
        "not matched by source": merging.whenNotMatchedBySourceDelete,
        "multi-insert": lambda odd: acid.multi_insert(frame).into(table, where=odd),
    }


def values(acid: AcidSession, table: str) -> dict[str, Callable[[Any], object]]:
    frame = acid.spark.createDataFrame([(1, 1, "a")], "id int, n int, k string")
    merging = acid.merge(table, frame, "t.id = s.id")
    return {
        "update": lambda odd: acid.update(table, odd),
        "matched update": lambda odd: merging.whenMatchedUpdate(set=odd),
        "not matched": lambda odd: merging.whenNotMatchedInsert(values=odd),
        "not matched by source": lambda odd: merging.whenNotMatchedBySourceUpdate(set=odd),
        "multi-insert": lambda odd: acid.multi_insert(frame).into(table, odd),
    }


def frames(acid: AcidSession, table: str) -> dict[str, Callable[[Any], object]]:
    return {
        "insert": lambda odd: acid.insert(table, odd),
        "overwrite": lambda odd: acid.overwrite(table, odd),
        "merge": lambda odd: acid.merge(table, odd, "t.id = s.id"),
        "update": lambda odd: acid.update(table, {"n": "0"}, source=odd, on="t.id = s.id"),
        "delete": lambda odd: acid.delete(table, source=odd, on="t.id = s.id"),
        "multi-insert": acid.multi_insert,
    }


def partitions(acid: AcidSession, table: str) -> dict[str, Callable[[Any], object]]:
    frame = acid.spark.createDataFrame([(1, 1)], "id int, n int")
    return {
        "overwrite": lambda odd: acid.overwrite(table, frame, partition=odd),
        "truncate": lambda odd: acid.truncate(table, odd),
        "load": lambda odd: acid.load_data(table, "/nowhere", partition=odd),
        "export": lambda odd: acid.export_table(table, "/nowhere", partition=odd),
        "concatenate": lambda odd: acid.concatenate(table, odd),
        "analyze": lambda odd: acid.analyze(table, partition=odd),
    }


def lists(acid: AcidSession, table: str) -> dict[str, Callable[[Any], object]]:
    return {
        "keys": lambda odd: acid.sink(table, query="q", mode="upsert", keys=odd),
        "columns": lambda odd: acid.analyze(table, columns=odd),
        "partitioned_by": lambda odd: acid.create_table("d.other", {"id": "int", "k": "int"}, partitioned_by=odd),
        "clustered_by": lambda odd: acid.create_table("d.other", {"id": "int"}, clustered_by=odd, buckets=2),
        "names": lambda odd: acid.drop_partitions(table, odd),
        "partitions": lambda odd: acid.compact(table, partitions=odd),
    }


def names(acid: AcidSession, table: str) -> dict[str, Callable[[Any], object]]:
    return {"table": acid.table, "truncate": acid.truncate, "drop": acid.drop_table, "delete": acid.delete}


@pytest.mark.parametrize(
    ("uses", "odd_ones", "words"),
    [
        (conditions, ODD, "a condition"),
        (values, ["n = 1", *ODD, {1: "n"}], "by the names of columns"),
        (frames, ["d.t", *ODD], "DataFrame of Spark"),
        (partitions, ["k=a", "", *ODD, [], {1: "a"}], "given by its columns"),
        (lists, ["id", b"id", 5, [5]], "list of names"),
        (names, ODD, "a table is meant by"),
    ],
)
def test_arguments_of_another_kind_are_named(
    acid: AcidSession,
    table: str,
    uses: Callable[[AcidSession, str], dict[str, Callable[[Any], object]]],
    odd_ones: list[Any],
    words: str,
) -> None:
    wrong: list[tuple[str, Any, Exception | None]] = []
    for name, use in uses(acid, table).items():
        for odd in odd_ones:
            try:
                use(odd)
            except TypeError as error:
                if words in str(error):
                    continue
                wrong.append((name, odd, error))
            except Exception as error:
                wrong.append((name, odd, error))
            else:
                wrong.append((name, odd, None))
    assert wrong == []
    assert sorted(tuple(row) for row in acid.table(table).collect()) == [(1, 1, "a"), (2, 2, "b")]


@pytest.mark.parametrize("value", [{}, {"n": 1}, (1,), {1}, object(), lambda row: 1])
def test_what_is_no_value_is_refused(acid: AcidSession, table: str, value: Any) -> None:
    with pytest.raises(ColumnError):
        acid.update(table, {"n": value})


def test_a_condition_that_joins_needs_a_source(acid: AcidSession, table: str) -> None:
    """Without one, all rows were changed."""
    with pytest.raises(ColumnError, match="on joins the table with a source, and none is given"):
        acid.delete(table, on="t.id = s.id")
    with pytest.raises(ColumnError, match="on joins the table with a source, and none is given"):
        acid.update(table, {"n": "0"}, on="t.id = s.id")
    assert acid.table(table).where("n > 0").count() == 2
