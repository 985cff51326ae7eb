"""Rebalances: rows spread evenly, or in an order, over so many files."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import UnsupportedTableError
from hive_acid.format.rows import decode_bucket
from hive_acid.spark import AcidSession
from metastore.compaction.plan import CompactionRefusedError
from tests.spark.checker import check_table, location_of
from tests.spark.compact.rows import COLUMNS, content, insert
from tests.spark.compaction import compact_table


@pytest.mark.parametrize(("buckets", "files"), [(None, 3), (5, 5), (1, 1)])
def test_a_rebalance_spreads_rows_evenly(three_buckets: Any, spark: SparkSession, buckets: Any, files: Any) -> None:
    rows, old = content(three_buckets, row_id=False), three_buckets.table("d.t")
    write_ids = sorted(r["ROW__ID"]["writeId"] for r in three_buckets.table("d.t", row_id=True).collect())
    (result,) = compact_table(spark, three_buckets, "d.t", "rebalance", buckets=buckets)
    state = check_table(location_of(three_buckets, "d.t"))
    (base,) = [found for name, found in state.items() if name.startswith("base_")]
    sizes = [len(found) for found in base.values()]
    assert (len(sizes), sum(sizes)) == (files, result.rows)
    assert max(sizes) - min(sizes) <= 1
    assert [event.row_id for event in base["bucket_00000"]] == list(range(sizes[0]))
    assert sorted(event.original_write_id for found in base.values() for event in found) == write_ids
    assert content(three_buckets, row_id=False) == rows
    assert sorted(map(str, old.collect())) == rows, "who reads the old files still does"
    three_buckets.update("d.t", {"name": "'again'"}, "id = 23")
    three_buckets.delete("d.t", "id % 2 = 0")
    assert sorted(r.id for r in three_buckets.table("d.t").collect()) == sorted(
        i for i in range(340) if i % 2 and i != 301 and (i % 7 or i >= 300)
    )


def test_a_rebalance_in_an_order_of_ones_own(three_buckets: Any, spark: SparkSession) -> None:
    rows = content(three_buckets, row_id=False)
    compact_table(spark, three_buckets, "d.t", "rebalance", buckets=4, order_by="ORDER BY name DESC, id")
    state = check_table(location_of(three_buckets, "d.t"))
    (base,) = [found for name, found in state.items() if name.startswith("base_")]
    in_files = [event.row for name in sorted(base) for event in base[name]]
    assert in_files == sorted(sorted(in_files), key=lambda row: row[1], reverse=True)
    assert [decode_bucket(base[name][0].bucket_property)[0] for name in sorted(base)] == [0, 1, 2, 3]
    assert content(three_buckets, row_id=False) == rows
    three_buckets.delete("d.t", "name = 'u'")
    assert "u" not in {r.name for r in three_buckets.table("d.t").collect()}


def test_rebalances_that_cannot_be(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", COLUMNS)
    assert compact_table(spark, acid, "d.t", "rebalance") == []
    insert(acid, spark, 0, 10)
    with pytest.raises(UnsupportedTableError, match="nonesuch"):
        compact_table(spark, acid, "d.t", "rebalance", order_by="nonesuch")
    with pytest.raises(CompactionRefusedError, match="1 to 4096"):
        compact_table(spark, acid, "d.t", "rebalance", buckets=5000)
    acid.create_table("d.c", COLUMNS, clustered_by=["id"], buckets=2)
    with pytest.raises(CompactionRefusedError, match="CLUSTERED"):
        compact_table(spark, acid, "d.c", "rebalance")
