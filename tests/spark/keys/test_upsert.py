"""INSERT … ON CONFLICT and `upsert`: a row that has the key is changed or left, others are inserted."""

from __future__ import annotations

from typing import Any

import pytest

import hive_acid.spark
from hive_acid.errors import (
    DuplicateKeyError,
    MergeCardinalityError,
    SqlError,
    UnsupportedTableError,
    WriteConflictError,
)
from hive_acid.format.progress import last_batch
from hive_acid.spark import AcidSession
from hive_acid.spark.verbs import stream
from hive_acid.spark.verbs.stream import SinkPlan
from tests.spark.by_spark import WRITTEN, limited

pytestmark = pytest.mark.spark


def made(
    acid: AcidSession, columns: str = "id int, v string, n int DEFAULT 7", key: str = "id", more: str = ""
) -> None:
    acid.sql(f"CREATE TABLE d.t ({columns}, PRIMARY KEY ({key})) {more}")
    acid.sql("INSERT INTO d.t VALUES (1, 'a', 1), (2, 'b', 2)")


def rows(acid: AcidSession) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, acid.table("d.t").collect()))


def counts(acid: AcidSession, text: str, **frames: Any) -> tuple[int, ...]:
    return tuple(acid.sql(text, **frames).collect()[0])


def test_rows_that_are_there_are_changed_or_left(acid: AcidSession) -> None:
    made(acid)
    insert = "INSERT INTO d.t (id, v) VALUES (2, 'new'), (3, 'c') ON CONFLICT (ID)"
    assert counts(acid, f"{insert} DO NOTHING") == (1, 0, 1)
    assert rows(acid) == [(1, "a", 1), (2, "b", 2), (3, "c", 7)]
    changed = "DO UPDATE SET v = concat(t.v, excluded.v), n = excluded.n + t.n WHERE t.id < 3"
    assert counts(acid, f"{insert} {changed};") == (1, 1, 0)
    assert rows(acid) == [(1, "a", 1), (2, "bnew", 9), (3, "c", 7)]
    text = "INSERT INTO d.t SELECT a.id, 'x', b.id FROM range(1, 2) a JOIN range(1, 2) b ON a.id = b.id"
    assert counts(acid, f"{text} ON CONFLICT DO UPDATE SET v = (SELECT max(v) FROM d.t)") == (1, 1, 0)
    assert rows(acid)[0] == (1, "c", 1)
    assert counts(acid, "INSERT INTO d.t VALUES (9, 'a', 1), (9, 'b', 1) ON CONFLICT DO NOTHING") == (1, 0, 1)
    assert counts(acid, "EXPLAIN INSERT INTO d.t VALUES (9, 'a', 1) ON CONFLICT DO NOTHING")
    with pytest.raises(DuplicateKeyError, match="more than once"):
        acid.sql("INSERT INTO d.t VALUES (8, 'a', 1), (8, 'b', 1) ON CONFLICT (id) DO UPDATE SET v = 'x'")
    with pytest.raises(MergeCardinalityError):
        acid.sql("INSERT INTO d.t VALUES (9, 'a', 1), (9, 'b', 1) ON CONFLICT (id) DO UPDATE SET v = 'x'")
    with pytest.raises(DuplicateKeyError, match="no value"):
        acid.sql("INSERT INTO d.t VALUES (NULL, 'a', 1) ON CONFLICT (id) DO NOTHING")
    with pytest.raises(DuplicateKeyError):
        acid.sql("INSERT INTO d.t VALUES (1, 'a', 1) ON CONFLICT (id) DO UPDATE SET id = 2")
    assert len(rows(acid)) == 4


def test_a_frame_is_upserted(acid: AcidSession) -> None:
    made(acid, "id int, v char(4)", "id, v, p", "PARTITIONED BY (p int)")
    new = acid.spark.createDataFrame([(1, "a ", 1), (1, "a", 2)], "ID int, V string, P int")
    counted = acid.upsert("d.t", new)
    assert (counted.inserted, counted.updated) == (1, 0)
    assert [(row[0], row[1].strip(), row[2]) for row in rows(acid)] == [(1, "a", 1), (1, "a", 2), (2, "b", 2)]
    acid.sql("DROP TABLE d.t")
    made(acid)
    new = acid.spark.createDataFrame([(1, "x"), (5, "y")], "id int, v string")
    counted = acid.upsert("d.t", new)
    assert (counted.inserted, counted.updated) == (1, 1)
    assert rows(acid) == [(1, "x", 1), (2, "b", 2), (5, "y", 7)]
    acid.upsert("d.t", new, set={})
    acid.upsert("d.t", new, set={"n": "o.n + excluded.id"}, where="o.n > 1", target_alias="o")
    assert rows(acid) == [(1, "x", 1), (2, "b", 2), (5, "y", 12)]


