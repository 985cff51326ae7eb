"""Files without ACID columns in ACID tables: from before the conversion, and from LOAD DATA."""

import re
from pathlib import Path
from typing import Any

import pyarrow.orc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hive_acid.errors import UnsupportedTableError
from hive_acid.format.rows import encode_bucket
from hive_acid.spark import AcidSession
from tests.spark.checker import location_of
from tests.spark.compaction import compact_table
from tests.spark.placed import acid_shaped, commit_writes, place
from tests.spark.plans import scans
from tests.values.sessions.under import under


def numbers(spark: SparkSession, first: Any, last: Any) -> Any:
    return spark.range(first, last, 1, 1).selectExpr("id", "concat('n', id) AS name")


def row_ids(acid: AcidSession, name: Any = "d.t") -> Any:
    """ROW__ID by row."""
    return {row.id: tuple(row.ROW__ID) for row in acid.table(name, row_id=True).collect()}


def ids(acid: AcidSession, name: Any = "d.t") -> Any:
    return sorted(row.id for row in acid.table(name).select("id").collect())


@pytest.fixture
def converted(acid: AcidSession, spark: SparkSession) -> Any:
    """A table of files with Hive's names, a Spark file and one of another name, two of them in the same bucket."""
    acid.create_table("d.t", {"id": "bigint", "name": "string"})
    at = location_of(acid, "d.t")
    place(numbers(spark, 0, 3), at / "000000_0")
    place(numbers(spark, 3, 5), at / "000000_0_copy_1")
    place(numbers(spark, 5, 7), at / "000001_0")
    (at / "HIVE_UNION_SUBDIR_1").mkdir()
    place(numbers(spark, 7, 9), at / "HIVE_UNION_SUBDIR_1" / "000000_0")
    place(numbers(spark, 9, 11), at / "part-00001-8a1f.c000.zstd.orc", compression="zstd")
    place(numbers(spark, 11, 12), at / "!other.orc", compression="snappy")
    (at / "000002_0").write_bytes(b"")
    return acid


def known_ids() -> Any:
    zero, one = encode_bucket(0), encode_bucket(1)
    counted = {zero: [0, 1, 2, 3, 4, 7, 8, 11], one: [5, 6, 9, 10]}
    return {row: (0, bucket, number) for bucket, rows in counted.items() for number, row in enumerate(rows)}


def test_rows_have_the_ids_that_hive_gives_them(converted: Any) -> None:
    assert row_ids(converted) == known_ids()
    assert ids(converted) == list(range(12))
    assert converted.table("d.t").count() == 12


@pytest.mark.slow
def test_changes_find_them_and_a_compaction_keeps_their_ids(converted: Any, spark: SparkSession) -> None:
    before = row_ids(converted)
    assert converted.delete("d.t", "id IN (1, 4, 8, 10)") == 4
    assert converted.update("d.t", {"name": "'new'"}, "id IN (6, 11)") == 2
    left = {row: key for row, key in before.items() if row not in (1, 4, 8, 10)}
    changed = row_ids(converted)
    assert {row: key for row, key in changed.items() if row not in (6, 11)} == {
        row: key for row, key in left.items() if row not in (6, 11)
    }
    assert [row.id for row in converted.table("d.t").where("name = 'new'").orderBy("id").collect()] == [6, 11]
    old = converted.table("d.t")
    compact_table(spark, converted, "d.t", "major")
    assert row_ids(converted) == changed
    assert sorted(row.id for row in old.collect()) == sorted(left), "readers go on with the files they know"
    assert converted.delete("d.t", "id = 6 OR id = 0") == 2
    assert ids(converted) == sorted(set(left) - {0, 6})


def test_numbers_follow_the_file_into_however_many_pieces_spark_cuts_it(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "bigint", "name": "string"})
    at = location_of(acid, "d.t")
    wide = spark.range(0, 60_000, 1, 1).selectExpr(
        "60000 - id AS id", "repeat(cast(id * 7919 % 99991 AS string), 3) AS name"
    )
    place(wide, at / "000000_0", **{"orc.stripe.size": "65536"})
    place(wide.selectExpr("id + 60000 AS id", "name").limit(500), at / "000000_0_copy_1")
    rows = pyarrow.orc.ORCFile(at / "000000_0").read().column("id").to_pylist()
    spark.conf.set("spark.sql.files.maxPartitionBytes", "50000")
    spark.conf.set("spark.sql.files.openCostInBytes", "0")
    try:
        table = acid.table("d.t", row_id=True)
        first = table.where("id <= 60000").select("id", F.col("ROW__ID.rowId").alias("n")).collect()
        assert len(spark.read.orc(str(at / "000000_0")).select(F.spark_partition_id()).distinct().collect()) > 3
        assert {row.n: row.id for row in first} == dict(enumerate(rows))
        rest = table.where("id > 60000").agg(F.min("ROW__ID.rowId"), F.max("ROW__ID.rowId"), F.count("*")).collect()[0]
        assert tuple(rest) == (60_000, 60_499, 500)
        assert acid.delete("d.t", "id = 59000 OR id = 119999") == 2
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
        spark.conf.unset("spark.sql.files.openCostInBytes")
    assert acid.table("d.t").where("id IN (59000, 119999, 59001)").count() == 1


