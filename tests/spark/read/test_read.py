"""The scan: every projection, pruning of columns and files, partition values, partly visible directories."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from hive_acid.filesystem import files
from hive_acid.format.names import parse_directory
from hive_acid.format.rows import ID_COLUMNS
from hive_acid.format.snapshot import ValidWriteIdList
from hive_acid.spark import AcidSession
from hive_acid.spark.limits import Limits
from hive_acid.spark.read.scan import ScanDirectory, scan
from hive_acid.spark.read.table_frame import delete_events
from tests.spark.checker import location_of
from tests.spark.plans import scans

STRUCTURE = "id bigint, name string, price decimal(10,2), tags array<string>, place struct<x:int,y:int>"

LISTING = ("parallelism", "threshold")


@pytest.fixture
def changed(acid: AcidSession, spark: SparkSession) -> Any:
    """A table of three partitions with deletes and updates in one: ids 0..299, without every tenth, 5 renamed."""
    acid.create_table(
        "d.t",
        {
            "id": "bigint",
            "name": "string",
            "price": "decimal(10,2)",
            "tags": "array<string>",
            "place": "struct<x:int,y:int>",
            "month": "int",
        },
        partitioned_by=["month"],
    )
    rows = spark.range(300).selectExpr(
        "id",
        "concat('n', id) AS name",
        "cast(id / 4 AS decimal(10,2)) AS price",
        "array('a', cast(id AS string)) AS tags",
        "named_struct('x', cast(id AS int), 'y', cast(-id AS int)) AS place",
        "cast(id % 3 AS int) AS month",
    )
    acid.insert("d.t", rows)
    acid.delete("d.t", "month = 1 AND id % 10 = 1")
    acid.update("d.t", {"name": "'renamed'"}, "id = 4")
    return acid.table("d.t")


def left(month: Any = None) -> Any:
    return [i for i in range(300) if not (i % 3 == 1 and i % 10 == 1) and (month is None or i % 3 == month)]


PROJECTIONS = {
    "count": lambda t: t.count() == len(left()),
    "one column": lambda t: sorted(r.id for r in t.select("id").collect()) == left(),
    "another column": lambda t: t.where("name = 'renamed'").select("price").collect()[0][0] == 1,
    "nested field": lambda t: t.agg(F.sum("place.y")).collect()[0][0] == -sum(left()),
    "filter on a column": lambda t: t.where("id >= 290").count() == len([i for i in left() if i >= 290]),
    "filter and other column": lambda t: [r.name for r in t.where("id = 8").select("name").collect()] == ["n8"],
    "partition column": lambda t: sorted(r.month for r in t.select("month").distinct().collect()) == [0, 1, 2],
    "partition filter": lambda t: sorted(r.id for r in t.where("month = 1").select("id").collect()) == left(1),
    "partition filter, count": lambda t: t.where("month IN (0, 2)").count() == len(left(0)) + len(left(2)),
    "group by partition": lambda t: (
        {r["month"]: r["count"] for r in t.groupBy("month").count().collect()}[1] == len(left(1))
    ),
    "everything": lambda t: (
        [tuple(r) for r in t.where("id = 7").collect()] == [(7, "n7", pytest.approx(1.75), ["a", "7"], (7, -7), 1)]
    ),
    "join with itself": lambda t: (
        t.alias("a").join(t.alias("b"), F.col("a.id") == F.col("b.id")).count() == len(left())
    ),
    "limit": lambda t: len(t.limit(3).collect()) == 3,
    "sample by null": lambda t: t.where("name IS NULL").count() == 0,
}


@pytest.mark.parametrize("vectorized", ["true", "false"])
def test_every_projection(changed: Any, spark: SparkSession, vectorized: Any) -> None:
    spark.conf.set("spark.sql.orc.enableVectorizedReader", vectorized)
    try:
        wrong = [name for name, holds in PROJECTIONS.items() if not holds(changed)]
    finally:
        spark.conf.unset("spark.sql.orc.enableVectorizedReader")
    assert wrong == []


def test_row_id_columns_and_keys_alone(changed: Any, acid: AcidSession) -> None:
    table = acid.table("d.t", row_id=True)
    assert table.columns[0] == "ROW__ID"
    assert table.select("ROW__ID.rowId").count() == len(left())
    assert table.where("ROW__ID.writeId = 3").select("id").collect()[0].id == 4
    assert table.where("ROW__ID.bucketId = 536870912 AND ROW__ID.writeId = 1").count() == len(left()) - 1
    assert table.select("ROW__ID", "month").distinct().count() == len(left())


def test_columns_are_pruned_and_read_in_batches(changed: Any) -> None:
    found = scans(changed.select("id"))
    assert found
    for one in found:
        assert "Batched: true" in one.text
        read = re.search(r"row:struct<(.*?)>>", one.text.replace("\n", " "))
        assert read is not None
        assert read[1] in ("id:bigint,__acid_ghost:boolean", "__acid_ghost:boolean"), one.text


@pytest.fixture
def joins(acid: AcidSession) -> None:
    """Deletes are joined, however few they are."""
    acid.limits = Limits(delete_events=0)


def test_a_filter_on_a_partition_column_prunes_files(joins: Any, changed: Any) -> None:
    everything = sum(one.files for one in scans(changed))
    of_deletes = 2
    assert everything == 3 + 1 + of_deletes
    assert sum(one.files for one in scans(changed.where("month = 0"))) == 1, "no other partition's deletes either"
    assert sum(one.files for one in scans(changed.where("month = 1"))) == 2 + of_deletes
    assert sum(one.rows for one in scans(changed.where("month = 0"))) <= 100


def test_only_directories_that_deletes_reach_are_joined(
    joins: Any, changed: Any, acid: AcidSession, spark: SparkSession
) -> None:
    plan = changed._jdf.queryExecution().optimizedPlan().toString()
    assert plan.count("LeftAnti") == 1
    acid.create_table("d.clean", {"id": "bigint"})
    acid.insert("d.clean", spark.range(5))
    assert "LeftAnti" not in acid.table("d.clean")._jdf.queryExecution().optimizedPlan().toString()


VALUES = ["plain", "a b", "x/y", "100%", "%41", "a+b", "é:=ü", "日本", "#?*[]{}^\\'\"", None, "\x7f", "trailing."]


def test_partition_values_come_back_as_they_went_in(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"text": "string", "day": "date", "flag": "boolean"})
    rows = [(i, text, f"20{i:02d}-01-01", i % 2 == 0) for i, text in enumerate(VALUES)]
    frame = spark.createDataFrame(rows, "id int, text string, day string, flag boolean")
    acid.insert("d.t", frame.withColumn("day", F.to_date("day")))
    table = acid.table("d.t")
    assert dict(table.dtypes) == {"id": "int", "text": "string", "day": "date", "flag": "boolean"}
    read = {r.id: (r.text, str(r.day), r.flag) for r in table.collect()}
    assert read == {i: (text, day, flag) for i, text, day, flag in rows}
    for i, text in enumerate(VALUES):
        found = table.where(F.col("text").eqNullSafe(F.lit(text)) if text is not None else F.col("text").isNull())
        assert [r.id for r in found.collect()] == [i], text
    assert acid.update("d.t", {"id": "id + 100"}, "text = '100%'") == 1
    assert acid.delete("d.t", "text IS NULL") == 1
    assert {r.id for r in acid.table("d.t").collect()} == set(range(12)) - {3, 9} | {103}
    assert len(acid.table("d.t").partitions()) == len(VALUES), "changes go to the partitions that are there"


def test_plain_partition_values_are_not_decoded_row_by_row(changed: Any) -> None:
    plan = changed.select("month")._jdf.queryExecution().optimizedPlan().toString()
    assert "UrlCodec" not in plan


def test_deletes_do_not_cross_partitions(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "int"})
    acid.insert("d.t", spark.createDataFrame([(1, 1)], "id int, p int"))
    acid.insert("d.t", spark.createDataFrame([(2, 2)], "id int, p int"))
    same = Path(location_of(acid, "d.t"))
    # The second write's file under the first one's name: equal ROW__IDs in two partitions.
    shutil.rmtree(same / "p=2" / "delta_0000002_0000002_0000")
    shutil.copytree(same / "p=1" / "delta_0000001_0000001_0000", same / "p=2" / "delta_0000001_0000001_0000")
    assert acid.delete("d.t", "p = 1") == 1
    assert [tuple(r) for r in acid.table("d.t").collect()] == [(1, 2)]
    assert acid.delete("d.t", "p = 2") == 1
    assert acid.table("d.t").count() == 0


def test_no_files_give_an_empty_frame_of_the_right_schema(acid: AcidSession) -> None:
    acid.create_table("d.t", {"id": "int", "name": "varchar(5)"}, partitioned_by={"p": "date"})
    table = acid.table("d.t", row_id=True)
    assert table.dtypes == [
        ("ROW__ID", "struct<writeId:bigint,bucketId:int,rowId:bigint>"),
        ("id", "int"),
        ("name", "string"),
        ("p", "date"),
    ]
    assert table.count() == 0
    assert acid.delete("d.t") == 0


def test_rows_of_open_and_aborted_writes_in_a_partly_visible_directory(spark: SparkSession, tmp_path: Path) -> None:
    shaped = spark.range(1, 9).select(
        F.lit(0).alias("operation"),
        F.col("id").alias("originalTransaction"),
        F.lit(536870912).alias("bucket"),
        F.lit(0).cast("bigint").alias("rowId"),
        F.col("id").alias("currentTransaction"),
        F.struct(F.col("id").alias("k")).alias("row"),
    )
    shaped.coalesce(1).write.orc(str(tmp_path / "delta_0000001_0000008"))
    deletes = (
        shaped.where("rowId = 0")
        .withColumn("operation", F.lit(2))
        .withColumn("row", F.lit(None).cast("struct<k:bigint>"))
    )
    deletes.coalesce(1).write.orc(str(tmp_path / "delete_delta_0000001_0000008"))
    write_ids = ValidWriteIdList("d.t", 7, open_ids=(3,), aborted_ids=(5, 6))
    row = spark.createDataFrame([], "k bigint").schema

    def directory(name: Any, whole: Any) -> Any:
        return ScanDirectory(str(tmp_path / name), parse_directory(name), whole)  # type: ignore[arg-type]

    some = scan(spark, row, [directory("delta_0000001_0000008", False)], write_ids)
    assert sorted(r.k for r in some.select("row.k").collect()) == [1, 2, 4, 7]
    assert some.count() == 4
    everything = scan(spark, row, [directory("delta_0000001_0000008", True)], write_ids)
    assert everything.count() == 8
    both = scan(
        spark, row, [directory("delta_0000001_0000008", True), directory("delta_0000001_0000008", False)], write_ids
    )
    assert both.count() == 12
    assert delete_events(spark, [directory("delete_delta_0000001_0000008", False)], write_ids).count() == 4


@pytest.mark.parametrize("vectorized", ["true", "false"])
@pytest.mark.parametrize("case_sensitive", ["true", "false"])
def test_ids_that_nobody_needs_are_not_read(
    acid: AcidSession, spark: SparkSession, vectorized: Any, case_sensitive: Any
) -> None:
    acid.create_table("d.t", {"id": "bigint", "operation": "string"})
    acid.insert("d.t", spark.range(10).selectExpr("id", "'x' AS operation"))
    name = "delta_0000001_0000001_0000"
    row = spark.createDataFrame([], "id bigint, operation string").schema

    def found(*ids: Any, whole: Any = True) -> Any:
        directory = ScanDirectory(str(location_of(acid, "d.t") / name), parse_directory(name), whole)  # type: ignore[arg-type]
        return scan(spark, row, [directory], ValidWriteIdList("d.t", 1), ids=ids)

    def told(events: Any) -> Any:
        """Of which ids there is anything; that of `bucket` is always read."""
        counted = events.agg(*(F.count(name).alias(name) for name in ID_COLUMNS if name != "bucket"))
        return {name for name, rows in counted.collect()[0].asDict().items() if rows}

    spark.conf.set("spark.sql.orc.enableVectorizedReader", vectorized)
    spark.conf.set("spark.sql.caseSensitive", case_sensitive)
    try:
        assert told(found()) == set()
        assert told(found("originalTransaction", "rowId")) == {"originalTransaction", "rowId"}
        assert told(found("operation")) == {"operation"}
        assert told(found(whole=False)) == {"currentTransaction"}, "which tells what is visible"
        assert told(found(*ID_COLUMNS)) == {*ID_COLUMNS} - {"bucket"}
        for ids in ((), ("operation",), ("rowId", "bucket")):
            rows = found(*ids).selectExpr("row.id", "row.operation").collect()
            assert sorted(map(tuple, rows)) == [(i, "x") for i in range(10)]
        assert found().count() == 10
        assert sorted(r.id for r in acid.table("d.t").where("operation = 'x'").collect()) == [*range(10)]
    finally:
        spark.conf.unset("spark.sql.orc.enableVectorizedReader")
        spark.conf.unset("spark.sql.caseSensitive")


def test_a_table_is_read_without_its_ids(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "bigint"})
    acid.insert("d.t", spark.range(10))
    (plain,) = scans(acid.table("d.t").select("id"))
    assert not {*ID_COLUMNS} - {"bucket"} & {*re.findall(r"\w+", plain.text)}
    (with_id,) = scans(acid.table("d.t", row_id=True))
    assert {"originalTransaction", "bucket", "rowId"} <= {*re.findall(r"\w+", with_id.text)}


@pytest.mark.parametrize("name", ["a b+c", "glob{a,b}[x]*", "ünï%41"])
def test_odd_table_locations(acid: AcidSession, spark: SparkSession, tmp_path: Path, name: Any) -> None:
    (tmp_path / name).mkdir()
    acid.create_table("d.t", {"id": "int"}, partitioned_by={"p": "int"}, location=f"file:{tmp_path}/{name}/t")
    acid.insert("d.t", spark.createDataFrame([(1, 1), (2, 2)], "id int, p int"))
    acid.update("d.t", {"id": "id * 10"}, "p = 2")
    assert sorted(tuple(r) for r in acid.table("d.t").collect()) == [(1, 1), (20, 2)]


def test_files_that_are_no_data(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int"})
    acid.insert("d.t", spark.createDataFrame([(1,)], "id int"))
    location = f"file:{location_of(acid, 'd.t')}"
    staged = files.join(location, "_tmp_spark_9_x", "delta_0000009_0000009_0000")
    files.make_directory(staged)
    files.write(files.join(staged, "bucket_00000"), b"staged")
    files.write(files.join(location, "_SUCCESS"), b"")
    files.write(files.join(location, "delta_0000001_0000001_0000", "bucket_00000_flush_length"), b"\0" * 8)
    assert acid.table("d.t").count() == 1


@pytest.mark.parametrize(("most_local", "tasks"), [(512, []), (39, [10])])
def test_many_directories_are_listed_in_few_tasks_and_local_ones_in_none(
    acid: AcidSession, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, most_local: Any, tasks: Any
) -> None:
    monkeypatch.setattr("hive_acid.spark.read.scan._MOST_LOCAL", most_local)
    monkeypatch.setattr("hive_acid.spark.read.scan._LISTED_PER_TASK", 4)
    acid.create_table("d.t", {"id": "bigint"}, partitioned_by={"p": "int"})
    acid.insert("d.t", spark.range(40).selectExpr("id", "cast(id as int) p").coalesce(1))
    before = [spark.conf.get(f"spark.sql.sources.parallelPartitionDiscovery.{name}") for name in LISTING]
    spark.sparkContext.setJobGroup("listing", "listing")
    table = acid.table("d.t")
    assert table.columns == ["id", "p"]
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup("listing")]
    stages = [tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds]  # type: ignore[union-attr]
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
    assert [stage.numTasks for stage in stages] == tasks  # type: ignore[union-attr]
    assert before == [spark.conf.get(f"spark.sql.sources.parallelPartitionDiscovery.{name}") for name in LISTING]
    assert table.count() == 40
