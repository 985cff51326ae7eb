"""What the catalogue does to ACID tables under running readers, with real files: truncation, drops, the trash."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import hive_acid.spark
from hive_acid.spark import AcidSession

ALL_TYPES = {
    "id": "bigint",
    "name": "varchar(9)",
    "price": "decimal(12,3)",
    "tags": "array<struct<a:int,b:map<string,date>>>",
    "seen": "timestamp",
}


@pytest.fixture
def acid(spark: SparkSession, metastore: Callable[..., str]) -> Iterator[AcidSession]:
    with hive_acid.spark.session(spark, metastore(**{"metastore.catalog.undrop.window": "1h"})) as session:
        session.create_database("d")
        yield session


def ids(frame: Any) -> Any:
    return sorted(row.id for row in frame.select("id").collect())


def insert(acid: AcidSession, spark: SparkSession, *numbers: Any) -> None:
    columns = [f"cast(NULL AS {kind}) {name}" for name, kind in ALL_TYPES.items() if name != "id"]
    acid.insert("d.t", spark.createDataFrame([(number,) for number in numbers], "id bigint").selectExpr("id", *columns))


def test_an_empty_base_is_read_compacted_and_written_above(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", ALL_TYPES)
    insert(acid, spark, 1, 2)
    before = acid.table("d.t")
    acid.connection.call("truncate_table", "d", "t", None)
    assert ids(acid.table("d.t")) == []
    assert ids(before) == [1, 2]
    insert(acid, spark, 3, 4)
    assert acid.delete("d.t", "id = 3") == 1
    assert acid.update("d.t", {"name": "'x'"}, "id = 4") == 1
    assert [row.name for row in acid.table("d.t").collect()] == ["x"]
    assert ids(before) == [1, 2]


def test_a_reader_goes_on_when_its_table_is_dropped_made_again_and_brought_back(
    acid: AcidSession, spark: SparkSession
) -> None:
    acid.create_table("d.t", ALL_TYPES)
    insert(acid, spark, 1, 2)
    before = acid.table("d.t")
    acid.drop_table("d.t")
    acid.create_table("d.t", ALL_TYPES)
    insert(acid, spark, 3)
    assert ids(before) == [1, 2]
    assert ids(acid.table("d.t")) == [3]
    acid.drop_table("d.t")
    acid.connection.undrop_table("d", "t")
    assert ids(acid.table("d.t")) == [3]
    assert ids(before) == [1, 2]


def test_the_files_of_a_partition_that_nobody_reads_go_with_it(acid: AcidSession, spark: SparkSession) -> None:
    """The transaction that holds the lock of the drop is nobody."""
    acid.create_table("d.p", {"id": "int"}, partitioned_by={"p": "int"})
    acid.insert("d.p", spark.sql("SELECT 1 AS id, 1 AS p UNION ALL SELECT 2, 2"))
    table = acid.connection.table("d", "p")
    acid.drop_partitions("d.p", ["p=1"])
    assert not Path(table.location.removeprefix("file:"), "p=1").exists()
    acid.insert("d.p", spark.sql("SELECT 3 AS id, 1 AS p"))
    assert sorted(tuple(row) for row in acid.table("d.p").collect()) == [(2, 2), (3, 1)]
