"""Deletes that are looked up instead of joined: the same rows, and a plan without a join."""

import sys
from dataclasses import replace

import pytest
from pyspark.sql import functions as F

from hive_acid.format.snapshot import RangeValidity
from hive_acid.spark import deleted
from tests.spark.plans import scans

ROWS = 20_000


@pytest.fixture
def changed(acid, spark):
    """Rows of two writes in several files, with deletes of several writes that reach both."""
    acid.create_table("d.t", {"id": "bigint", "text": "string"})
    for first in (0, ROWS):
        acid.insert("d.t", spark.range(first, first + ROWS, 1, 3).selectExpr("id", "concat('n', id) AS text"))
    acid.delete("d.t", "id % 7 = 3")
    acid.update("d.t", {"text": "'new'"}, "id % 1000 = 5")
    acid.delete("d.t", "id BETWEEN 4000 AND 8300 OR text = 'new' AND id > 30000")
    return acid.table("d.t")


def left():
    return sorted(
        (i, "new" if i % 1000 == 5 else f"n{i}")
        for i in range(2 * ROWS)
        if i % 7 != 3 and not 4000 <= i <= 8300 and not (i % 1000 == 5 and i > 30000)
    )


def plan_of(frame):
    return frame._jdf.queryExecution().toString()


def rows_of(frame):
    return sorted((row.id, row.text) for row in frame.collect())


def test_a_look_up_finds_what_a_join_finds(changed, acid, monkeypatch):
    assert rows_of(changed) == left()
    assert changed.count() == len(left())
    assert changed.agg(F.sum("id")).collect()[0][0] == sum(i for i, _ in left())
    ids = {tuple(row["ROW__ID"]) for row in acid.table("d.t", row_id=True).collect()}
    monkeypatch.setattr(deleted, "MOST_EVENTS", 0)
    joined = acid.table("d.t", row_id=True)
    assert "LeftAnti" in plan_of(joined)
    assert rows_of(joined) == left()
    assert {tuple(row["ROW__ID"]) for row in joined.collect()} == ids


def test_the_plan_has_no_join_and_spells_nothing_out(changed):
    plan = plan_of(changed)
    assert "LeftAnti" not in plan
    assert len(plan) < 40_000, "the bits alone would be more"
    assert not any("delete_delta" in one.text for one in scans(changed))
    assert all("Batched: true" in one.text for one in scans(changed))


def test_what_is_deleted_later_is_seen_later(changed, acid):
    before = changed.count()
    acid.delete("d.t", "id = 1")
    assert acid.table("d.t").count() == before - 1
    assert changed.count() == before
    acid.drop_table("d.t")
    acid.create_table("d.t", {"id": "bigint", "text": "string"})
    acid.insert("d.t", acid.spark.range(10).selectExpr("id", "'x' AS text"))
    acid.delete("d.t", "id = 2")
    assert acid.table("d.t").count() == 9


def test_deletes_are_joined_where_they_cannot_be_looked_up(changed, acid, monkeypatch):
    with monkeypatch.context() as without:
        without.setattr(deleted, "SHARED", deleted.DeleteFiles())
        without.setitem(sys.modules, "pyarrow", None)
        found = acid.table("d.t")
        assert "LeftAnti" in plan_of(found)
        assert rows_of(found) == left()
    with monkeypatch.context() as without:
        without.setattr(deleted, "MOST_WORDS", 100)
        assert "LeftAnti" in plan_of(acid.table("d.t"))


def test_deletes_in_several_partitions_are_joined(acid, spark):
    acid.create_table("d.p", {"id": "bigint"}, partitioned_by={"k": "int"})
    acid.insert("d.p", spark.range(30).selectExpr("id", "cast(id % 3 AS int) AS k"))
    acid.delete("d.p", "k = 1 AND id > 10")
    assert "LeftAnti" not in plan_of(acid.table("d.p"))
    assert acid.table("d.p").count() == 30 - 6
    acid.delete("d.p", "k = 2 AND id > 10")
    assert "LeftAnti" in plan_of(acid.table("d.p"))
    assert acid.table("d.p").count() == 30 - 6 - 7


def test_only_what_is_known_to_all_is_looked_up(changed, acid):
    """Delete files of partly visible directories are joined: whose events count is told by each event."""
    state = changed._narrowing.count.args[0]
    (partition,) = state.partitions
    deltas = partition.state.delete_deltas
    assert deleted.look_up_of(acid.spark, partition, deltas) is not None
    some = [replace(deltas[0], validity=RangeValidity.SOME), *deltas[1:]]
    assert deleted.look_up_of(acid.spark, partition, some) is None


def test_files_that_are_forgotten_are_read_again(changed):
    few = deleted.DeleteFiles(most_blocks=1)
    state = changed._narrowing.count.args[0]
    (partition,) = state.partitions
    paths = [
        deleted.DataFilePath(f"{partition.location}/{file.path}", file.size, file.modified_ms)
        for found in partition.state.delete_deltas
        for file in found.files
    ]
    first = few.read(paths)
    assert first == few.read(paths) == deleted.SHARED.read(paths)
    assert sum(bits.bit_count() for said in first for blocks in said.values() for bits in blocks.values()) > 5000
