"""Multi-insert: one computation of the source, several destinations, one transaction."""

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hive_acid.errors import ColumnError
from hive_acid.spark import AcidSession
from tests.spark.checker import check_table, location_of


@pytest.fixture
def tables(acid: AcidSession) -> Any:
    acid.create_table("d.small", {"id": "int", "v": "double"})
    acid.create_table("d.big", {"id": "int", "v": "double"}, partitioned_by={"p": "string"})
    return acid


def read(acid: AcidSession, name: Any) -> Any:
    return sorted(map(tuple, acid.table(name).collect()))


def test_one_source_into_several_tables_and_partitions(tables: Any, spark: SparkSession) -> None:
    source = spark.range(10).selectExpr("int(id) id", "rand() v")
    counts = (
        tables.multi_insert(source)
        .into("d.small", where="id < 3")
        .into("d.big", {"ID": "id + 100", "v": "v", "p": F.lit("all")})
        .into("d.big", where="id = 0", partition={"p": "zero"})
        .into("d.small", {"id": "-id", "v": "v"}, F.col("id") < 2)
        .execute()
    )
    assert counts == [3, 10, 1, 2]
    values = {i: v for i, v, p in read(tables, "d.big") if p == "all"}
    assert read(tables, "d.small") == sorted(
        [(i, values[i + 100]) for i in (0, 1, 2)] + [(0, values[100]), (-1, values[101])]
    )
    assert read(tables, "d.big")[0] == (0, values[100], "zero"), "a random value is the same everywhere"
    assert sorted(check_table(location_of(tables, "d.small"))) == [
        "delta_0000001_0000001_0000", "delta_0000001_0000001_0003",
    ]  # fmt: skip
    assert sorted(check_table(location_of(tables, "d.big"))) == [
        "p=all/delta_0000001_0000001_0001", "p=zero/delta_0000001_0000001_0002",
    ]  # fmt: skip


def test_some_destinations_are_overwritten(tables: Any, spark: SparkSession) -> None:
    source = spark.range(4).selectExpr("int(id) id", "double(id) v")
    tables.multi_insert(source.withColumn("p", F.lit("a"))).into("d.big").execute()
    tables.insert("d.small", source)
    tables.create_table("d.log", {"id": "int"}, properties={"transactional_properties": "insert_only"})
    counts = (
        tables.multi_insert(source)
        .into("d.log", {"id": "id"})
        .into("d.small", where="id > 2", overwrite=True)
        .into("d.big", where="id > 100", overwrite=True, partition={"p": "a"})
        .into("d.big", where="id = 1", partition={"p": "b"})
        .execute()
    )
    assert counts == [4, 1, 0, 1]
    assert tables.table("d.log").count() == 4
    assert read(tables, "d.small") == [(3, 3.0)]
    assert read(tables, "d.big") == [(1, 1.0, "b")]


def test_all_or_nothing(tables: Any, spark: SparkSession) -> None:
    source = spark.range(10).selectExpr("int(id) id", "double(id) v")
    too_large = {"id": "bigint(id) * 1000000000", "v": "v", "p": "'x'"}
    unfit = tables.multi_insert(source).into("d.small").into("d.big", too_large)
    with pytest.raises(ColumnError, match=r"d\.big\.id"):
        unfit.execute()
    with pytest.raises(ColumnError, match="nothing"):
        tables.multi_insert(source).into("d.small").into("d.small", where="nothing = 1").execute()
    with pytest.raises(ColumnError, match="missing: p"):
        tables.multi_insert(source).into("d.small").into("d.big").execute()
    with pytest.raises(ColumnError, match="no destination"):
        tables.multi_insert(source).execute()
    assert read(tables, "d.small") == read(tables, "d.big") == []
    assert check_table(location_of(tables, "d.small")) == {}