def test_loaded_files_are_counted_within_their_directory(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "bigint", "name": "string"})
    at = commit_writes(acid, "d.t", 3)
    for directory in ("delta_0000001_0000001_0002", "delta_0000002_0000002_0000"):
        (at / directory).mkdir()
    place(numbers(spark, 0, 2), at / "delta_0000001_0000001_0002" / "000000_0")
    place(numbers(spark, 2, 4), at / "delta_0000001_0000001_0002" / "000003_0")
    place(numbers(spark, 4, 6), at / "delta_0000002_0000002_0000" / "000000_0")
    loaded = {
        **{row: (1, encode_bucket(0, 2), row) for row in (0, 1)},
        **{row: (1, encode_bucket(3, 2), row - 2) for row in (2, 3)},
        **{row: (2, encode_bucket(0), row - 4) for row in (4, 5)},
    }
    assert row_ids(acid) == loaded
    assert acid.delete("d.t", "id IN (1, 3, 4)") == 3
    assert ids(acid) == [0, 2, 5]
    (at / "base_0000003").mkdir()
    place(numbers(spark, 6, 8), at / "base_0000003" / "000000_0")
    assert row_ids(acid) == {6: (3, encode_bucket(0), 0), 7: (3, encode_bucket(0), 1)}
    assert acid.update("d.t", {"name": "'x'"}, "id = 7") == 1
    assert ids(acid) == [6, 7]


@pytest.mark.parametrize("minds_case", ["true", "false"])
def test_capitals_in_loaded_files(acid: AcidSession, spark: SparkSession, tmp_path: Path, minds_case: Any) -> None:
    """In a session that minds case Spark finds columns only as they are written, and an UPDATE would keep the nulls."""
    acid.create_table("d.t", {"id": "bigint", "Name": "string"}, partitioned_by={"p": "int"})
    file = tmp_path / "file"
    spark.range(3).selectExpr("id AS ID", "concat('n', id) AS `nAME`").coalesce(1).write.orc(str(file))
    acid.load_data("d.t", str(file), partition={"p": 1})
    acid.insert("d.t", spark.sql("SELECT 9L id, 'n9' name, 1 p"))
    with under(spark, {"spark.sql.caseSensitive": minds_case}):
        assert sorted(map(tuple, acid.table("d.t").collect())) == [*((n, f"n{n}", 1) for n in range(3)), (9, "n9", 1)]
        assert acid.table("d.t").where("name = 'n1'").count() == acid.table("d.t").where("id = 2").count() == 1
        assert acid.update("d.t", {"id": "id + 10"}, "name IN ('n1', 'n9')") == 2
        assert acid.delete("d.t", "id = 0") == 1
    assert sorted(map(tuple, acid.table("d.t").collect())) == [(2, "n2", 1), (11, "n1", 1), (19, "n9", 1)]


def test_capitals_in_fields_of_loaded_files(acid: AcidSession, spark: SparkSession, tmp_path: Path) -> None:
    acid.create_table("d.t", {"id": "bigint", "s": "array<struct<a:int>>"})
    file = tmp_path / "file"
    spark.sql("SELECT 1L ID, array(named_struct('A', 7)) S").coalesce(1).write.orc(str(file))
    acid.load_data("d.t", str(file))
    with under(spark, {"spark.sql.caseSensitive": "true"}):
        for verb in (lambda: acid.table("d.t").collect(), lambda: acid.update("d.t", {"id": "2"}, "id = 1")):
            with pytest.raises(UnsupportedTableError, match=r"a field A, .*caseSensitive"):
                verb()
    assert acid.update("d.t", {"id": "2"}, "id = 1") == 1
    assert [(row.id, row.s[0].a) for row in acid.table("d.t").collect()] == [(2, 7)]