@pytest.mark.parametrize("by_spark", [False, True], ids=["by the client", "by Spark"])
def test_two_new_rows_for_one_that_is_there_are_told_by_that(acid: AcidSession, by_spark: bool) -> None:
    made(acid)
    new = acid.spark.createDataFrame([(1, "x"), (1, "y")], "id int, v string")
    with limited(acid, **(WRITTEN if by_spark else {})):
        with pytest.raises(MergeCardinalityError, match="match more than one source row"):
            acid.upsert("d.t", new)
        with pytest.raises(DuplicateKeyError, match="id = 9"):
            acid.upsert("d.t", new.selectExpr("int(9) AS id", "v"))
    assert rows(acid) == [(1, "a", 1), (2, "b", 2)]


def test_two_upserts_of_one_key_conflict(acid: AcidSession) -> None:
    made(acid)
    new = acid.spark.createDataFrame([(5, "x")], "id int, v string")
    with (
        hive_acid.spark.session(acid.spark, acid.connection.uri) as other,
        pytest.raises(WriteConflictError),
        acid.transaction(),
    ):
        acid.upsert("d.t", new)
        other.upsert("d.t", new)
    assert rows(acid)[-1] == (5, "x", 7)


def test_names_may_be_hostile(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (`it's a.key` int, `excluded` string, `t.v` int, PRIMARY KEY (`it's a.key`))")
    acid.sql("INSERT INTO d.t VALUES (1, 'a', 1)")
    with pytest.raises(DuplicateKeyError, match=r"it's a\.key = 1"):
        acid.sql("INSERT INTO d.t VALUES (1, 'a', 1)")
    new = acid.spark.createDataFrame([(1, "b", 2), (2, "c", 3)], "`it's a.key` int, `excluded` string, `t.v` int")
    acid.upsert("d.t", new)
    assert rows(acid) == [(1, "b", 2), (2, "c", 3)]
    assert acid.check_key("d.t", ["EXCLUDED", "it's a.key"]).columns == ["excluded", "it's a.key", "rows"]


REFUSED = {
    "INSERT INTO d.t VALUES (1, 'a', 1) ON CONFLICT (v) DO NOTHING": r"has the key \(id\)",
    "INSERT INTO d.s VALUES (1) ON CONFLICT DO NOTHING": "has none that is enforced",
    "INSERT OVERWRITE d.t VALUES (1, 'a', 1) ON CONFLICT DO NOTHING": "INSERT INTO alone",
    "INSERT INTO d.t REPLACE WHERE id = 1 VALUES (1, 'a', 1) ON CONFLICT DO NOTHING": "INSERT INTO alone",
    "INSERT INTO d.t VALUES (1, 'a', 1) ON CONFLICT DO DELETE": "NOTHING or UPDATE",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_conflict_of_a_key_is_refused(acid: AcidSession, text: str) -> None:
    made(acid)
    acid.sql("CREATE TABLE d.s (id int)")
    with pytest.raises(SqlError, match=REFUSED[text]):
        acid.sql(text)
    with pytest.raises(UnsupportedTableError, match="no primary key"):
        acid.upsert("d.s", acid.spark.range(1))
    assert rows(acid) == [(1, "a", 1), (2, "b", 2)]


def test_batches_of_two_streams_conflict_by_the_keys_that_both_bring(
    acid: AcidSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(acid)
    monkeypatch.setattr(stream, "FIRST_PAUSE_S", 0.01)
    write, rivals = SinkPlan.write, list[int]()
    attempts = list[int]()

    def meanwhile(plan: Any, session: AcidSession, table: Any, given: Any) -> None:
        write(plan, session, table, given)
        attempts.append(1)
        if rivals:
            key = rivals.pop()
            with hive_acid.spark.session(acid.spark, acid.connection.uri) as other:
                sink = other.sink("d.t", query=f"rival-{key}", mode="upsert", keys=["id"])
                sink(acid.spark.sql(f"SELECT int({key}) AS id, 'rival' AS v, 0 AS n"), 0)

    monkeypatch.setattr(SinkPlan, "write", meanwhile)

    def batch(mode: str, number: int, key: int, rival: int) -> int:
        """How often a batch with one key is tried, beside one of a rival."""
        rivals.append(rival)
        attempts.clear()
        keys = [] if mode == "append" else ["id"]
        acid.sink("d.t", query=mode, mode=mode, keys=keys)(
            acid.spark.sql(f"SELECT int({key}) AS id, '{mode}' AS v, 0 AS n"), number
        )
        return len(attempts) - 1  # that of the rival

    assert batch("append", 0, 5, rival=6) == 1
    assert batch("upsert", 0, 7, rival=8) == 1
    assert batch("upsert", 1, 9, rival=9) == 2
    with pytest.raises(DuplicateKeyError, match="id = 10"):
        batch("append", 1, 10, rival=10)
    now = {row.id: row.v for row in acid.table("d.t").collect()}
    told = {5: "append", 6: "rival", 7: "upsert", 8: "rival", 9: "upsert", 10: "rival"}
    assert now == {1: "a", 2: "b"} | told
    assert last_batch(acid.connection.table("d", "t").parameters, "append") == 0
