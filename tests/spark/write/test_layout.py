"""Where the rows of a write's tasks go: buckets of one statement, or statements with one bucket; and how many tasks."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from hive_acid.errors import UnsupportedTableError
from hive_acid.format.rows import decode_bucket
from hive_acid.ids import WriteId
from hive_acid.spark import AcidSession
from hive_acid.spark.jvm.frames.classic import frame_in_jvm
from hive_acid.spark.jvm.job_settings import configured
from hive_acid.spark.plans.tasks import Estimate, distribution_of
from hive_acid.spark.write.distribution import Distributor, estimated, parsed, parts_of
from hive_acid.spark.write.layout import Layout, Write
from tests.spark.by_spark import WRITTEN, limited
from tests.spark.checker import check_table, location_of
from tests.spark.plans import last_write

ROWS = ("int(id) id", "concat('n', id) name")
STATEMENTS = {"hive_acid.layout": "statements"}


def test_each_task_is_a_statement_where_trino_changes_rows(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "name": "string"}, properties=STATEMENTS)
    with acid.transaction():
        acid.insert("d.t", spark.range(90).repartition(3).selectExpr(*ROWS))
        acid.insert("d.t", spark.range(90, 100).selectExpr(*ROWS))
        acid.update("d.t", {"name": "'u'"}, "id >= 85")
    acid.delete("d.t", "id % 10 = 0")
    found = check_table(location_of(acid, "d.t"))
    assert list(found)[:4] == [
        "delete_delta_0000001_0000001_0004",
        "delete_delta_0000002_0000002_0000",
        "delta_0000001_0000001_0000",
        "delta_0000001_0000001_0001",
    ]
    assert {file for files in found.values() for file in files} == {"bucket_00000"}
    rows = {row.id: row.name for row in acid.table("d.t").collect()}
    assert rows == {i: "u" if i >= 85 else f"n{i}" for i in range(100) if i % 10}


def test_an_overwrite_has_one_file_where_trino_changes_rows(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int", "name": "string"}, partitioned_by={"p": "int"}, properties=STATEMENTS)
    acid.overwrite("d.t", spark.range(90).repartition(3).selectExpr(*ROWS, "int(id % 2) p"))
    assert {name: list(files) for name, files in check_table(location_of(acid, "d.t")).items()} == {
        "p=0/base_0000001": ["bucket_00000"],
        "p=1/base_0000001": ["bucket_00000"],
    }
    assert acid.table("d.t").count() == 90


def test_layouts_that_make_no_sense(acid: AcidSession, spark: SparkSession) -> None:
    acid.create_table("d.t", {"id": "int"}, properties={"hive_acid.layout": "piles"})
    acid.create_table("d.c", {"id": "int"}, properties=STATEMENTS, clustered_by=["id"], buckets=2)
    for name, said in (("d.t", "hive_acid.layout=piles"), ("d.c", "CLUSTERED BY")):
        with pytest.raises(UnsupportedTableError, match=said):
            acid.insert(name, spark.range(3).selectExpr("int(id) id"))


def test_more_tasks_than_buckets_take_further_statements(spark: SparkSession) -> None:
    numbers = [0, 4095, 4096, 9000]
    write = Write(WriteId(1), 2)
    assert write.by_statement(dict.fromkeys(numbers, "f")) == {2: {0: "f", 4095: "f"}, 3: {0: "f"}, 4: {808: "f"}}
    frame = spark.createDataFrame([(number,) for number in numbers], "number int")
    found = frame.selectExpr(f"{write.bucket_property('number')} AS p").collect()
    assert [decode_bucket(row.p) for row in found] == [(0, 2), (4095, 2), (0, 3), (808, 4)]
    single = Write(WriteId(1), 2, Layout.STATEMENTS)
    assert single.by_statement({0: "a", 3: "b"}) == {2: {0: "a"}, 5: {0: "b"}}
    found = frame.limit(1).selectExpr(f"{single.bucket_property('number + 3')} AS p").collect()
    assert decode_bucket(found[0].p) == (0, 5)
    with pytest.raises(UnsupportedTableError, match="repartition"):
        single.by_statement({4094: "f"})


def test_rows_are_shuffled_only_where_their_number_is_not_known(spark: SparkSession, tmp_path: Path) -> None:
    big = spark.range(20_000_000).selectExpr("id", "string(id) s")
    cores = Distributor(spark, 1).cores

    def distribution(frame: Any, *, divided: Any, target: Any = 256 << 20) -> Any:
        return distribution_of(estimated(frame), divided=divided, target_bytes=target, cores=cores)[0]

    assert distribution(spark.range(10), divided=True) == (1, False)
    assert distribution(big.where("id = 7"), divided=False).shuffled
    assert not distribution(big, divided=False).shuffled
    assert distribution(big, divided=True) == (2, False)
    assert distribution(big, divided=True, target=64 << 20).shuffled
    assert distribution(big.join(spark.range(9), "id"), divided=False) == (None, True)
    assert distribution(spark.range(10).repartition(5), divided=False) == (None, False)
    assert distribution(spark.createDataFrame([(1,)], "a int").mapInPandas(lambda it: it, "a int"), divided=False) == (
        None,
        True,
    )
    spark.range(1000).write.parquet(str(tmp_path / "p"))
    assert estimated(spark.read.parquet(str(tmp_path / "p"))).is_exact
    cached = spark.range(1000).where("id > 5").cache()
    assert estimated(cached.selectExpr("id + 1 AS id")).is_exact
    cached.unpersist()
    for text, given in (
        ("SELECT 1 AS a", True),
        ("SELECT upper(v) AS u, 1 AS n FROM VALUES ('x'), ('y') AS t(v)", True),
        ("SELECT 1 AS a UNION ALL SELECT * FROM VALUES (2)", True),
        ("SELECT id FROM range(3)", False),
        ("SELECT explode(array(1, 2)) AS a", False),
    ):
        assert estimated(spark.sql(text)).is_given is given, text
    assert parsed("no plan") == Estimate(None, is_exact=True, is_placed=False)
    assert estimated(spark.sql("SELECT int(s) i FROM VALUES ('x') AS v(s)")).size_bytes is None  # fails in the planning


def test_spark_tells_in_how_many_tasks_rows_come(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(0, 1000, 1, 5).write.parquet(str(tmp_path / "p"))
    files = spark.read.parquet(str(tmp_path / "p"))
    three = spark.range(0, 10, 1, 3)

    def counted(frame: DataFrame) -> int | None:
        return parts_of(frame, estimated(frame).leaves)

    for frame in (
        files,
        files.selectExpr("id + 1 AS id"),
        files.where("id > 7"),
        files.join(spark.range(3).hint("broadcast"), "id"),
        three.unionByName(files),
        spark.createDataFrame([(1,), (2,)], "id int"),
        three.localCheckpoint(),
    ):
        known = counted(frame)
        assert known == (None if frame_in_jvm(frame) is None else frame.rdd.getNumPartitions())
    for frame in (three.cache(), spark.sql("SELECT (SELECT max(id) FROM range(5)) AS id FROM range(7)")):
        known = counted(frame)
        assert known is None or known == frame.rdd.getNumPartitions()
    three.unpersist()
    assert counted(spark.sql("SELECT int(s) i FROM VALUES ('x') AS v(s)")) is None  # fails in the planning


def test_large_rows_are_written_in_the_tasks_that_they_come_in(acid: AcidSession, spark: SparkSession) -> None:
    """Without a pass over them that puts tasks together; each file has its own bucket, and no two rows one id."""
    acid.create_table("d.t", {"id": "bigint", "s": "string"})
    new = spark.range(0, 1_500_000, 1, 3).selectExpr("id", "string(id % 7) s")
    acid.insert("d.t", new)
    if frame_in_jvm(new) is not None:
        assert "Coalesce" not in last_write(spark).tree
    rows = acid.table("d.t", row_id=True)
    assert rows.select("ROW__ID.*").distinct().count() == rows.select("id").distinct().count() == 1_500_000
    written = rows.selectExpr("ROW__ID.bucketId", "element_at(split(_metadata.file_name, '_'), -1) AS file")
    assert written.distinct().count() == len(list(location_of(acid, "d.t").rglob("bucket_*")))


SHAPES = {
    "SELECT * FROM src": "scan",
    "SELECT * FROM src WHERE id % 3 = 1": "scan",
    "SELECT * FROM old WHERE id > 700": "scan",
    "SELECT id, s FROM (SELECT id, explode(array(s, s)) s FROM src)": "scan",
    "SELECT * FROM src WHERE id % 3 = 0 UNION ALL SELECT * FROM old WHERE id % 2 = 0": "scan",
    "SELECT /*+ broadcast(few) */ src.* FROM src JOIN few ON id = k": "scan",
    "SELECT * FROM src WHERE id IN (SELECT k FROM few)": "scan",
    "SELECT * FROM old WHERE NOT EXISTS (SELECT 1 FROM few WHERE k = id)": "scan",
    "SELECT /*+ merge(few) */ src.* FROM src JOIN few ON id = k": "shuffle",
    "SELECT id, max(s) s FROM old GROUP BY id": "shuffle",
    "SELECT DISTINCT * FROM src": "shuffle",
    "SELECT id, s FROM (SELECT *, row_number() OVER (PARTITION BY s ORDER BY id) r FROM src) WHERE r > 1": "shuffle",
    "SELECT * FROM src UNION SELECT * FROM old": "shuffle",
    "SELECT * FROM src ORDER BY s, id": "shuffle",
    "SELECT * FROM old WHERE id > (SELECT avg(k) FROM few)": "other tasks",
    "SELECT id, s FROM (SELECT *, row_number() OVER (ORDER BY id) r FROM src) WHERE r % 2 = 1": "other tasks",
    "SELECT /*+ repartition(3) */ * FROM src": "shuffle",
}
"""Queries, and out of what their rows come in the tasks that write them."""


@pytest.mark.parametrize("text", SHAPES)
def test_rows_of_a_query_are_written_in_its_own_tasks(
    acid: AcidSession, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """As many files as Spark has tasks for the query, without a shuffle more: of each row once, by an id of its own."""
    spark.range(0, 2000, 1, 5).selectExpr("id", "concat('s', id % 50) s").write.parquet(str(tmp_path / "src"))
    acid.create_table("d.old", {"id": "bigint", "s": "string"})
    for start in (0, 1000, 2000):
        acid.insert("d.old", spark.range(start, start + 1000).selectExpr("id", "concat('s', id % 50) s"))
    acid.delete("d.old", "id % 7 = 0")
    acid.create_table("d.t", {"id": "bigint", "s": "string"})
    spark.read.parquet(str(tmp_path / "src")).createOrReplaceTempView("src")
    acid.table("d.old").createOrReplaceTempView("old")
    spark.range(0, 3000, 11).selectExpr("id k").createOrReplaceTempView("few")
    monkeypatch.setattr("hive_acid.spark.plans.tasks._OPENED_BYTES", 100)
    monkeypatch.setattr("hive_acid.spark.plans.tasks.SMALLEST_PART_BYTES", 1000)
    by_files = {"spark.sql.files.openCostInBytes": "1", "spark.sql.files.maxPartitionBytes": "9000"}
    with configured(spark, {**by_files, "spark.sql.adaptive.enabled": "true"}), limited(acid, **WRITTEN):
        frame = spark.sql(text)
        expected = sorted(map(tuple, frame.collect()))
        assert acid.insert("d.t", frame) == len(expected)
        plan = last_write(spark).text
        parts = frame.rdd.getNumPartitions()
    rows = acid.table("d.t", row_id=True)
    assert sorted(map(tuple, rows.select("id", "s").collect())) == expected
    assert rows.select("ROW__ID.*").distinct().count() == len(expected)
    files = list(location_of(acid, "d.t").rglob("bucket_*"))
    if SHAPES[text] == "other tasks":
        assert "REBALANCE" in plan or "Coalesce (" in plan
        return
    assert "REBALANCE" not in plan
    assert "Coalesce (" not in plan
    assert len(files) == parts
    assert SHAPES[text] == "shuffle" or parts > 1
    if "ORDER BY s, id" in text:
        in_files = rows.selectExpr("ROW__ID.bucketId b", "ROW__ID.rowId r", "s", "id").orderBy("b", "r").collect()
        assert [(row.s, row.id) for row in in_files] == sorted((text, number) for number, text in expected)


def test_the_plan_of_a_cached_frame_is_not_looked_into() -> None:
    text = """== Optimized Logical Plan ==
Project [(id#1L + 1) AS id#2L], Statistics(sizeInBytes=7.8 KiB)
+- InMemoryRelation [id#1L], StorageLevel(disk, memory, deserialized, 1 replicas), Statistics(sizeInBytes=7.8 KiB)
      +- *(1) Filter (id#1L > 5)

== Physical Plan ==
"""
    assert parsed(text) == Estimate(7987, is_exact=True, is_placed=False, read_bytes=7987)
    assert parsed(text.replace("Project", "Generate")) == Estimate(
        None, is_exact=False, is_placed=False, read_bytes=7987
    )
