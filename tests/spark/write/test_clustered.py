"""CLUSTERED tables: rows lie in the bucket that Hive's hash gives, whatever writes them."""

from typing import Any

import pytest
from pyspark.sql import SparkSession

from hive_acid.errors import ColumnError, UnsupportedTableError
from hive_acid.format.hashing import bucket_number
from hive_acid.format.names import parse_bucket_file
from hive_acid.spark import AcidSession
from tests.spark.checker import check_table, location_of

COLUMNS = {"id": "int", "name": "string"}


def check_buckets(acid: AcidSession, name: Any, kinds: Any, place: Any, buckets: Any = 4) -> Any:
    """Every row of the table lies in its bucket; the number of insert events."""
    rows = 0
    for directory, found in check_table(location_of(acid, name)).items():
        for file, events in found.items():
            assert parse_bucket_file(file) < buckets
            for event in events:
                if event.row is not None:
                    expected = bucket_number(kinds, [event.row[at] for at in place], buckets)
                    assert parse_bucket_file(file) == expected, (directory, event)
                    rows += 1
    return rows


def test_every_write_keeps_rows_in_their_buckets(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", COLUMNS, clustered_by=["name"], buckets=4)
    table = acid.connection.table("d", "t")
    assert (table.bucket_columns, table.buckets, table.bucketing_version) == (("name",), 4, 2)
    rows = spark.range(0, 200, 1, 3).selectExpr("int(id) id", "concat('n', id) name")
    assert acid.insert("d.t", rows) == 200
    assert acid.update("d.t", {"name": "concat(name, '!')"}, "id % 3 = 0") == 67
    assert acid.delete("d.t", "id % 5 = 0") == 40
    merge = acid.merge("d.t", spark.range(190, 210).selectExpr("int(id) id", "concat('s', id) name"), "t.id = s.id")
    merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    assert check_buckets(acid, "d.t", ["string"], [1]) == 200 + 67 + 20
    found = {row.id: row.name for row in acid.table("d.t").collect()}
    kept = {i: f"n{i}!" if i % 3 == 0 else f"n{i}" for i in range(190) if i % 5}
    assert found == kept | {i: f"s{i}" for i in range(190, 210)}
    assert acid.overwrite("d.t", rows.where("id < 20")) == 20
    assert acid.table("d.t").count() == 20
    check_buckets(acid, "d.t", ["string"], [1])


def test_two_bucket_columns_in_a_partitioned_table(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", COLUMNS, partitioned_by={"p": "int"}, clustered_by=["id", "name"], buckets=4)
    frame = spark.range(100).selectExpr("int(id) id", "if(id % 9 = 0, null, string(id)) name", "int(id % 2) p")
    assert acid.insert("d.t", frame) == 100
    assert check_buckets(acid, "d.t", ["int", "string"], [0, 1]) == 100
    assert acid.table("d.t").count() == 100


def test_the_older_hash_is_read_and_deleted_from_only(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", COLUMNS, properties={"bucketing_version": "1"})
    rows = spark.createDataFrame([(1, "a"), (2, "b")], "id int, name string")
    acid.insert("d.t", rows)
    clustered = acid.connection.wire_table("d", "t")
    clustered.sd.bucketCols, clustered.sd.numBuckets = ["id"], 2
    acid.connection.call("alter_table", "d", "t", clustered)
    for change in (
        lambda: acid.insert("d.t", rows),
        lambda: acid.overwrite("d.t", rows),
        lambda: acid.update("d.t", {"id": "3"}),
        lambda: acid.merge("d.t", rows, "t.id = s.id").whenNotMatchedInsertAll().execute(),
    ):
        with pytest.raises(UnsupportedTableError, match="bucketing_version 1"):
            change()
    assert acid.delete("d.t", "id = 1") == 1
    assert [tuple(row) for row in acid.table("d.t").collect()] == [(2, "b")]


def test_definitions_that_make_no_sense(acid: AcidSession) -> None:
    for wrong in (
        {"clustered_by": ["nothing"], "buckets": 2},
        {"clustered_by": ["id"]},
        {"clustered_by": ["id"], "buckets": 5000},
        {"clustered_by": ["id", "ID"], "buckets": 2},
        {"buckets": 2},
    ):
        with pytest.raises(ColumnError):
            acid.create_table("d.t", COLUMNS, **wrong)
