"""Rows of a table with a primary key get their ids in its order, in each file, whichever way writes them."""

from __future__ import annotations

from typing import Any

import pytest

from hive_acid.spark import AcidSession
from hive_acid.spark.read import scan
from tests.spark.by_spark import WRITTEN, limited
from tests.spark.compaction import compact_table
from tests.spark.plans import scans

pytestmark = pytest.mark.spark

GROUP = 10_000
"""Rows of a row group."""


def in_order(acid: AcidSession, *key: str, partition: str | None = None) -> int:
    """Rows that have a smaller id than one of their file and write with a smaller key; and there have to be some."""
    frame = acid.table("d.t", row_id=True)
    files = ["ROW__ID.writeId", "ROW__ID.bucketId", *([partition] if partition else [])]
    over = f"OVER (PARTITION BY {', '.join(files)} ORDER BY ROW__ID.rowId)"
    now = f"struct({', '.join(key)})"
    found = frame.selectExpr(f"lag({now}) {over} > {now} AS is_wrong").where("is_wrong").count()
    assert frame.count() > 10
    return found


@pytest.mark.parametrize("by_spark", [False, True], ids=["by the client", "by Spark"])
def test_new_rows_of_all_ways_are_in_order(acid: AcidSession, by_spark: bool) -> None:
    acid.sql("CREATE TABLE d.t (v string, id int, s char(9), p int, PRIMARY KEY (s, id, p))")
    with limited(acid, **(WRITTEN if by_spark else {})):
        acid.sql("INSERT INTO d.t SELECT 'a', 100 - id, string(id % 7), id % 2 FROM range(100)")
        assert in_order(acid, "s", "id", "p") == 0
        new: Any = acid.spark.sql(
            "SELECT 'b' AS v, int(300 - id * 3) AS id, string(id % 7) AS s, int(1) AS p FROM range(99)"
        )
        acid.upsert("d.t", new)
        assert in_order(acid, "s", "id", "p") == 0
        acid.sql("UPDATE d.t SET id = 1000 - id, s = 7 - s WHERE id % 2 = 0")
        assert in_order(acid, "s", "id", "p") == 0
        acid.sql("INSERT OVERWRITE d.t SELECT 'a', id, '-', 1 FROM range(50, 0, -1)")
        assert in_order(acid, "s", "id", "p") == 0


def test_rows_of_partitions_and_buckets_are_in_order(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (id int, PRIMARY KEY (p, id)) PARTITIONED BY (p int)")
    acid.sql("INSERT INTO d.t SELECT id, id % 2 FROM range(50, 0, -1)")
    assert in_order(acid, "id", partition="p") == 0
    acid.sql("DROP TABLE d.t")
    acid.sql("CREATE TABLE d.t (id int, PRIMARY KEY (id)) CLUSTERED BY (id) INTO 3 BUCKETS")
    acid.sql("INSERT INTO d.t SELECT id FROM range(50, 0, -1)")
    acid.sql("UPDATE d.t SET id = -id")
    assert in_order(acid, "id") == 0


def test_a_rebalance_sorts_by_the_key(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (id int, v int, PRIMARY KEY (id))")
    for start in range(3):
        acid.sql(f"INSERT INTO d.t SELECT id, -id FROM range({start}, 60, 3)")
    compact_table(acid.spark, acid, "d.t", "rebalance", buckets=2)
    assert in_order(acid, "id") == 0
    acid.sql("UPDATE d.t SET v = 1 WHERE id = 30")
    compact_table(acid.spark, acid, "d.t", "rebalance", buckets=2, order_by="ORDER BY v")
    assert in_order(acid, "v") == 0
    ends = acid.table("d.t", row_id=True).groupBy("ROW__ID.bucketId").agg({"v": "max"}).collect()
    assert len(ends) == 2


def test_a_look_up_by_key_reads_few_row_groups(acid: AcidSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of each file that may have it, and after a rebalance one."""
    # Asked row by row, ORC would show the batches with a row that is found, whatever groups it has read.
    monkeypatch.setattr(scan, "row_filter", lambda *_: None)
    acid.sql("CREATE TABLE d.t (id int, v string, PRIMARY KEY (id))")
    new = acid.spark.range(60_000).selectExpr("int(id * 7919 % 60000) AS id", "'a' AS v")
    for part in range(2):
        acid.insert("d.t", new.where(f"id % 2 = {part}").coalesce(1))
    query = "SELECT * FROM d.t WHERE id = 31234"
    assert sum(found.rows for found in scans(acid.sql(query))) <= 2 * GROUP
    compact_table(acid.spark, acid, "d.t", "rebalance", buckets=2)
    assert [found.rows for found in scans(acid.sql(query)) if found.rows] == [GROUP]
