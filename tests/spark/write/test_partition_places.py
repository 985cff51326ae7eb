"""Partitions that do not lie where their names say: read, changed and written to in their places."""

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hive_acid.spark import AcidSession
from tests.spark.checker import location_of
from tests.spark.placed import place
from tests.spark.plans import scans


def add(acid: AcidSession, **locations: Any) -> None:
    table = acid.connection.table("d", "t")
    acid.connection.add_partitions(table, {name.replace("__", "="): at for name, at in locations.items()})


def rows(acid: AcidSession) -> Any:
    return sorted(tuple(row) for row in acid.table("d.t").collect())


def test_partitions_anywhere(acid: AcidSession, spark: SparkSession, tmp_path: Path) -> None:
    acid.create_table("d.t", {"id": "int", "name": "string"}, partitioned_by={"p": "string"})
    at = location_of(acid, "d.t")
    add(acid, p__far=f"file:{tmp_path}/far away/100%", p__other=f"file:{at}/p=misnamed", p__deep=f"file:{at}/a/b")
    values = ["here", "far", "other", "deep"]
    frame = spark.range(40).selectExpr("cast(id AS int) id", "concat('n', id) name")
    frame = frame.withColumn("p", F.element_at(F.array(*map(F.lit, values)), (F.col("id") % 4 + 1).cast("int")))
    acid.insert("d.t", frame)
    assert list((tmp_path / "far away" / "100%").glob("delta_*/bucket_00000"))
    assert not (at / "p=far").exists()
    expected = [(number, f"n{number}", values[number % 4]) for number in range(40)]
    assert rows(acid) == expected
    assert acid.table("d.t").where("p = 'far'").count() == 10
    assert acid.delete("d.t", "id % 10 = 1 OR p = 'other' AND id < 7") == 6
    assert acid.update("d.t", {"name": "p"}, "id IN (4, 5, 7)") == 3
    left = [(n, p if n in (4, 5, 7) else name, p) for n, name, p in expected if n % 10 != 1 and n not in (2, 6)]
    assert rows(acid) == left
    assert {row.id for row in acid.table("d.t", row_id=True).where("ROW__ID.writeId = 3").collect()} == {4, 5, 7}


def test_deletes_and_originals_keep_to_their_partition(acid: AcidSession, spark: SparkSession, tmp_path: Path) -> None:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "int", "q": "string"})
    for number in (1, 2, 3):
        (tmp_path / str(number)).mkdir()
        place(
            spark.range(number * 10, number * 10 + 3).select(F.col("id").cast("int")),
            tmp_path / str(number) / "000000_0",
        )
    table = acid.connection.table("d", "t")
    names = {number: table.partition_name([str(number), None]) for number in (1, 2, 3)}
    acid.connection.add_partitions(table, {name: f"file:{tmp_path}/{number}" for number, name in names.items()})
    assert acid.delete("d.t", "id = 21") == 1
    assert rows(acid) == [(n, p, None) for p in (1, 2, 3) for n in range(10 * p, 10 * p + 3) if n != 21]
    assert sum(one.files for one in scans(acid.table("d.t").where("p = 3"))) == 1
