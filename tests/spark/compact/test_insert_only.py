"""Compactions of insert-only tables."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import UnsupportedTableError
from hive_acid.spark import AcidSession
from metastore.compaction.plan import CompactionRefusedError
from tests.spark.checker import location_of
from tests.spark.compact.rows import COLUMNS, content, insert
from tests.spark.compaction import compact_table
from tests.spark.placed import commit_writes
from tests.spark.read.test_insert_only import create


@pytest.mark.parametrize("kind", ["minor", "major"])
@pytest.mark.parametrize("stored_as", ["orc", "parquet", "text"])
def test_insert_only_tables(acid: AcidSession, spark: SparkSession, kind: Any, stored_as: Any) -> None:
    create(acid, stored_as, COLUMNS)
    for first in (0, 100, 200):
        insert(acid, spark, first, 100, files=2)
    lost = acid.connection.begin()
    write_id = lost.write_id("d", "t")
    location = location_of(acid, "d.t")
    aborted = location / f"delta_{write_id:07}_{write_id:07}_0000"
    aborted.mkdir()
    (aborted / "000000_0").write_bytes(b"no rows of anybody")
    lost.abort()
    insert(acid, spark, 300, 100)
    before, old = content(acid, row_id=False), acid.table("d.t")
    (result,) = compact_table(spark, acid, "d.t", kind)
    assert (result.rows, len(result.directories), result.files) == (400, 1, 1)
    assert [path.name for path in (location / result.directories[0]).iterdir() if path.name[0] != "."] == ["000000_0"]
    assert content(acid, row_id=False) == before
    assert sorted(map(str, old.collect())) == before
    insert(acid, spark, 400, 100)
    (again,) = compact_table(spark, acid, "d.t", "major")
    assert again.rows == 500


def test_lines_of_text_are_taken_as_they_are(acid: AcidSession, spark: SparkSession) -> None:
    """Fields beyond the table's columns, and such as are no values, would show when the table is altered."""
    create(acid, "text", {"id": "int"})
    commit_writes(acid, "d.t", 2)
    lines = ["7\x01more", "no number", "", "8"]
    for number, half in ((1, lines[:2]), (2, lines[2:])):
        directory = location_of(acid, "d.t") / f"delta_{number:07}_{number:07}_0000"
        directory.mkdir(parents=True)
        (directory / "000000_0").write_text("".join(line + "\n" for line in half))
    (result,) = compact_table(spark, acid, "d.t", "major")
    assert result.rows == 4
    (base,) = location_of(acid, "d.t").glob("base_*")
    assert sorted((base / "000000_0").read_text().splitlines()) == sorted(lines)


def test_insert_only_tables_with_moments_and_days(acid: AcidSession, spark: SparkSession) -> None:
    """They are not taken apart, so that whatever a file says of its writer's zone and calendar stays with them."""
    create(acid, "parquet", {"id": "int", "at": "array<timestamp>"})
    for first in range(3):
        acid.insert("d.t", spark.sql(f"SELECT {first} id, array(timestamp'1500-01-01 12:00:00', null) at"))
    before, old = content(acid, row_id=False), acid.table("d.t")
    with pytest.raises(CompactionRefusedError, match="no buckets"):
        compact_table(spark, acid, "d.t", "rebalance")
    (result,) = compact_table(spark, acid, "d.t", "major")
    (made,) = (location_of(acid, "d.t") / result.directories[0]).glob("0*")
    assert (result.rows, pq.ParquetFile(made).metadata.num_row_groups) == (3, 3)
    assert content(acid, row_id=False) == before
    assert sorted(map(str, old.collect())) == before


def test_insert_only_tables_that_are_not_compacted(acid: AcidSession, spark: SparkSession) -> None:
    create(acid, "text", {"id": "int"}, **{"skip.header.line.count": "1"})
    commit_writes(acid, "d.t", 2)
    for number in (1, 2):
        directory = location_of(acid, "d.t") / f"delta_{number:07}_{number:07}_0000"
        directory.mkdir(parents=True)
        (directory / "000000_0").write_text("id\n7\n")
    with pytest.raises(UnsupportedTableError, match=r"skip\.header\.line\.count"):
        compact_table(spark, acid, "d.t", "major")