@pytest.mark.parametrize("kind", ["orc", "parquet"])
@pytest.mark.parametrize("field", [False, True], ids=["column", "field"])
def test_capitals_in_files_of_insert_only_tables(
    acid: AcidSession, spark: SparkSession, tmp_path: Path, kind: str, field: bool
) -> None:
    insert_only = {"transactional_properties": "insert_only"}
    acid.create_table("d.t", {"id": "bigint", "s": "struct<a:int>"}, properties=insert_only, stored_as=kind)
    acid.sql("INSERT INTO d.t SELECT 9L id, named_struct('a', 9) s")
    file = tmp_path / "file"
    written = "7L id, named_struct('A', 7) s" if field else "7L ID, named_struct('a', 7) s"
    with under(spark, {"spark.sql.caseSensitive": "true"}):
        assert [row.id for row in acid.table("d.t").collect()] == [9], "our own files have no capitals"
    spark.sql(f"SELECT {written}").coalesce(1).write.format(kind).save(str(file))
    acid.load_data("d.t", str(file))
    with (
        under(spark, {"spark.sql.caseSensitive": "true"}),
        pytest.raises(UnsupportedTableError, match=f"the name {'A' if field else 'ID'}, .*caseSensitive"),
    ):
        acid.table("d.t").collect()
    assert sorted((row.id, row.s.a) for row in acid.table("d.t").collect()) == [(7, 7), (9, 9)]


def test_partitions_of_originals(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "bigint", "name": "string"}, partitioned_by={"p": "string"})
    acid.insert("d.t", numbers(spark, 0, 4).withColumn("p", F.when(F.col("id") < 2, "a b%").otherwise("c")))
    for name, first in (("p=a b%25", 10), ("p=c", 20)):
        place(numbers(spark, first, first + 3), location_of(acid, "d.t") / name / "000000_0")
    rows = {row.id: row.p for row in acid.table("d.t").collect()}
    assert rows == {0: "a b%", 1: "a b%", 10: "a b%", 11: "a b%", 12: "a b%", 2: "c", 3: "c", 20: "c", 21: "c", 22: "c"}
    assert acid.delete("d.t", "p = 'c' AND id = 21") == 1, "the same ROW__ID as 11 has in the other partition"
    assert ids(acid) == sorted(set(rows) - {21})
    found = acid.table("d.t").where("p = 'a b%'")
    assert sum(one.files for one in scans(found)) == 2
    assert acid.update("d.t", {"name": "'x'"}, "id IN (10, 22)") == 2
    assert {row.id: row.p for row in acid.table("d.t").where("name = 'x'").collect()} == {10: "a b%", 22: "c"}


def test_without_ids_they_are_read_as_any_orc_file(converted: Any, spark: SparkSession) -> None:
    found = converted.table("d.t").where("id > 9").select("name")
    assert "Window" not in found._jdf.queryExecution().optimizedPlan().toString()
    for one in scans(found):
        assert "Batched: true" in one.text
        assert "GreaterThan(id,9)" in one.text
    converted.insert("d.t", numbers(spark, 20, 22))
    found = converted.table("d.t").select("name")
    pruned = [
        re.search(r"ReadSchema: struct<(?:.*row:struct<)?(.*?)>", one.text.replace("\n", " ")) for one in scans(found)
    ]
    assert sorted(one[1] for one in pruned) == ["name:string", "name:string", "name:string,__acid_ghost:boolean"]  # type: ignore[index]


def test_any_compression(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "bigint", "name": "string"})
    for number, compression in enumerate(("none", "snappy", "zlib", "zstd", "lz4")):
        rows = numbers(spark, number * 100, number * 100 + 100)
        place(rows, location_of(acid, "d.t") / f"00000{number}_0", compression=compression)
    assert acid.delete("d.t", "id % 2 = 0") == 250
    assert ids(acid) == list(range(1, 500, 2))


def test_what_is_no_plain_orc_file_is_refused(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "bigint", "name": "string"})
    at = location_of(acid, "d.t")
    place(acid_shaped(numbers(spark, 0, 2), 1), at / "000000_0")
    with pytest.raises(UnsupportedTableError, match="has ACID columns"):
        _ = acid.table("d.t").schema
    (at / "000000_0").write_bytes(b"id,name")
    with pytest.raises(UnsupportedTableError, match="cannot be read as an ORC file"):
        _ = acid.table("d.t").schema
