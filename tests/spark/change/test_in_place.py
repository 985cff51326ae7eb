"""Changes that are written by the tasks that read the rows: their plans, their files, and what is read after."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hive_acid.catalog.table import Column, Table
from hive_acid.spark import AcidSession
from hive_acid.spark.change.brought_rows import brought_rows
from hive_acid.spark.change.changes import change_events, deletions
from hive_acid.spark.values.types import row_type
from hive_acid.spark.write.distribution import BY_SIZE
from hive_acid.spark.write.layout import Write
from tests.spark.checker import check_table, location_of
from tests.spark.placed import acid_shaped, place
from tests.spark.plans import last_write


@contextmanager
def a_task_for_each_file(spark: SparkSession) -> Iterator[None]:
    """Within the block Spark does not read several files in one task."""
    names = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    for name in names:
        spark.conf.set(name, "1")
    try:
        yield
    finally:
        for name in names:
            spark.conf.unset(name)


def ids(acid: AcidSession, name: Any = "d.t") -> Any:
    return sorted(row["id"] for row in acid.table(name).collect())


@pytest.mark.usefixtures("written_by_spark")
def test_few_rows_are_changed_in_one_stage(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "v": "string"})
    acid.insert("d.t", spark.range(100).selectExpr("int(id) id", "'old' v"))
    assert acid.update("d.t", {"v": "'new'"}, "id % 10 = 3") == 10
    plan = last_write(spark).tree
    assert "Exchange" not in plan
    assert plan.count("Sort (") == 1
    assert acid.delete("d.t", "id % 10 = 4") == 10
    written = last_write(spark).tree
    assert "SortMergeJoin" not in written
    assert "hashpartitioning" not in last_write(spark).text
    assert written.count("Scan orc") <= 2, "the table in one scan, and perhaps the delete events"
    assert ids(acid) == [i for i in range(100) if i % 10 != 4]


@pytest.mark.usefixtures("written_by_spark")
def test_each_task_deletes_from_the_bucket_that_it_reads(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "v": "string"})
    for first in (0, 10, 20):
        acid.insert("d.t", spark.range(first, first + 10, 1, 1).selectExpr("int(id) id", "'old' v"))
    with a_task_for_each_file(spark), acid.transaction():
        assert acid.delete("d.t", "id % 5 = 0") == 6
        assert acid.update("d.t", {"v": "'new'"}, "id % 5 = 1") == 6
        assert acid.delete("d.t", "v = 'new' AND id < 10") == 2
    found = check_table(location_of(acid, "d.t"))
    deletes = {name: files for name, files in found.items() if name.startswith("delete_delta")}
    assert sorted(deletes) == [f"delete_delta_0000004_0000004_{number:04}" for number in range(len(deletes))]
    assert len(deletes) == 7, "three statements for each change of the three files, and one for the rows changed last"
    assert all(list(files) == ["bucket_00000"] for files in deletes.values())
    assert ids(acid) == [i for i in range(30) if i % 5 and i not in (1, 6)]
    assert acid.table("d.t").where("v = 'new'").count() == 4


def test_rows_of_another_partition_with_the_same_ids_stay(acid: AcidSession, spark: SparkSession) -> None:
    """As Hive numbers them: by file, not by write."""
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "int"})
    acid.insert("d.t", spark.range(4, 7).selectExpr("int(id) id", "int(id - 4) p"))
    location = commit_later(acid)
    for p in range(3):
        rows = spark.range(10 * p, 10 * p + 4, 1, 1).selectExpr("int(id) id")
        directory = location / f"p={p}" / "delta_0000002_0000002_0000"
        directory.mkdir()
        place(acid_shaped(rows, 2), directory / "bucket_00000")
        (directory / "_orc_acid_version").write_bytes(b"2")
    assert len(ids(acid)) == 15
    assert acid.delete("d.t", "id = 11") == 1
    assert acid.delete("d.t", "id IN (1, 11, 21)") == 2, "row 1 of each partition, of which one is gone"
    assert acid.delete("d.t", "id >= 20 AND id % 2 = 0") == 2
    assert ids(acid) == [0, 2, 3, 4, 5, 6, 10, 12, 13, 23]


def commit_later(acid: AcidSession) -> Any:
    """Give out the second write id of ``d.t``; returns the table's directory."""
    transaction = acid.connection.begin()
    assert transaction.write_id("d", "t") == 2
    transaction.commit()
    return location_of(acid, "d.t")


def test_the_code_of_a_change_does_not_hold_its_write_id(spark: SparkSession) -> None:
    table = Table("d", "t", (Column("id", "int"),))
    target = spark.range(3).selectExpr("id __acid_write_id", "int(id) __acid_bucket", "id __acid_row_id")

    def code(write_id: Any) -> Any:
        changes = deletions(target, [], row_type(table.columns))
        frame = change_events(changes, table, Write(write_id, 0), deletes_only=True, in_place=True).frame
        parts = frame._jdf.queryExecution().debug().codegenToSeq()
        return [parts.apply(at)._2() for at in range(parts.size())]

    first, second = code(41), code(42)
    assert first
    assert first == second
    assert not any("42L" in part for part in second)


@pytest.mark.parametrize("own", [None, "12345"])
def test_files_count_by_their_size_while_many_are_read_for_a_change(
    acid: AcidSession, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, own: Any
) -> None:
    name = "spark.sql.files.openCostInBytes"
    default = spark.conf.get(name)
    acid.create_table("d.t", {"id": "int", "v": "int"}, partitioned_by={"p": "int"})
    acid.insert("d.t", spark.range(60).selectExpr("int(id) id", "0 v", "int(id % 6) p"))
    acid.create_table("d.s", {"id": "int"})
    acid.insert("d.s", spark.range(60).selectExpr("int(id) id"))
    seen = []

    def brought(*args: Any) -> Any:
        seen.append(spark.conf.get(name))
        return brought_rows(*args)

    monkeypatch.setattr("hive_acid.spark.change.driver_write.brought_rows", brought)
    if own:
        spark.conf.set(name, own)
    try:
        assert acid.update("d.t", {"v": "1"}, "id < 10") == 10
        assert acid.delete("d.t", "id < 5") == 5
        assert acid.delete("d.s", "id < 5") == 5
        assert spark.conf.get(name) == (own or default)
    finally:
        spark.conf.unset(name)
    assert seen == [own or BY_SIZE[name]] * 2 + [own or default]
    assert sorted(ids(acid)) == [*range(5, 60)]


def test_conditions_that_take_all_rows(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "v": "int"})
    acid.insert("d.t", spark.range(50).selectExpr("int(id) id", "0 v"))
    acid.delete("d.t", F.col("id") < 5)
    assert acid.update("d.t", {"v": "v + 1"}) == 45
    assert acid.update("d.t", {"v": "v + 1"}, "true") == 45
    assert [tuple(row) for row in acid.table("d.t").groupBy("v").count().collect()] == [(2, 45)]
    assert acid.delete("d.t", "true") == 45
    assert ids(acid) == []
    check_table(location_of(acid, "d.t"))
