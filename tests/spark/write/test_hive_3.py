"""Tables that Apache Hive 3.1 reads as well: zlib, user metadata in every file, one key for each stripe."""

from collections.abc import Iterator
from typing import Any

import pyarrow.orc
import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.spark import AcidSession
from tests.spark.checker import check_table, location_of

KEYS = ("hive.acid.key.index", "hive.acid.stats", "hive.acid.version")
SHARED = {"hive_acid.hive31": "true"}


@pytest.fixture
def shared(spark: SparkSession, metastore: Any) -> Iterator[Any]:
    with hive_acid.spark.session(spark, metastore(), compression="snappy") as acid:
        acid.create_database("d")
        acid.create_table("d.t", {"id": "int", "name": "string"}, partitioned_by={"p": "int"}, properties=SHARED)
        yield acid


def metadata(acid: AcidSession) -> Any:
    """Path below the table to the file's compression and its user metadata."""
    root = location_of(acid, "d.t")
    found = {}
    for path in sorted(root.rglob("bucket_*")):
        file = pyarrow.orc.ORCFile(path)
        words = {key.decode(): value.decode() for key, value in file.metadata.items() if b"hive" in key}
        found[str(path.relative_to(root))] = (file.compression.lower(), words)
    return found


def test_every_file_says_what_hive_3_needs(shared: Any, spark: SparkSession) -> None:
    rows = spark.range(100).selectExpr("int(id) id", "concat('n', id) name", "int(id % 2) p")
    shared.insert("d.t", rows)
    shared.update("d.t", {"name": "'u'"}, "id = 4")
    shared.delete("d.t", "id IN (1, 3, 5)")
    shared.overwrite("d.t", rows.limit(0).drop("p"), partition={"p": "7"})
    found = metadata(shared)
    assert {compression for compression, _ in found.values()} <= {"zlib", "uncompressed"}
    assert {path: tuple(words[key] for key in KEYS) for path, (_, words) in found.items()} == {
        "p=0/delete_delta_0000002_0000002_0000/bucket_00000": ("1,536870912,2;", "0,0,1", "2"),
        "p=0/delta_0000001_0000001_0000/bucket_00000": ("1,536870912,49;", "50,0,0", "2"),
        "p=0/delta_0000002_0000002_0000/bucket_00000": ("2,536870912,0;", "1,0,0", "2"),
        "p=1/delete_delta_0000003_0000003_0000/bucket_00000": ("1,536870912,2;", "0,0,3", "2"),
        "p=1/delta_0000001_0000001_0000/bucket_00000": ("1,536870912,49;", "50,0,0", "2"),
        "p=7/base_0000004/bucket_00000": ("", "0,0,0", "2"),
    }


def test_rows_are_as_in_other_tables(shared: Any, spark: SparkSession) -> None:
    rows = spark.range(100).selectExpr("int(id) id", "concat('n', id) name", "int(id % 2) p")
    shared.insert("d.t", rows)
    shared.delete("d.t", "id >= 3")
    check_table(location_of(shared, "d.t"))
    assert sorted(tuple(row) for row in shared.table("d.t").collect()) == [(0, "n0", 0), (1, "n1", 1), (2, "n2", 0)]
